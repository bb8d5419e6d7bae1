"""Runs mtr on one engine's tree, follows what it says, and keeps one record per test.

A record is a folder build/mtr/results/<engine>/<key>/, key = suite.test[,combination...]:
  record.json  verdict (pass, fail, skipped, disabled), what mtr said, seconds, identity (what was tested: see run.py)
  output       what the test printed; message: mariadb-test's own last words; exit: its exit code (see keep_output.sh)

mtr runs in a session of its own and is stopped by SIGINT to it; its servers end with it (my_safe_process sees to that).
Thread-safety: externally synchronised; one MtrRun at a time, for all share one vardir.
"""

import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERDICT = re.compile(
    r"^(?P<name>\S+\.\S+?)(?: '(?P<combination>[^']*)')?\s+(?:w\d+ )?"
    r"\[ (?:retry-|\d+ )?(?P<verdict>pass|fail|exp-fail|skipped|disabled) \]\s*(?P<rest>.*)$"
)
DETAIL_END = re.compile(r"^(worker\[\d+\]|-{20,}|={20,}|The servers were restarted|Resuming tests|Completed:)")
DETAIL_LINES_MAX = 120
END_TIMEOUT_S = 60
# The trash sweep asks these tables of InnoDB's; mtr switches such plugins off, and a warning in the log fails a test.
OPTIONS = ["--innodb", "--loose-innodb-sys-tables", "--loose-innodb-trx"]
OVERLAYS = {"innodb": "-innobase", "quarry": "-quarry"}  # of the storage_engine suites: which engine they are about
SUITE_OPTIONS = {"engines/funcs": ["--partition"]}  # its combination [innodb] is recognised only with this


@dataclass
class Record:
    """What came of one test on one engine."""

    key: str
    verdict: str
    detail: str
    seconds: float
    identity: str

    @property
    def test(self):
        return self.key.partition(",")[0]


