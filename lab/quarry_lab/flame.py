"""
`python -m quarry_lab flame`: where the server's processor time goes under a load, as flame graphs (`make flame`).

For each engine, operation and size a private server gets the load of `bench --exp core`, and `perf` samples the stacks of all its threads:
processor time alone, the kernel's included; who waits is not seen. Functions of Quarry's that the compiler has put into their callers stand
in the stacks as if they had been called. Written are a picture (SVG: frames over their callers, width is time, hover for figures), the folded
stacks that other tools for flame graphs read, and the shares of kernel, server and engine.

It answers where the time goes, not how fast anything is: sampling costs time itself, and one load is measured once.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quarry_server.server import BUILD, PLUGIN
from rich.console import Console
from rich.table import Table

from .design.request import BENCH_OUTPUT, LabError
from .design.variants import ALL, KIB, Variant, create_table
from .load import sysbench
from .load.payload import Payload
from .run.tables import size_label
from .run.verb import chosen, exit_code_of, numbers
from .servers.lab_server import DATABASE, LabServer, parse_mycnf

OPERATIONS = ("read", "insert", "mix")
ENGINES = ("innodb", "quarry")
# Hot values: all of them fit any cache.
SERVER = {"innodb_buffer_pool_size": "1G", "loose_quarry_cache_size": "1G"}
ROWS_BYTES = 256 << 20
HERTZ = 199  # of each processor; beside no clock's round number
STACK_BYTES = 24 << 10  # copied with each sample and unwound later: the server is built without frame pointers
WARMUP_SECONDS = 3

Stack = tuple[tuple[str, str], ...]  # (layer, function) from the outermost caller on
LAYERS = {"kernel": "#9aa5b1", "server": "#e8a33d", "quarry": "#2f7fd1", "libraries": "#8fbf7f"}


# --- stacks -----------------------------------------------------------------------------------------------------------
def layer_of(dso: str) -> str:
    """Whose code it is, by the file that holds it."""
    name = Path(dso).name
    if dso.startswith("["):
        return "libraries" if dso.startswith("[vdso") else "kernel"
    if name.startswith("ha_quarry"):
        return "quarry"
    return "server" if name == "mariadbd" else "libraries"


def function_of(symbol: str, dso: str) -> str:
    """Without parameters. Where the file has no name for the place: the file's."""
    if symbol == "[unknown]":
        return f"[{Path(dso).name.strip('[]')}]"
    anonymous, call = "(anonymous namespace)", "operator()"
    return symbol.replace(anonymous, "{anonymous}").replace(call, "operator{call}").split("(")[0]


@dataclass(frozen=True)
class Place:
    """A frame as `perf script` prints it: the address within its file, the file's name for it, the file."""

    address: str
    symbol: str
    dso: str


def samples_of(lines: Iterable[str]) -> Iterator[tuple[Place, ...]]:
    """What `perf script -F comm,ip,sym,dso` prints, sample by sample: a line of the thread's name, then frames, innermost first."""
    places: list[Place] = []
    for line in (*lines, ""):
        if line[:1].isspace() and line.strip():
            address, _, rest = line.strip().partition(" ")
            symbol, _, dso = rest.rpartition(" (")
            places.append(Place(address, symbol, dso.removesuffix(")")))
        elif places:
            yield tuple(places)
            places = []


def stacks_of(samples: Iterable[tuple[Place, ...]], inlined: Mapping[Place, tuple[str, ...]] | None = None) -> Counter[Stack]:
    """Samples by stack. `inlined`: the functions whose code stands at a place within the one that the file names, innermost first."""
    found: Counter[Stack] = Counter()
    for sample_ in samples:
        frames: list[tuple[str, str]] = []
        for place in sample_:
            layer = layer_of(place.dso)
            frames.extend((layer, function_of(name, place.dso)) for name in (inlined or {}).get(place, ()))
            frame = (layer, function_of(place.symbol, place.dso))
            if not (frames and frames[-1] == frame and frame[1].startswith("[")):  # neighbours without names are one
                frames.append(frame)
        found[tuple(reversed(frames))] += 1
    return found


def inlined_of(printed: str) -> dict[str, tuple[str, ...]]:
    """
    What `addr2line -afi` prints: by address, the functions put into the one that has a name in the file, innermost first. Left out are those
    of the C++ library: its vectors and pointers would bury the rest.
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in re.split(r"^(?=0x)", printed, flags=re.MULTILINE):
        if part:
            address, *rest = part.splitlines()
            pairs = list(zip(rest[::2], rest[1::2], strict=True))
            found[f"{int(address, 16):x}"] = tuple(name for name, source in pairs[:-1] if "/include/c++/" not in source)
    return found


def inlined_at(places: Iterable[Place]) -> dict[Place, tuple[str, ...]]:
    """For the places in Quarry's code, what stacks_of() takes as `inlined`. Errors: LabError."""
    found: dict[Place, tuple[str, ...]] = {}
    wanted = {place for place in places if layer_of(place.dso) == "quarry"}
    for dso in {place.dso for place in wanted}:
        there = sorted({place.address for place in wanted if place.dso == dso})
        reading = subprocess.run(["addr2line", "-afiC", "-e", dso], input="\n".join(there), capture_output=True, text=True, check=False)
        if reading.returncode != 0:
            raise LabError(f"addr2line could not read {dso} (exit code {reading.returncode}): {reading.stderr.strip()[-300:]}")
        names = inlined_of(reading.stdout)
        found.update({place: names.get(place.address, ()) for place in wanted if place.dso == dso})
    return found


