"""Flame graphs: stacks as perf prints them, their shares and the picture; what is refused; one real sample."""

import xml.etree.ElementTree as ElementTree

import pytest
from quarry_lab import flame
from quarry_lab.design.request import LabError
from quarry_server.server import PLUGIN

SCRIPT = """mariadbd 
\tffffffff81e0 copy_to_iter ([kernel.kallsyms])
\t    7f0000001000 __libc_pread (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    7f0000002000 quarry::(anonymous namespace)::Read(quarry::Locator const&, int (*)(char)) (/b/plugin/ha_quarry.so)
\t    560000003000 handler::ha_index_read_map(unsigned char*) (/m/usr/sbin/mariadbd)
\t    560000003100 [unknown] (/m/usr/sbin/mariadbd)
\t    560000003200 [unknown] (/m/usr/sbin/mariadbd)

mariadbd 
\t    560000003000 handler::ha_index_read_map(unsigned char*) (/m/usr/sbin/mariadbd)
\t    560000003100 [unknown] (/m/usr/sbin/mariadbd)

mariadbd 
\t    560000003000 handler::ha_index_read_map(unsigned char*) (/m/usr/sbin/mariadbd)
\t    560000003100 [unknown] (/m/usr/sbin/mariadbd)
"""


def why_no_samples():
    try:
        flame.need_perf()
    except LabError as error:
        return str(error)
    return None


def test_stacks_are_read_outermost_first_and_counted():
    stacks = flame.stacks_of(flame.samples_of(SCRIPT.splitlines(keepends=True)))
    server = (("server", "[mariadbd]"), ("server", "handler::ha_index_read_map"))
    deep = (*server, ("quarry", "quarry::{anonymous}::Read"), ("libraries", "__libc_pread"), ("kernel", "copy_to_iter"))
    assert stacks == {server: 2, deep: 1}
    assert flame.folded(stacks).splitlines() == [
        "[mariadbd];handler::ha_index_read_map 2",
        "[mariadbd];handler::ha_index_read_map;quarry::{anonymous}::Read;__libc_pread;copy_to_iter 1",
    ]


PLACES = """0x00007f0000002000
std::vector<int>::push_back(int)
/usr/include/c++/12/bits/stl_vector.h:1280
quarry::Decode(std::span<unsigned char const>)
/b/src/store/decode.cc:7
operator()
/b/src/store/read.cc:31
quarry::(anonymous namespace)::Read(quarry::Locator const&, int (*)(char))
/b/src/store/read.cc:30
0x0000000000003000
??
??:0
"""


def test_what_was_put_into_its_caller_stands_on_it():
    names = flame.inlined_of(PLACES)
    assert names == {"7f0000002000": ("quarry::Decode(std::span<unsigned char const>)", "operator()"), "3000": ()}
    samples = list(flame.samples_of(SCRIPT.splitlines()))
    stacks = flame.stacks_of(samples, {place: names[place.address] for place in samples[0] if place.address in names})
    server = (("server", "[mariadbd]"), ("server", "handler::ha_index_read_map"))
    engine = [("quarry", name) for name in ("quarry::{anonymous}::Read", "operator{call}", "quarry::Decode")]
    assert stacks == {server: 2, (*server, *engine, ("libraries", "__libc_pread"), ("kernel", "copy_to_iter")): 1}


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    if flame.shutil.which("addr2line") is None:
        pytest.skip("addr2line is not installed")
    (tmp_path / "ha_quarry.so").write_text("nothing\n")
    with pytest.raises(LabError, match="ha_quarry.so"):
        flame.inlined_at([flame.Place("10", "f", str(tmp_path / "ha_quarry.so"))])


def test_time_belongs_to_whose_code_ran():
    shares = flame.shares(flame.stacks_of(flame.samples_of(SCRIPT.splitlines())))
    assert {layer: round(share, 2) for layer, share in shares.items()} == {"kernel": 0.33, "server": 0.67, "quarry": 0, "libraries": 0}
    assert flame.shares(flame.stacks_of(())) == {}


def test_in_the_picture_width_is_time_and_callees_stand_on_their_callers():
    picture = flame.svg(flame.stacks_of(flame.samples_of(SCRIPT.splitlines())), "reads <64 KB>")
    boxes = {}
    for group in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text, group[1].attrib
        boxes[title.split(":")[0] if "::" not in title else title.rsplit(": ", 1)[0]] = (float(box["x"]), float(box["y"]), float(box["width"]))
    whole, read = boxes["all"], boxes["quarry::{anonymous}::Read"]
    assert read[2] == pytest.approx(whole[2] / 3, abs=1)
    assert whole[1] > boxes["[mariadbd]"][1] > boxes["handler::ha_index_read_map"][1] > read[1]
    assert whole[0] <= read[0] and read[0] + read[2] <= whole[0] + whole[2] + 1
    assert "reads &lt;64 KB&gt;" in picture and "1 of 3 samples, 33.3%" in picture


@pytest.mark.parametrize("arguments", [["--ops", "read,fly"], ["--engines", "oracle"], ["--threads", "0"], ["--sizes", "64,x"]])
def test_nonsense_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        flame.parse(arguments)
    assert "error:" in capsys.readouterr().err


def test_without_perf_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert flame.main(["--output", str(tmp_path / "out")]) == 1
    assert "linux-perf" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
def test_a_load_is_sampled(monkeypatch, tmp_path, capsys):
    if reason := why_no_samples():
        pytest.skip(reason)
    monkeypatch.setattr(flame, "ROWS_BYTES", 4 << 20)
    monkeypatch.setattr(flame, "SERVER", {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"})
    assert flame.main(["--engines", "quarry", "--seconds", "2", "--threads", "2", "--output", str(tmp_path)]) == 0, capsys.readouterr().out
    insert = (tmp_path / "insert-64kb-quarry.folded").read_text()
    assert "quarry::StoreImpl::Sync" in insert and "ha_commit_trans" in insert
    assert "quarry::" in (tmp_path / "read-64kb-quarry.folded").read_text()
    for name in ("insert", "read"):
        ElementTree.parse(tmp_path / f"{name}-64kb-quarry.svg")
