"""Names for the places at which a server is killed, from the call and the kind of the file: 'sync: fdatasync of a
segment'. The server dies as it enters the call, so each name also stands for the gap between the call before and this one;
or, where it says 'after', before the call returns.
"""

import collections

# (call, kind of file): what it is for. Of those that are not here, the call and the file are the name.
STEPS = {
    ("create", "segment"): "new segment",
    ("write", "segment"): "append",
    ("fdatasync", "segment"): "sync",
    ("fsync", "segment"): "sync",
    ("truncate", "segment"): "seal",
    ("allocate", "segment"): "allocate ahead",
    ("punch", "segment"): "hole",
    ("unlink", "segment"): "unlink",
    ("mkdir", "home directory"): "new store",
    ("fsync", "home directory"): "names of the home",
    ("rename", "home directory"): "trash",
    ("rmdir", "home directory"): "trash",
}
FILES = {
    "segment": "a segment",
    "rewritten segment": "a rewritten segment",
    "home directory": "a directory of the home",
    "ibd": "an .ibd",
    "frm": "an .frm",
}


def name_of(events, client_threads, kind, torn, with_binlog):
    """The name of the last of `events`, at which the server died. Who flushes for clients is one of their threads."""
    last = events[-1]
    what = f"{last.call} of {FILES.get(last.kind, last.kind)}"
    if kind.is_late:
        what = f"after the {what}"
    elif torn and last.call == "write":
        what = f"half a {what}"
    by_client = last.thread in client_threads
    return f"{step_of(events, last, by_client, kind, with_binlog)}: {what}"


def step_of(events, last, by_client, kind, with_binlog):
    if last.kind == "rewritten segment":
        return "GC move"
    if kind.name.startswith("gc-") and not by_client and last.kind in ("segment", "CATALOGUE", "home directory"):
        return "GC"
    if last.kind == "CATALOGUE":
        return "catalogue"
    if last.kind == "segment" and not by_client and last.call in ("write", "fdatasync"):
        return "zero ahead"
    if last.kind.startswith("ib") or last.kind == "undo":
        return innodb_step(events, last, by_client, kind, with_binlog)
    if last.kind.startswith("binlog"):
        return "binlog"
    if last.kind in ("frm", "par", "ddl log", "other"):
        return "DDL"
    return STEPS.get((last.call, last.kind), "other")


def innodb_step(events, last, by_client, kind, with_binlog):
    if last.kind != "ib_logfile":
        return "InnoDB checkpoint"
    if not by_client:
        return "InnoDB, in the background"
    # Who also writes the binary log prepares before that, and commits behind it.
    before = [event for event in events[:-1] if event.thread == last.thread]
    if kind.name == "xa":
        return "XA prepare or commit"
    if with_binlog and not any(event.kind == "binlog" for event in before):
        return "InnoDB prepare"
    return "InnoDB commit"


def report(points):
    """The table of kills by name."""
    print(f"\n{'point':<64}{'kills':>7}")
    for name, count in sorted(points.items()):
        print(f"{name:<64}{count:>7}")
    steps = collections.Counter()
    for name, count in points.items():
        steps[name.split(":")[0]] += count
    print("in all: " + ", ".join(f"{count} {step}" for step, count in steps.most_common()), flush=True)