def folded(stacks: Counter[Stack]) -> str:
    """A line for each stack: its functions from the outermost on, separated by semicolons, and how often it was met."""
    return "".join(f"{';'.join(name for _, name in stack)} {count}\n" for stack, count in sorted(stacks.items()))


def shares(stacks: Counter[Stack]) -> dict[str, float]:
    """The part of all samples whose innermost frame belongs to each layer."""
    total = sum(stacks.values())
    own = Counter()
    for stack, count in stacks.items():
        own[stack[-1][0]] += count
    return {layer: own[layer] / total for layer in LAYERS} if total else {}


@dataclass
class Frame:
    layer: str
    name: str
    samples: int = 0
    callees: dict[tuple[str, str], Frame] = field(default_factory=dict)


def tree_of(stacks: Counter[Stack]) -> Frame:
    root = Frame("", "all")
    for stack, count in stacks.items():
        frame = root
        frame.samples += count
        for layer, name in stack:
            frame = frame.callees.setdefault((layer, name), Frame(layer, name))
            frame.samples += count
    return root


# --- the picture ------------------------------------------------------------------------------------------------------
_WIDTH, _ROW, _MARGIN, _HEAD, _CHARACTER = 1400, 17, 10, 56, 6.7  # pixels; the last: a character's width
_NARROWEST = 0.4


def _placed(frame: Frame, left: float, depth: int, scale: float) -> Iterator[tuple[Frame, float, int]]:
    """Every frame that is wide enough to be seen, its left edge and how deep it lies."""
    if frame.samples * scale < _NARROWEST:
        return
    yield frame, left, depth
    for callee in sorted(frame.callees.values(), key=lambda f: f.name):
        yield from _placed(callee, left, depth + 1, scale)
        left += callee.samples * scale


def svg(stacks: Counter[Stack], title: str) -> str:
    """A flame graph, self-contained: the outermost caller at the bottom."""
    root = tree_of(stacks)
    scale = (_WIDTH - 2 * _MARGIN) / max(1, root.samples)
    placed = list(_placed(root, _MARGIN, 0, scale))
    height = _HEAD + (max(depth for _, _, depth in placed) + 1) * _ROW + _MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
             'font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="#ffffff"/>',
             f'<text x="{_MARGIN}" y="22" font-size="15">{html.escape(title)}</text>']
    left = float(_MARGIN)
    for layer, share in shares(stacks).items():
        text = f"{layer} {share:.0%}"
        parts.append(f'<rect x="{left:.0f}" y="32" width="12" height="12" fill="{LAYERS[layer]}"/><text x="{left + 17:.0f}" y="42">{text}</text>')
        left += 40 + len(text) * _CHARACTER
    for frame, x, depth in placed:
        parts.append(_box(frame, x, height - _MARGIN - (depth + 1) * _ROW, scale, root.samples))
    return "\n".join([*parts, "</svg>", ""])


def _box(frame: Frame, x: float, y: int, scale: float, total: int) -> str:
    width = frame.samples * scale
    fits = int((width - 4) / _CHARACTER)
    shown = frame.name if len(frame.name) <= fits else frame.name[:max(0, fits - 2)] + ".."
    text = f'<text x="{x + 2:.1f}" y="{y + 12}">{html.escape(shown)}</text>' if fits >= 3 else ""
    told = f"{frame.name}: {frame.samples} of {total} samples, {frame.samples / total:.1%}"
    return (f'<g><title>{html.escape(told)}</title><rect x="{x:.1f}" y="{y}" width="{max(width - 0.3, 0.2):.1f}" height="{_ROW - 1}" '
            f'fill="{LAYERS.get(frame.layer, "#d8d8d8")}"/>{text}</g>')


# --- taking them ------------------------------------------------------------------------------------------------------
def need_perf() -> None:
    """Raises LabError where stacks cannot be sampled."""
    for program, package in (("perf", "linux-perf"), ("addr2line", "binutils")):
        if shutil.which(program) is None:
            raise LabError(f"{program} is not installed (scripts/setup installs Debian's package {package})")
    tried = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise LabError(f"perf may not sample here (it needs root, or kernel.perf_event_paranoid below 1): {tried.stderr.strip()[-300:]}")


