#!/usr/bin/python3
"""Plants bugs in a copy of the core, one at a time, and wants the simulation to find each.

    tests/simulation/planted.py [--seeds 20000] [--only name ...]

The copy lies in build/planted and is built there; the tree itself is not touched. A bug is a piece of text in one file
that must be there exactly once, and what it becomes; or several; or a define (QUARRY_PLANTED_BUG_...) under which the
tree itself has a bug that it once had. Found means: the bug's simulation fails within that many seeds, by one of the
invariants named. The copy without a bug must then pass as many seeds as the slowest bug took.
Exit code 0: every bug was found.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
COPY = REPOSITORY / "build" / "planted"
COPIED = ["CMakeLists.txt", "src", "include", "tests/simulation", "tests/scale", "tests/golden"]


# One thread, and several of which the seed says who goes on.
SINGLE = "quarry_simulation"
THREADS = "quarry_thread_simulation"
# Where the core sees by itself that it is wrong: its assertions hold in that program.
ASSERTION = "exit code -6"


@dataclass
class Bug:
    name: str
    file: str
    old: str
    new: str
    invariants: list
    program: str = SINGLE
    more: tuple = ()  # further (file, old, new)
    define: str = ""

    def edits(self):
        return [edit for edit in [(self.file, self.old, self.new), *self.more] if edit[0]]


BUGS = [
    Bug(
        "a commit skips its fdatasync",
        "src/append/lane_flush.cc",
        "statuses[i] = files[i]->file()->Sync();",
        "statuses[i] = Status::Ok();",
        ["flushed-before-commit"],
    ),
    Bug(
        "the checksum of parts is not looked at",
        "src/format/extent.cc",
        "if (Checksum64(stored) != entry.checksum)",
        "if (Checksum64(stored) != entry.checksum && stored.empty())",
        ["never-other-bytes"],
    ),
    Bug(
        "the value cache looks at offsets alone",
        "src/cache/value_cache.cc",
        "const auto found = shard.index.find(locator);\n  if (found == shard.index.end()) return nullptr;",
        "const auto found = std::find_if(shard.index.begin(), shard.index.end(), [&locator](const Entry* entry) {\n"
        "    return locator.offset_bytes == entry->locator.offset_bytes;\n"
        "  });\n  if (found == shard.index.end()) return nullptr;",
        ["never-other-bytes"],
    ),
    Bug(
        "a hole is one block too wide",
        "src/gc/gc_reclaim.cc",
        "PunchHole(range.begin * kBlockSizeBytes, room)",
        "PunchHole(range.begin * kBlockSizeBytes, room + kBlockSizeBytes)",
        ["durable-reads-back", "gc-gives-back"],
    ),
    Bug(
        "a mark leaves out the last block of its extent",
        "src/gc/gc_pass.cc",
        "RoundUpToBlock(place.place_bytes + place.size_bytes) / kBlockSizeBytes)",
        "(place.place_bytes + place.size_bytes) / kBlockSizeBytes)",
        ["durable-reads-back", "gc-gives-back"],
    ),
    Bug(
        "GC takes segments that are still appended to",
        "src/store/store_files.cc",
        "for (const std::shared_ptr<Lane>& lane : lanes_) lane->SealForGc();\n}",
        "for (const auto& segment : AllSegments()) segment->set_state(SegmentState::kSealed);\n}",
        ["durable-reads-back", "unsynced-reads", "gc-gives-back"],
    ),
    Bug(
        "the sealing for GC swallows the report of a loss",
        "src/append/lane_space.cc",
        "  if (file != nullptr) (void)CutTail(file);  // a tail",
        "  (void)SyncAll();\n  if (file != nullptr) (void)CutTail(file);  // a tail",
        ["flushed-before-commit"],
    ),
    Bug(
        "a poisoned segment is appended to",
        "src/append/lane_flush.cc",
        "  if (active_ != file) return;\n",
        "  if (active_ == file || active_ != file) return;\n",
        ["nothing-after-failure", "unsynced-reads", "flushed-before-commit", "no-error-without-cause"],
    ),
    Bug(
        "the name of a new segment is not flushed",
        "src/store/store_files.cc",
        "  if (status.ok()) status = env->SyncDirectory(directory);\n",
        "",
        ["durable-reads-back", "stats-match-files"],
    ),
    Bug(
        "the trash is emptied before the drop is flushed",
        "src/store/store_bindings.cc",
        "binding.discarded_at_lsn > flushed_lsn",
        "binding.discarded_at_lsn > flushed_lsn + 1000",
        ["trash-rule"],
    ),
    Bug(
        "a rewritten segment takes its name unflushed",
        "src/gc/segment_rewrite.cc",
        "  QUARRY_TRY(target_->Sync());\n",
        "",
        ["durable-reads-back"],
    ),
    Bug(
        "the map of a rewritten segment is off by one entry",
        "src/format/segment_map.cc",
        "const SegmentRun& run = *(behind - 1);\n",
        "const SegmentRun& run = *(behind - (behind - runs_.begin() > 1 ? 2 : 1));\n",
        ["durable-reads-back", "unsynced-reads"],
    ),
    Bug(
        "a rewriting leaves out an extent that is marked",
        "src/gc/gc_reclaim.cc",
        "  uint64_t bytes = 0;\n  uint64_t end_units = 0;\n",
        "  uint64_t bytes = 0;\n  uint64_t end_units = 0;\n  if (extents.size() > 1) candidate->extents.pop_back();\n",
        ["durable-reads-back"],
    ),
    Bug(
        "the old file of a rewritten segment stays in use",
        "src/store/store_rewrite.cc",
        "  RegisterSegment(rewritten);\n",
        "",
        ["stats-match-files", "durable-reads-back", "gc-gives-back"],
    ),
    Bug(
        "what a rewriting that was cut off left stays",
        "src/store/store_recovery.cc",
        "IsLeftover(name) && MayRemoveFrom(number)",
        "IsLeftover(name) && !MayRemoveFrom(number)",
        ["no-leftovers"],
    ),
    Bug(
        "the parts of a prepared transaction are not looked at",
        "src/store/commit_check.cc",
        " || !VerifyPart(*index, part, stored).ok()) return false;",
        ") return false;",
        ["durable-reads-back"],
    ),
    Bug(
        "of a prepared transaction only the first extent is looked at",
        "src/store/commit_check.cc",
        "    if (!is_whole) {\n",
        "    if (is_whole) return true;\n    if (!is_whole) {\n",
        ["prepared-decided-right", "durable-reads-back"],
    ),
    Bug(
        "a segment is used before its record is durable",
        "src/store/store_records.cc",
        "  return context_->catalogue->Sync(ticket);\n",
        "  return Status::Ok();\n",
        ["recorded-before-use"],
    ),
    Bug(
        "a flush of the catalogue is not made",
        "src/context/catalogue_file.cc",
        "  return file_->Sync();\n",
        "  return Status::Ok();\n",
        ["durable-reads-back", "bindings-kept", "opens-again", "trash-rule"],
    ),
    Bug(
        "damage of the catalogue is ignored",
        "",
        "",
        "",
        ["damage-takes-nothing"],
        define="QUARRY_PLANTED_BUG_DAMAGE_IGNORED",
    ),
    Bug(
        "a ticket is taken before the bytes are reserved",
        "src/append/lane.cc",
        "  StagedRange range;\n  {\n    MutexLock lock(mutex_);\n",
        "  StagedRange range;\n  {\n    MutexLock lock(mutex_);\n"
        "    const uint64_t early = flush_started_ + 1;\n",
        ["flushed-before-commit"],
        THREADS,
        (
            (
                "src/append/lane.cc",
                "    range = TakeFromChunk(size);\n",
                "    range = TakeFromChunk(size);\n    range.ticket = early;\n",
            ),
        ),
    ),
    Bug(
        "a wake-up comes before its flag",
        "src/append/lane_flush.cc",
        "statuses[i] = files[i]->file()->Sync();\n",
        "statuses[i] = files[i]->file()->Sync();\n  turn_[number & 1U].NotifyAll();\n",
        ["nobody-waits-for-ever"],
        THREADS,
        (
            (
                "src/append/lane_flush.cc",
                "  turn_[number & 1U].NotifyAll();\n  Settle(std::move(losses));\n",
                "  Settle(std::move(losses));\n",
            ),
        ),
    ),
    Bug(
        "nobody is woken to lead the next flush",
        "src/append/lane_flush.cc",
        "  if (!next_is_wanted) turn_[(number + 1) & 1U].NotifyOne();\n",
        "",
        ["nobody-waits-for-ever"],
        THREADS,
    ),
    Bug(
        "a flush reports done for a later write",
        "src/append/lane_flush.cc",
        "flush_completed_.store(number, std::memory_order_release);",
        "flush_completed_.store(std::max(number, last_ticket_), std::memory_order_release);",
        ["flushed-before-commit"],
        THREADS,
    ),
    Bug(
        "a flush does not wait for those who still fill its bytes",
        "src/append/lane_flush.cc",
        "  while (HasUnwritten(number)) written_.Wait(mutex_);\n",
        "",
        ["flushed-before-commit"],
        THREADS,
    ),
    Bug(
        "a failed write is reported to those behind it alone",
        "src/append/lane_flush.cc",
        "  first_lost_ticket = std::min(first_lost_ticket, flush_completed_ + 1);\n",
        "",
        ["flushed-before-commit", "durable-reads-back"],
        THREADS,
    ),
    Bug(
        "a pause does not wait for the task that runs",
        "src/context/task_threads.cc",
        "  ++pauses_;\n  while (running_ > 0) ended_.Wait(mutex_);\n",
        "  ++pauses_;\n",
        ["paused-is-still"],
        THREADS,
    ),
    Bug(
        "a file may be closed with what was written to it and not flushed",
        "src/append/lane_flush.cc",
        "  return file.dirty || file.private_in_flight > 0 || is_its(run_) ||\n",
        "  return is_its(run_) ||\n",
        ["flushed-before-commit", "durable-reads-back", ASSERTION],
        THREADS,
    ),
    Bug(
        "live and dead bytes are read one after the other",
        "src/store/store_records.cc",
        "  record.dead_bytes = std::min(counted_bytes, segment.dead_bytes());\n"
        "  record.live_bytes = counted_bytes - record.dead_bytes;\n",
        "  record.live_bytes = segment.live_bytes();\n  (void)counted_bytes;\n"
        "  record.dead_bytes = segment.dead_bytes();\n",
        ["counters-agree"],
        THREADS,
    ),
    # Bugs that the core had, which it keeps under a define. Each takes a build of the whole core.
    Bug(
        "appenders wait for zeros",
        "",
        "",
        "",
        ["nobody-waits-for-others", "nobody-waits-for-ever"],
        THREADS,
        define="QUARRY_PLANTED_BUG_WAIT_FOR_ZEROS",
    ),
    Bug(
        "marks are kept across two read views",
        "tests/simulation/threads/thread_clients.cc",
        "    row = view.upper_bound(key);\n",
        "    view = rows_;\n    row = view.upper_bound(key);\n",
        ["durable-reads-back"],
        THREADS,
    ),
]


def run(command, **options):
    return subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )


def copy_tree():
    """What differs is written, and so is newer than what was compiled of it; a second run compiles little."""
    wanted = set()
    for name in COPIED:
        place = REPOSITORY / name
        wanted |= {path for path in (place.rglob("*") if place.is_dir() else [place]) if path.is_file()}
    for name in COPIED:
        for target in (COPY / name).rglob("*"):
            if target.is_file() and REPOSITORY / target.relative_to(COPY) not in wanted:
                target.unlink()
    for source in wanted:
        target = COPY / source.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    # A run that was ended has left its bug in what it compiled.
    for bug in BUGS:
        for file, _, _ in bug.edits():
            (COPY / file).touch()


def build(jobs, program, define=""):
    flags = f"-DCMAKE_CXX_FLAGS={'-D' + define if define else ''}"
    commands = [
        ["cmake", "-S", COPY, "-B", COPY / "build", "-G", "Ninja", "-DQUARRY_TESTS=OFF", "-DQUARRY_SIMULATION=ON", flags],
        ["cmake", "--build", COPY / "build", "-j", str(jobs), "--target", program],
    ]
    for command in commands:
        done = run(command)
        if done.returncode != 0:
            print(done.stdout[-6000:])
            sys.exit("planted: the copy does not build")


def simulate(program, seeds, ignored=()):
    """The runs made, and the line of the violation or None."""
    done = run([COPY / "build" / program, "--seeds", str(seeds), *(["--ignore", *ignored] if ignored else [])])
    broken = re.search(r"^seed (?P<seed>\d+) broke (?P<what>.*)$", done.stdout, re.M)
    runs = re.search(r"^(\d+) runs in", done.stdout, re.M)
    if broken is None and done.returncode != 0:
        return 0, f"exit code {done.returncode}: {done.stdout[-300:]}"
    return int(runs[1]) if runs else 0, broken["what"] if broken else None


def plant(bug, seeds, jobs, ignored):
    """Runs that it took to find, or None."""
    texts = {}
    for file, old, new in bug.edits():
        path = COPY / file
        text = path.read_text(encoding="utf-8")
        texts.setdefault(path, text)
        if text.count(old) != 1:
            sys.exit(f"planted: '{bug.name}': its text is {text.count(old)} times in {file}, not once")
        path.write_text(text.replace(old, new), encoding="utf-8")
    try:
        build(jobs, bug.program, bug.define)
        ignored = [name for name in ignored if name not in bug.invariants] if bug.program == THREADS else []
        runs, what = simulate(bug.program, seeds, ignored)
    finally:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    is_found = what is not None and any(what.startswith(f"{name}:") for name in bug.invariants)
    print(f"{'found' if is_found else 'MISSED':<8}{runs:>7} runs  {bug.name}\n        {what or 'nothing broke'}", flush=True)
    return runs if is_found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20000, help="at most so many for each bug (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parallel compilations (default: %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="text", help="only bugs whose name holds one of these")
    parser.add_argument("--ignore", nargs="+", default=[], metavar="invariant", help="known to be broken in this tree")
    arguments = parser.parse_args()
    bugs = [bug for bug in BUGS if not arguments.only or any(text in bug.name for text in arguments.only)]
    if not bugs:
        parser.error("no bug has such a name; there are: " + "; ".join(bug.name for bug in BUGS))
    copy_tree()
    found = [plant(bug, arguments.seeds, arguments.jobs, arguments.ignore) for bug in bugs]
    is_sound = True
    for program in dict.fromkeys(bug.program for bug in bugs):
        runs = [run for run, bug in zip(found, bugs) if run is not None and bug.program == program]
        build(arguments.jobs, program)
        runs, what = simulate(program, max(runs, default=1), arguments.ignore if program == THREADS else ())
        print(f"without a bug: {runs} runs of {program}, {what or 'every invariant held'}")
        is_sound = is_sound and what is None
    missed = sum(runs is None for runs in found)
    print(f"{len(bugs) - missed} of {len(bugs)} planted bugs found")
    return 0 if missed == 0 and is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
