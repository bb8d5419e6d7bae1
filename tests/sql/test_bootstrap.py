"""`mariadbd --bootstrap`, which mariadb-install-db and the scripts of packages run with the configuration as it is."""

import subprocess

from harness.server import Server


def test_a_server_that_bootstraps_ends_well_with_the_engine_in_it(request):
    server = Server("bootstrap")
    request.addfinalizer(server.remove)
    server.start()
    server.query("CREATE DATABASE d")
    server.stop()
    statements = (
        "CREATE TABLE d.t (id INT PRIMARY KEY, b LONGTEXT) ENGINE=QUARRY;\n"
        "INSERT INTO d.t VALUES (1, REPEAT('q', 100000));\n"
        "UPDATE d.t SET b = REPEAT('r', 50000);\n"
    )
    done = subprocess.run(
        [*server.private.command(), "--bootstrap"], input=statements, capture_output=True, text=True, check=False, timeout=120
    )
    log = server.private.error_log.read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert "Assertion" not in log
    server.start()
    assert server.query("SELECT LENGTH(b), LEFT(b, 1) FROM d.t") == ((50000, "r"),)