class Results:
    """The records of one engine, on disk."""

    def __init__(self, directory, identity):
        self.directory, self.identity = Path(directory), identity

    def folder(self, key):
        return self.directory / key

    def load(self, key):
        try:
            record = Record(**json.loads((self.folder(key) / "record.json").read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return record if record.identity == self.identity else None

    def of_test(self, test):
        """Records of every combination of a test, by key; empty when it has not been run with this identity."""
        name = self.directory / test
        keys = [
            str(path.relative_to(self.directory))
            for path in [name, *name.parent.glob(f"{name.name},*")]
            if path.is_dir()
        ]
        found = {key: self.load(key) for key in keys}
        return {key: record for key, record in found.items() if record}

    def forget(self, test):
        name = self.directory / test
        for path in [name, *name.parent.glob(f"{name.name},*")]:
            shutil.rmtree(path, ignore_errors=True)

    def store(self, record, kept):
        folder = self.folder(record.key)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if kept:
            kept.rename(folder)
        else:
            folder.mkdir()
        (folder / "record.json").write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")

    def text(self, key, name):
        """'output' or 'message' of a record; bytes are kept as they are (latin-1)."""
        try:
            return (self.folder(key) / name).read_bytes().decode("latin-1")
        except FileNotFoundError:
            return ""


def key_of(name, combination):
    return ",".join([name, *sorted(c for c in (combination or "").split(",") if c)])


class Parser:
    """Turns mtr's output, line by line, into verdicts with the lines that belong to each."""

    def __init__(self, on_verdict):
        self._on_verdict = on_verdict
        self._current = None

    def line(self, text):
        match = VERDICT.match(text)
        if match:
            self.end()
            verdict = "fail" if match["verdict"] == "exp-fail" else match["verdict"]
            self._current = (key_of(match["name"], match["combination"]), verdict, [match["rest"].strip()])
        elif self._current:
            if DETAIL_END.match(text):
                self.end()
            elif len(self._current[2]) < DETAIL_LINES_MAX:
                self._current[2].append(text)

    def end(self):
        if self._current:
            key, verdict, lines = self._current
            self._current = None
            self._on_verdict(key, verdict, lines)


@functools.lru_cache
def private_network():
    """What runs a command in a network of its own: the servers of MariaDB's tests let in root without a password at 127.0.0.1."""
    lead = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    try:
        if subprocess.run([*lead, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
            return lead
    except FileNotFoundError:
        pass
    print("mtr: this user cannot make a network namespace: meanwhile every account of this machine can log in to mtr's servers")
    return ()


class MtrRun:
    """One invocation of mtr: some tests of one suite under one engine.

    work        build/mtr; var/ (mtr's vardir) and raw/ in it are made anew
    temporary   a short path, for sockets must fit into 107 bytes
    """

    def __init__(self, work, temporary, engine, tests_tree, server, arguments):
        self.work, self.temporary, self.engine = work, temporary, engine
        self.tests_tree, self.server = tests_tree, server
        self.parallel, self.test_minutes = arguments.parallel, arguments.test_minutes
        self.inline_size, self.mysqld = arguments.inline_size, arguments.mysqld
        self.log = work / f"mtr-{engine}.log"

    def command(self, suite, tests):
        pattern = "^(" + "|".join(re.escape(test) for test in tests) + ")$"
        options = [*OPTIONS, f"--default-storage-engine={self.engine}", *SUITE_OPTIONS.get(suite, []), *self.mysqld]
        if self.engine == "quarry":
            options += ["--plugin-load-add=ha_quarry.so", "--loose-quarry=FORCE", f"--loose-quarry-inline-size={self.inline_size}"]
        return [
            "perl",
            "mariadb-test-run.pl",
            f"--vardir={self.work / 'var'}",
            f"--tmpdir={self.temporary / 'tmp'}",
            f"--suite={suite}{self.overlay(suite)}",
            f"--do-test={pattern}",
            f"--parallel={self.parallel}",
            "--force",
            "--max-test-fail=0",
            "--max-save-core=0",
            "--max-save-datadir=0",
            f"--testcase-timeout={self.test_minutes}",
            "--suite-timeout=1440",
            *(f"--mysqld={option}" for option in options),
        ]

    def overlay(self, suite):
        return OVERLAYS[self.engine] if suite.startswith("storage_engine") else ""

    def environment(self):
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LOGNAME") if name in os.environ}
        kept["MYSQL_TEST"] = str(HERE / "keep_output.sh")
        kept["QUARRY_MTR_CLIENT"] = str(self.server / "usr" / "bin" / "mariadb-test")
        kept["QUARRY_MTR_OUTPUT"] = str(self.work / "raw")
        return kept

    def run(self, suite, tests, results, deadline, on_record):
        """Runs the tests; each gets its record in `results` as soon as mtr reports it. False when time ran out."""
        left = list(tests)
        while left:
            seen = set()
            in_time = self._once(suite, left, results, deadline, on_record, seen)
            names = {key.partition(",")[0].partition(".")[2] for key in seen}
            remaining = [test for test in left if test not in names]
            if not in_time:
                return False
            if not names:
                break  # mtr could not even begin: the log says why
            left = remaining
        return True

    def _once(self, suite, tests, results, deadline, on_record, seen):
        raw = self.work / "raw"
        shutil.rmtree(raw, ignore_errors=True)
        raw.mkdir(parents=True)

        def verdict(shown, word, lines):
            key = shown.replace(f"{suite}{self.overlay(suite)}.", f"{suite}.", 1)
            seconds = float(lines[0]) / 1000 if word == "pass" and lines[0].isdigit() else 0.0
            detail = "" if word == "pass" else "\n".join(lines).strip()
            record = Record(key, word, detail, seconds, results.identity)
            results.store(record, kept_folder(raw, shown))
            seen.add(key)
            on_record(record)

        with open(self.log, "w", encoding="latin-1") as log:
            command = self.command(suite, tests)
            log.write(" ".join(command) + "\n")
            process = subprocess.Popen(
                ["nice", *private_network(), *command],
                cwd=self.tests_tree,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="latin-1",
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
            )
            late = threading.Event()
            timer = threading.Timer(max(deadline - time.monotonic(), 0.1), stop, (process, late))
            timer.daemon = True
            timer.start()
            try:
                parser = Parser(verdict)
                for line in process.stdout:
                    log.write(line)
                    parser.line(line.rstrip("\n"))
                if not late.is_set():
                    parser.end()
            except BaseException:
                stop(process, late)
                raise
            finally:
                timer.cancel()
                end(process)
                end_leftovers(self.work / "var")
        return not late.is_set()


def kept_folder(raw, key):
    """The folder that keep_output.sh made for a test; mtr hands it the combinations in another order."""
    name, _, combinations = key.partition(",")
    parent = (raw / name).parent
    wanted = sorted(c for c in combinations.split(",") if c)
    for path in [raw / name] if not wanted else parent.glob(f"{Path(name).name},*"):
        if path.is_dir() and sorted(path.name.split(",")[1:]) == wanted:
            return path
    return None


def stop(process, late):
    late.set()
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)


def end(process):
    """Waits for mtr, whose output has ended."""
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end_leftovers(vardir):
    """Waits for the servers of a stopped mtr (my_safe_process ends them), and kills what stays. Ours alone: the
    command line names our vardir."""
    needle = f"{vardir}/".encode()
    deadline = time.monotonic() + END_TIMEOUT_S
    while True:
        pids = [pid for pid in running() if needle in command_line(pid)]
        if not pids:
            return
        if time.monotonic() > deadline:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)


def running():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