def sample(pid: int, seconds: int, directory: Path) -> Counter[Stack]:
    """The stacks of a process's threads for so long. Errors: LabError."""
    data = directory / "perf.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "--call-graph", f"dwarf,{STACK_BYTES}", "-p", str(pid), "-o", str(data),
              "--", "sleep", str(seconds)]
    done = subprocess.run(record, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"perf record failed with exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    script = ["perf", "script", "--no-inline", "-F", "comm,ip,sym,dso", "-i", str(data)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as reading:
        assert reading.stdout
        samples = list(samples_of(reading.stdout))
    data.unlink()
    if reading.returncode != 0 or not samples:
        raise LabError(f"perf script read no stacks (exit code {reading.returncode})")
    return stacks_of(samples, inlined_at(place for sample_ in samples for place in sample_))


def measure(server: LabServer, variant: Variant, operation: str, size_bytes: int, threads: int, seconds: int,
            directory: Path) -> tuple[Counter[Stack], sysbench.LoadResult]:
    """One load on a table of its own, sampled after its warm-up."""
    server.execute(create_table(variant, size_bytes, "sbtest1"))
    rows = max(64, ROWS_BYTES // size_bytes)
    # perf starts a moment after the load's warm-up and must end before the load does.
    load = sysbench.Load(operation, DATABASE, size_bytes, threads, **server.login, rows=rows, warmup_seconds=WARMUP_SECONDS, seconds=seconds + 2)
    with Payload("random") as payload:
        if operation != "insert":
            sysbench.fill(load, payload)
            for _ in range(2):  # Quarry's value cache takes in what is asked for again
                server.rows("SELECT BIT_XOR(CRC32(data)) FROM sbtest1")
        outcome: list = []
        running = threading.Thread(target=lambda: outcome.append(_run(load, payload)))
        running.start()
        try:
            running.join(WARMUP_SECONDS + 0.5)
            stacks = sample(server.pid, seconds, directory) if running.is_alive() else Counter()
        finally:
            running.join()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    server.execute("DROP TABLE sbtest1")
    return stacks, outcome[0]


def _run(load: sysbench.Load, payload: Payload) -> sysbench.LoadResult | Exception:
    try:
        return sysbench.run(load, payload)
    except Exception as error:  # raised again by who waits for it
        return error


def run(parsed: argparse.Namespace, console: Console) -> None:
    need_perf()
    output = parsed.output or BENCH_OUTPUT / "flame"
    output.mkdir(parents=True, exist_ok=True)
    table = Table(title=f"processor time of the server's process by whose code ran, {parsed.threads} clients")
    for heading in ("", *LAYERS, "samples", "events/s while sampled"):
        table.add_column(heading, justify="left" if not heading else "right")
    with tempfile.TemporaryDirectory(prefix="flame-", dir=BUILD) as directory:
        server = LabServer("flame", Path(directory) / "server", parsed.plugin, False, {**SERVER, **parse_mycnf(parsed.mycnf)})
        try:
            server.start()
            for engine in parsed.engines:
                for operation in parsed.ops:
                    for size in parsed.sizes:
                        name = f"{operation}-{size}kb-{engine}"
                        console.print(f"{name}: {WARMUP_SECONDS + parsed.seconds} s, then the stacks are unwound", highlight=False)
                        stacks, result = measure(server, ALL[engine], operation, size * KIB, parsed.threads, parsed.seconds, Path(directory))
                        title = f"{ALL[engine].label}: {operation} {size_label(size * KIB)} x{parsed.threads}, processor time of the server"
                        (output / f"{name}.svg").write_text(svg(stacks, title))
                        (output / f"{name}.folded").write_text(folded(stacks))
                        table.add_row(name, *(f"{share:.0%}" for share in shares(stacks).values()), str(sum(stacks.values())),
                                      f"{result.events_per_second:,.0f}")
        finally:
            server.close()
    console.print(table)
    console.print(f"pictures (.svg) and folded stacks in {output}", highlight=False)


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least 1")
    return int(text)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quarry_lab flame", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=chosen(OPERATIONS), default=["insert", "read"], metavar="OP,...", help=f"of {', '.join(OPERATIONS)} (default: insert,read)")
    parser.add_argument("--engines", type=chosen(ENGINES), default=list(ENGINES), metavar="NAME,...", help=f"of {', '.join(ENGINES)} (default: both)")
    parser.add_argument("--sizes", type=numbers, default=[64], metavar="KB,...", help="value sizes (default: 64)")
    parser.add_argument("--threads", type=_at_least_one, default=8, metavar="N", help="client threads (default: %(default)s)")
    parser.add_argument("--seconds", type=_at_least_one, default=10, metavar="S", help="sampled seconds of each (default: %(default)s)")
    parser.add_argument("--mycnf", action="append", default=[], metavar="KEY=VALUE", help="server setting; repeatable")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, metavar="SO", help="the plugin to look at (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the pictures go (default: build/bench/flame)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    parsed = parse(arguments)
    return exit_code_of(lambda console: run(parsed, console))
