//go:build tools

// Package toxiproxy only names the program that `go build` of this module makes.
package toxiproxy

import _ "github.com/Shopify/toxiproxy/v2/cmd/server"
