"""The same thing done to servers under load again and again, until it fails or was done often enough: main() of programs.

Thread-safety: externally synchronised.
"""

import argparse
import random

from harness.server import SCRATCH
from harness.values import SEED


def run_cycles(description, name, servers, start, cycle):
    """Exit code of a program with the option --cycles: 0 when every cycle held, 1, with what differed, otherwise.

    description   of the program, for --help
    name          e.g. "galera-kills": what it is called, and how the names of the servers' directories begin
    servers       a Pair or a Galera; not started yet
    start         makes `servers` ready for the first cycle
    cycle         (servers, number, choices) -> what to print of it; draws from `choices`, which QUARRY_TEST_SEED repeats
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=10, help="how many (default %(default)s)")
    arguments = parser.parse_args()
    choices, number = random.Random(f"{SEED}-cycles"), 0
    try:
        start(servers)
        for number in range(1, arguments.cycles + 1):
            print(f"[{number:3}/{arguments.cycles}] {cycle(servers, number, choices)}", flush=True)
    except Exception as failure:  # noqa: BLE001 - everything must end in the summary
        print(f"FAILED in cycle {number}: {failure!r}\nseed {SEED}; files are kept in {SCRATCH}/{name}-*")
        for server in servers.running():
            server.kill()
        return 1
    servers.remove()
    print(f"{name}: {arguments.cycles} cycles, 0 differences; seed {SEED}")
    return 0
