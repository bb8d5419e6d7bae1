"""Certificates for one cluster's own connections, made for it by openssl and thrown away with it.

An authority signs one certificate, the nodes'. Its key is removed at once: nothing else can ever be signed, so whoever shows a
certificate of this authority has the nodes' key, which only the cluster's owner can read. On separate machines each node has a
certificate of its own (docs/operate/scale-out.md).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from quarry_server.private import make_directory
from quarry_server.run import run_or_raise

from .plan import ClusterError

DAYS = 3650
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
EXTENSIONS = "subjectAltName = {names}\nextendedKeyUsage = serverAuth, clientAuth\nbasicConstraints = CA:FALSE\n"


@dataclass(frozen=True)
class Certificates:
    """Of the cluster in `directory`. Immutable."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "tls" / "ca.pem"

    @property
    def certificate(self) -> Path:
        return self.directory / "tls" / "node.pem"

    @property
    def key(self) -> Path:
        return self.directory / "tls" / "node.key"

    def make(self, addresses: list[str]) -> None:
        """Unless they are there: for servers at these addresses. Errors: ClusterError."""
        if self.certificate.exists():
            return
        if shutil.which("openssl") is None:
            raise ClusterError("openssl is not installed (scripts/packages.txt lists it): the nodes talk TLS to each other")
        target = self.directory / "tls"
        shutil.rmtree(target, ignore_errors=True)
        fresh = make_directory(self.directory / "tls.new")
        (fresh / "extensions").write_text(EXTENSIONS.format(names=", ".join(f"IP:{one}" for one in addresses)), encoding="ascii")
        days = ("-days", str(DAYS))
        openssl(fresh, "req", "-x509", *NEW_KEY, *days, "-subj", "/CN=authority of a Quarry cluster", "-keyout", "ca.key", "-out", "ca.pem")
        openssl(fresh, "req", *NEW_KEY, "-subj", "/CN=node of a Quarry cluster", "-keyout", "node.key", "-out", "node.csr")
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "2", "-extfile", "extensions")
        openssl(fresh, "x509", "-req", "-in", "node.csr", *signing, *days, "-out", "node.pem")
        for name in ("ca.key", "node.csr", "extensions"):
            (fresh / name).unlink()
        fresh.rename(target)

    def server_options(self) -> list[str]:
        return [f"--ssl-ca={self.authority}", f"--ssl-cert={self.certificate}", f"--ssl-key={self.key}"]

    def provider_options(self) -> str:
        """Of Galera, for group and incremental transfers: both sides show their certificate."""
        return f";socket.ssl_ca={self.authority};socket.ssl_cert={self.certificate};socket.ssl_key={self.key}"

    def client(self) -> dict[str, str]:
        """PyMySQL's arguments for a connection between nodes, or of a client that passes for one."""
        return {"ssl_ca": str(self.authority), "ssl_cert": str(self.certificate), "ssl_key": str(self.key), "ssl_verify_cert": True}


def openssl(directory: Path, *arguments: str) -> None:
    run_or_raise(["openssl", *arguments], ClusterError, cwd=directory, umask=0o077)
