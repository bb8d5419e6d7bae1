"""A store whose record in the catalogue is damaged: its values are read, and the log says what is known."""

import pytest

from harness.server import HOME_NAME, NO_BACKGROUND
from harness.values import payload

pytestmark = pytest.mark.quarry_only


@pytest.fixture
def unbound(own_server):
    """t.b's store has lost the record of its table."""
    server = own_server("unbound", *NO_BACKGROUND)
    server.query("CREATE DATABASE app")
    server.query("CREATE TABLE app.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO app.t VALUES (1, %s), (2, 'short')", (payload("kept", 9000),))
    server.stop()
    (catalogue,) = (server.datadir / HOME_NAME).glob("CATALOGUE-*")
    content = bytearray(catalogue.read_bytes())
    content[content.find(b"app/t")] ^= 1
    catalogue.write_bytes(content)
    return server.start()


def test_it_is_read_and_the_log_says_what_is_known(unbound):
    assert unbound.query("SELECT b FROM app.t WHERE id = 1") == ((payload("kept", 9000),),)
    assert unbound.query("CHECK TABLE app.t")[-1][-1] == "OK"
    assert "the catalogue was damaged" in unbound.error_log()
