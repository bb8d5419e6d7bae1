"""GC as a test drives it: asks for mark passes, waits for what they do, reads their figures.

Thread-safety: externally synchronised.
"""

from harness.waiting import wait_for


class Gc:
    """The GC of one server."""

    def __init__(self, server):
        self.server = server

    def status(self):
        found = self.server.status("quarry_gc%")
        text = ("state", "last_error", "last_damage")
        names = {name.removeprefix("quarry_gc_"): value for name, value in found.items()}
        return {name: value if name in text else int(value) for name, value in names.items()}

    def request(self):
        """Asks for a pass over every table; returns the request's number."""
        self.server.query("SET GLOBAL quarry_gc_now = ON")
        return self.status()["requests"]

    def wait_done(self, request):
        wait_for(lambda: f"request {request}: {self.status()}", lambda: self.status()["requests_done"] >= request)

    def run(self):
        """One pass over every table, to its end. What it did: {"passes": ..., "passes_dropped": ..., ...}."""
        before = self.status()
        self.wait_done(self.request())
        after = self.status()
        done = {name: after[name] - before[name] for name in after if isinstance(after[name], int)}
        done["last_error"] = after["last_error"]
        return done

    def run_well(self):
        done = self.run()
        assert done["passes_dropped"] == 0 and done["passes"] > 0, done
        return done

    def wait_held(self, looks=3):
        """Until a pass has looked `looks` more times at what it waits for, and goes on waiting."""
        first = self.status()["looks"]
        state = wait_for(
            lambda: f"a pass that waits: {self.status()}",
            lambda: self.status()["looks"] >= first + looks and self.status()["state"],
        )
        assert state.startswith("waiting for"), self.status()
        return state

    def wait_state(self, start):
        wait_for(lambda: f"state {start}...: {self.status()}", lambda: self.status()["state"].startswith(start))


def figures(server, schema, table):
    """Real and live bytes of a table, over its partitions, as QUARRY_TABLES has them."""
    rows = server.query(
        "SELECT COALESCE(SUM(real_bytes), 0), COALESCE(SUM(live_bytes), 0) FROM information_schema.quarry_tables "
        "WHERE table_schema = %s AND table_name = %s AND state = 'BOUND'",
        (schema, table),
    )
    return int(rows[0][0]), int(rows[0][1])
