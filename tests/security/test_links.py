"""The proxy that makes E3's slow links: whoever can talk to it leads connections wherever the machine's root may go."""

import os

import pytest
from quarry_server.ports import free_ports
from quarry_lab.servers import links

from harness.outside import as_nobody, doors_of

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another account"),
    pytest.mark.skipif(not links.PROGRAM.exists(), reason="no build/toxiproxy-server (scripts/build-toxiproxy makes it; E3 does so itself)"),
]


def test_the_proxy_listens_to_its_owner_alone():
    (port,) = free_ports(1)
    with links.Toxiproxy() as proxy:
        assert doors_of([proxy.pid]) == []
        assert as_nobody(lambda: int(os.path.exists(proxy.socket))) == 0
        link = links.Link("slow", "8 Mbit/s", 8)
        opened = proxy.add(link, port)
        assert doors_of([proxy.pid]) == [("127.0.0.1", opened)]
        with pytest.raises(links.LinkError, match="already exists"):
            proxy.add(link, port)
    assert not proxy.socket.parent.exists()
