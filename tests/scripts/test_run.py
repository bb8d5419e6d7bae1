"""The one way in which tools, lab and tests run a program to its end."""

import subprocess

import pytest
from quarry_server.run import LINES_SHOWN, RunError, run_or_raise


class OwnError(Exception):
    pass


def test_what_a_program_says_is_returned():
    assert run_or_raise(["cat"], data="a line\n") == "a line\n"
    assert run_or_raise(["cat"], data=b"\xff", binary=True) == b"\xff"
    assert run_or_raise(["cat"]) == "", "without data nothing is read from a terminal"
    assert run_or_raise(["sh", "-c", "echo out; echo err >&2"]) == "out\n"
    assert run_or_raise(["sh", "-c", "echo out; echo err >&2"], stderr=subprocess.STDOUT) == "out\nerr\n"


def test_a_failure_holds_the_end_of_what_was_said_in_both_streams():
    with pytest.raises(OwnError) as failure:
        run_or_raise(["sh", "-c", f"seq {2 * LINES_SHOWN}; echo why >&2; exit 3"], OwnError)
    first, *lines = str(failure.value).splitlines()
    assert first.startswith("'sh -c ") and first.endswith("failed with exit code 3")
    assert len(lines) == LINES_SHOWN and lines[-1] == "  why" and lines[-2] == f"  {2 * LINES_SHOWN}"
    with pytest.raises(RunError, match="no-such-program cannot be started: No such file"):
        run_or_raise(["no-such-program"])


def test_a_program_that_hangs_is_killed_with_its_children():
    # The child holds the streams open: killing the shell alone would leave the reader waiting for it.
    with pytest.raises(RunError, match=r"did not end within 0.5 s"):
        run_or_raise(["sh", "-c", "sleep infinity & wait"], timeout_s=0.5)
