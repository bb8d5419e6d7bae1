"""Values of which it cannot be told whose they are: refused, unless the DBA says otherwise."""

import pymysql
import pytest

from harness.server import NO_BACKGROUND
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
    (segment,) = server.segments()
    (segment.parent / "MANIFEST").unlink()
    return server.start()


def refused_reads(server):
    return int(server.status("quarry_unbound_reads_refused")["quarry_unbound_reads_refused"])


def test_it_is_read_only_when_the_dba_says_so(unbound):
    with pytest.raises(pymysql.err.Error, match="`app`.`t`.*column 'b'.*quarry_read_unbound_stores"):
        unbound.query("SELECT b FROM app.t WHERE id = 1")
    assert refused_reads(unbound) == 1
    assert unbound.query("SELECT b FROM app.t WHERE id = 2") == ((b"short",),)
    unbound.query("SET GLOBAL quarry_read_unbound_stores = ON")
    assert unbound.query("SELECT b FROM app.t WHERE id = 1") == ((payload("kept", 9000),),)
    assert unbound.query("CHECK TABLE app.t")[-1][-1] == "OK"
    unbound.query("SET GLOBAL quarry_read_unbound_stores = OFF")
    with pytest.raises(pymysql.err.Error, match="column 'b'"):
        unbound.query("SELECT b FROM app.t WHERE id = 1")
    assert unbound.query("CHECK TABLE app.t")[-1][-1] != "OK"


def test_only_super_may_say_so(unbound):
    unbound.query("CREATE USER someone IDENTIFIED BY 'x'")
    unbound.query("GRANT ALL ON app.* TO someone")
    connection = pymysql.connect(unix_socket=unbound.socket, user="someone", password="x", ssl_disabled=True)
    try:
        with connection.cursor() as cursor:
            for scope in ("GLOBAL", "SESSION"):
                with pytest.raises(pymysql.err.Error, match="SUPER|GLOBAL"):
                    cursor.execute(f"SET {scope} quarry_read_unbound_stores = ON")
    finally:
        connection.close()
