"""A node made by wsrep_sst_method=mariabackup, which leaves segments out: it must not pass for a node with its values."""

import pathlib
import sys

import pymysql
import pytest
from quarry_cluster.galera import why_no_galera
from quarry_server.server import HOME_NAME

from harness.cluster import Galera
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only


@pytest.fixture
def pair():
    reason = why_no_galera()
    if reason:
        pytest.skip(reason)
    made = Galera(2, name="galera-mb", options=["--wsrep-sst-method=mariabackup", "--wsrep-sst-auth=root:", "--quarry=ON"])
    for node in made.nodes:
        # Handed on to mariadb-backup, which does not know it.
        node.private.options = [option for option in node.private.options if "buffer-pool-size" not in option]
    stand_in = made.directory / "bin" / "socat"
    stand_in.write_text(f"#!{sys.executable}\n" + (pathlib.Path(__file__).parent / "socat.py").read_text())
    stand_in.chmod(0o755)
    yield made
    made.remove()


def test_it_says_that_the_values_are_missing(pair):
    donor = pair.start(0, "--wsrep-new-cluster")
    donor.query("CREATE DATABASE d")
    donor.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    donor.query("INSERT INTO d.t SELECT seq, REPEAT('x', 20000) FROM d.seq_1_to_10")
    joiner = pair.start(1)
    # The transfer was what it was asked to be, and the donor said what it leaves out.
    assert "mariabackup SST completed on donor" in donor.error_log()
    assert "a backup starts without quarry-backup" in donor.error_log()
    # The rows are there, the values are not: the engine does not start over that.
    assert (joiner.datadir / "d" / "t.ibd").exists() and not (joiner.datadir / HOME_NAME).exists()
    assert "1 QUARRY tables are here (the first: d/t)" in joiner.error_log()
    assert "wsrep_sst_method=rsync" in joiner.error_log()
    with pytest.raises(pymysql.err.MySQLError, match="Unknown storage engine 'QUARRY'"):
        joiner.query("SELECT MD5(b) FROM d.t")
    # It leaves the cluster at the first change of such a table, rather than go on without.
    donor.query("INSERT INTO d.t VALUES (100, REPEAT('y', 20000))")
    wait_for("the joiner has left", lambda: donor.query("SHOW STATUS LIKE 'wsrep_cluster_size'")[0][1] == "1")
    assert donor.query("SELECT COUNT(*), SUM(LENGTH(b)) FROM d.t") == ((11, 220000),)
