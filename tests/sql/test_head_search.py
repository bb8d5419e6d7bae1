"""The search for heads finds what the engine writes, and nothing else (tests/harness/heads.py)."""

import pytest

from harness.heads import HeadSearch, find_trailers, is_trailer, make_trailer
from harness.segments import TRAILER_MAGIC, TRAILER_SIZE_BYTES
from harness.server import REPOSITORY
from harness.values import payload

GOLDEN = sorted((REPOSITORY / "tests" / "golden").glob("v1/*head-*.bin"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_golden_head_is_found(path):
    head = path.read_bytes()
    trailer = head[-TRAILER_SIZE_BYTES:]
    assert len(GOLDEN) == 12 and is_trailer(trailer)
    data = payload("before", 1000) + head + payload("behind", 100)
    assert list(find_trailers(data)) == [(1000 + len(head) - TRAILER_SIZE_BYTES, trailer)]
    with pytest.raises(AssertionError, match=f"somewhere: 1 raw heads: at {1000 + len(head) - TRAILER_SIZE_BYTES}, "):
        HeadSearch([make_trailer()]).check(data, "somewhere")


def test_what_only_ends_like_a_head_is_none():
    trailer = make_trailer()
    for at in range(TRAILER_SIZE_BYTES):
        damaged = bytearray(trailer)
        damaged[at] ^= 1
        assert not list(find_trailers(b"x" * 100 + damaged)), f"byte {at}"
    assert not list(find_trailers(trailer[1:]))
    assert not list(find_trailers(payload("no head", 500) + TRAILER_MAGIC))


def test_own_bytes_are_counted_and_passed_over(tmp_path):
    own, other = make_trailer(), make_trailer(store=5)
    search = HeadSearch([own])
    search.check(own + own, "memory")
    search.check_rows([(1, own, None)], "rows")
    assert (search.own_found, search.bytes_searched) == (3, 3 * TRAILER_SIZE_BYTES)
    file = tmp_path / "log.000001"
    with file.open("wb") as stream:  # with a hole, which is not read
        stream.write(own)
        stream.seek(10 << 20)
        stream.write(payload("tail", 70000) + other)
    with pytest.raises(AssertionError, match="of store 5"):
        search.check_file(file)
    assert search.own_found == 4
