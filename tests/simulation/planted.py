#!/usr/bin/python3
"""Plants bugs in a copy of the core, one at a time, and wants the simulation to find each.

    tests/simulation/planted.py [--seeds 20000] [--only name ...]

The copy lies in build/planted and is built there; the tree itself is not touched. A bug is a piece of text in one file
that must be there exactly once, and what it becomes. Found means: quarry_simulation fails within that many seeds,
by one of the invariants named. First the copy without a bug must pass as many seeds as the slowest bug took.
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
COPIED = ["CMakeLists.txt", "src", "include", "tests/simulation", "tests/golden"]


@dataclass
class Bug:
    name: str
    file: str
    old: str
    new: str
    invariants: list


BUGS = [
    Bug(
        "a commit skips its fdatasync",
        "src/store/lane_flush.cc",
        "statuses[i] = files[i]->file->Sync();",
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
        "src/store/value_cache.cc",
        "const auto found = shard.index.find(locator);\n  if (found == shard.index.end()) return nullptr;",
        "const auto found = std::find_if(shard.index.begin(), shard.index.end(), [&locator](const Entry* entry) {\n"
        "    return locator.offset_bytes == entry->locator.offset_bytes;\n"
        "  });\n  if (found == shard.index.end()) return nullptr;",
        ["never-other-bytes"],
    ),
    Bug(
        "a hole is one block too wide",
        "src/gc/gc_pass.cc",
        "PunchHole(range.begin * kBlockSizeBytes, room)",
        "PunchHole(range.begin * kBlockSizeBytes, room + kBlockSizeBytes)",
        ["durable-reads-back", "gc-gives-back"],
    ),
    Bug(
        "a mark leaves out the last block of its extent",
        "src/gc/gc_pass.cc",
        "RoundUpToBlock(*place + locator.extent_size_bytes) / kBlockSizeBytes)",
        "(*place + locator.extent_size_bytes) / kBlockSizeBytes)",
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
        "src/store/lane_space.cc",
        "  AwaitFlush(ticket);\n  {\n    MutexLock lock(mutex_);\n",
        "  AwaitFlush(ticket);\n  {\n    MutexLock lock(mutex_);\n    unreported_loss_ = Status::Ok();\n",
        ["flushed-before-commit"],
    ),
    Bug(
        "a poisoned segment is appended to",
        "src/store/lane_flush.cc",
        "  if (active_ != file) return;\n",
        "  if (active_ == file || active_ != file) return;\n",
        ["nothing-after-failure", "unsynced-reads", "flushed-before-commit", "no-error-without-cause"],
    ),
    Bug(
        "the name of a new segment is not flushed",
        "src/store/store_files.cc",
        "  if (status.ok()) status = env->SyncDirectory(directory);\n",
        "",
        ["durable-reads-back"],
    ),
    Bug(
        "the trash is emptied before the drop is flushed",
        "src/store/store_directory_impl.cc",
        "binding.discarded_at_lsn > flushed_lsn",
        "binding.discarded_at_lsn > flushed_lsn + 1000",
        ["trash-rule"],
    ),
    Bug(
        "recovery cuts off one block too much",
        "src/store/store_recovery.cc",
        "std::max<uint64_t>(RoundUpToBlock(scan.end_bytes), kSegmentHeaderSizeBytes)",
        "std::max<uint64_t>(RoundUpToBlock(scan.end_bytes) - kBlockSizeBytes, kSegmentHeaderSizeBytes)",
        ["durable-reads-back", "flushed-not-cut"],
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
        "static_cast<size_t>(behind - runs_.begin()) - 1;\n  const uint64_t from_run",
        "static_cast<size_t>(behind - runs_.begin()) - (behind - runs_.begin() > 1 ? 2 : 1);\n  const uint64_t from_run",
        ["durable-reads-back", "unsynced-reads"],
    ),
    Bug(
        "a rewriting leaves out an extent that is marked",
        "src/gc/gc_pass.cc",
        "  uint64_t bytes = 0;\n  uint64_t end_units = 0;\n",
        "  uint64_t bytes = 0;\n  uint64_t end_units = 0;\n  if (extents.size() > 1) extents.pop_back();\n",
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
        "IsLeftover(name) && store->has_manifest()",
        "IsLeftover(name) && !store->has_manifest()",
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
        "    if (!is_whole) return false;\n",
        "    return is_whole;\n",
        ["prepared-decided-right", "durable-reads-back"],
    ),
    Bug(
        "a manifest is not flushed before it takes its place",
        "tests/simulation/simulated_disk.cc",
        "  QUARRY_TRY(file->Sync());\n  return file->Close();",
        "  return file->Close();",
        ["opens-again"],
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
    for name in COPIED:
        source, target = REPOSITORY / name, COPY / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            # Times are kept, so that a second run compiles little.
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)


def build(jobs):
    commands = [
        ["cmake", "-S", COPY, "-B", COPY / "build", "-G", "Ninja", "-DQUARRY_TESTS=OFF", "-DQUARRY_SIMULATION=ON"],
        ["cmake", "--build", COPY / "build", "-j", str(jobs), "--target", "quarry_simulation"],
    ]
    for command in commands:
        done = run(command)
        if done.returncode != 0:
            print(done.stdout[-6000:])
            sys.exit("planted: the copy does not build")


def simulate(seeds):
    """The runs made, and the line of the violation or None."""
    done = run([COPY / "build" / "quarry_simulation", "--seeds", str(seeds)])
    broken = re.search(r"^seed \d+ broke (?P<what>.*)$", done.stdout, re.M)
    runs = re.search(r"^(\d+) runs in", done.stdout, re.M)
    if broken is None and done.returncode != 0:
        return 0, f"exit code {done.returncode}: {done.stdout[-300:]}"
    return int(runs[1]) if runs else 0, broken["what"] if broken else None


def plant(bug, seeds, jobs):
    """Runs that it took to find, or None."""
    path = COPY / bug.file
    text = path.read_text(encoding="utf-8")
    if text.count(bug.old) != 1:
        sys.exit(f"planted: '{bug.name}': its text is {text.count(bug.old)} times in {bug.file}, not once")
    path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
    try:
        build(jobs)
        runs, what = simulate(seeds)
    finally:
        path.write_text(text, encoding="utf-8")
    is_found = what is not None and any(what.startswith(f"{name}:") for name in bug.invariants)
    print(f"{'found' if is_found else 'MISSED':<8}{runs:>7} runs  {bug.name}\n        {what or 'nothing broke'}", flush=True)
    return runs if is_found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20000, help="at most so many for each bug (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parallel compilations (default: %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="text", help="only bugs whose name holds one of these")
    arguments = parser.parse_args()
    bugs = [bug for bug in BUGS if not arguments.only or any(text in bug.name for text in arguments.only)]
    if not bugs:
        parser.error("no bug has such a name; there are: " + "; ".join(bug.name for bug in BUGS))
    copy_tree()
    found = [plant(bug, arguments.seeds, arguments.jobs) for bug in bugs]
    slowest = max([runs for runs in found if runs is not None], default=1)
    build(arguments.jobs)
    runs, what = simulate(slowest)
    print(f"without a bug: {runs} runs, {what or 'every invariant held'}")
    missed = sum(runs is None for runs in found)
    print(f"{len(bugs) - missed} of {len(bugs)} planted bugs found")
    return 0 if missed == 0 and what is None else 1


if __name__ == "__main__":
    sys.exit(main())
