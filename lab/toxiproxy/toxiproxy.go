// Command toxiproxy is the shaping proxy of E3: toxiproxy's own server, whose API listens on the unix socket that its only
// argument names. A port, as toxiproxy itself has it, would let every account of the machine lead connections elsewhere.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: toxiproxy-server SOCKET")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "toxiproxy-server:", err)
		os.Exit(1)
	}
}

func serve(path string) error {
	syscall.Umask(0o077)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	logger := zerolog.New(os.Stderr).Level(zerolog.ErrorLevel)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), logger)
	return http.Serve(listener, server.Routes())
}
