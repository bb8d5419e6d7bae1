"""The lab's plan and page: from synthetic points of every experiment to one self-contained, well-formed file."""

import io
import json
import re
from html import escape
from html.parser import HTMLParser

import pytest
from quarry_lab import cli, lab, lab_page
from quarry_lab.design import variants
from quarry_lab.design.plan import all_points
from quarry_lab.design.request import Address, LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.catalogue import EXPERIMENTS, PUBLISHED
from quarry_lab.lab_page import Chapter
from quarry_lab.report.stats import human_bytes
from quarry_lab.run import command
from quarry_lab.run import experiment as experiment_module
from quarry_lab.servers import ndb_cluster, target
from rich.console import Console
from worlds import Run

VOID = {"meta", "br", "link", "path", "use", "rect", "image", "img"}
CPU = {"noisy": False, "seconds": 10.0, "server_cpus": 1.1, "client_cpus": 0.8, "processors": 2}
# What points of the sysbench and the reader experiments hold; those with a bench of their own bring their own points.
COVERED = ("e1", "e2", "e4")


def make_record(point, noisy=False):
    rate = 1000.0 * (1 + point.threads) + len(point.variant)
    return {
        **point.as_dict(), "batch_rows": 16, "payload": "random", "memory_free_before": {"MemAvailable": 8 << 30},
        "result": {"events": 10_000, "events_per_second": rate, "latency_p95_ms": 2.5, "interval_seconds": 10.0, "writes": 1000, "reads": 9000,
                   "total_rows_written": 1000},
        "written": {"server_bytes_per_payload_byte": 1.5, "server_read_bytes_during_run": 0}, "cpu": {**CPU, "noisy": noisy},
        "memory": {"payload_bytes": 1000, "cached_bytes": {"buffer_pool": 700}}, "settle_before": {"settled": True}, "settle_after": {"settled": True},
        "quarry_status": {"quarry_autoincrement_reservations": 10},
    }


def make_run(experiment, path, rounds=3, noisy=False):
    request = experiment.request()
    request.rounds, request.plugin = rounds, path.parent / "ha_quarry.so"
    run = RunDirectory(path, experiment.identity(request))
    machine = {"cpu": "a <cpu>", "processors": 2, "memory_bytes": 24 << 30, "file_system": "ext4 rw", "commit": "abc123"}
    run.add_session({"machine": machine, "device_probes": [{"round": 1, "sequential_write_bytes_per_second": 1e9}],
                     "payload": {"kind": "random", "compression_ratio_of_64KB": {"lz4": 1.0}},
                     "servers": {"main": {"version": "10.11", "pinned": {"a": "1"}, "plugin_sha256": "0" * 64}}})
    run.records = [make_record(point, noisy) for point in all_points(experiment.plan(request))]
    (path / "points.jsonl").write_text("".join(json.dumps(p) + "\n" for p in run.records))
    run.finish()
    return run


@pytest.fixture
def chapters(tmp_path):
    (tmp_path / "ha_quarry.so").write_bytes(b"a plugin")
    return [Chapter(EXPERIMENTS[name], make_run(EXPERIMENTS[name], tmp_path / name)) for name in COVERED]


class Wellformed(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, _attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open.pop() == tag


LAB = {"scale": "normal", "started": 1.0, "finished": 5401.0, "planned_seconds": 5000.0}


def test_the_page_is_self_contained_and_well_formed(chapters):
    page = lab_page.render(chapters, LAB)
    for forbidden in ("http://", "https://", "<script", "<img src", "@import"):
        assert forbidden not in page.replace('xmlns="http://www.w3.org/2000/svg"', "").replace('xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    parser = Wellformed()
    parser.feed(page[: page.index("<svg")] + page[page.rindex("</svg>") + 6 :])
    assert parser.open == []
    assert "Three published BLOB benchmarks" in page and "a &lt;cpu&gt;" in page and "1 h 30 min" in page
    for chapter in chapters:
        assert chapter.experiment.source.text.replace("'", "&#x27;") in page
        assert all(finding.value in page and escape(finding.figure.place) in page for finding in chapter.experiment.published)
        assert all(verdict.id in page for verdict in chapter.verdicts())
    assert page.count("<svg") >= 7 and "Figures are shown, conclusions are not drawn" not in page


def test_the_table_of_all_findings_says_whose_verdicts_it_has():
    """Of E3, whose author measured InnoDB, InnoDB's."""
    table = lab_page._verdicts([Chapter(EXPERIMENTS[name], Run([])) for name in ("e2", "e3", "targets")])
    assert f"{escape(EXPERIMENTS['e2'].title)} (verdicts on Quarry)" in table
    assert f"{escape(EXPERIMENTS['e3'].title)} (verdicts on InnoDB)" in table
    assert table.count("(verdicts on ") == 2


def test_a_disturbed_or_short_lab_says_so_and_draws_no_conclusion(tmp_path):
    (tmp_path / "ha_quarry.so").write_bytes(b"a plugin")
    e4 = EXPERIMENTS["e4"]
    noisy = lab_page.render([Chapter(e4, make_run(e4, tmp_path / "noisy", noisy=True))], LAB)
    assert "conclusions are not drawn" in noisy and 'chip yes' not in noisy and 'chip no"' not in noisy
    short = lab_page.render([Chapter(e4, make_run(e4, tmp_path / "short", rounds=1))], LAB)
    assert "A look, not a measurement" in short and 'chip yes' not in short


@pytest.mark.parametrize("scale, said", [("quick", "This quick run judges nothing"), ("normal", "This run judges nothing")])
def test_a_run_that_judges_nothing_says_so_at_the_top(chapters, tmp_path, scale, said):
    assert "judges nothing" not in lab_page.render(chapters, LAB)
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "ha_quarry.so").write_bytes(b"a plugin")
    e4 = EXPERIMENTS["e4"]
    page = lab_page.render([Chapter(e4, make_run(e4, tmp_path / "short" / "e4", rounds=1))], {**LAB, "scale": scale})
    assert said in page[: page.index('class="tiles"')]
    assert re.findall(r'<div class="tile"><b class="">[^<]*</b><span>([^<]*)', page) == ["not judged", "not measured", "of measured time"]
    assert "1 round of" in page and "1 rounds" not in page and "round(s)" not in page


def test_on_a_narrow_screen_a_row_of_sentences_names_its_columns_and_an_engine_stays_in_sight(chapters):
    page = lab_page.render(chapters, LAB)
    style, narrow = page.split("</style>")[0].split("@media (max-width: 640px)")
    assert "attr(data-head)" in narrow and "attr(data-head)" not in style
    assert re.search(r"\.figures \.name, \.figures \.kept \{[^}]*position: sticky", narrow)
    tables = [table.split("</table>")[0] for table in page.split('<table class="words">')[1:]]
    assert tables
    for table in tables:
        heads = re.findall(r"<th>([^<]*)", table)
        named = re.findall(r'<td data-head="([^"]*)"', table)
        assert named and named == heads * (len(named) // len(heads))
    assert re.search(r'<td class="word name">QUARRY', page)
    assert "nth-last-child(n+5)" in style and "nth-last-child(n+5)" not in narrow, "a row that is a block has no width of its own"


def test_sizes_and_rounds_read_as_the_documents_have_them(chapters):
    page = lab_page.render(chapters, LAB)
    assert "values of 100 B, 4 KB, 6 KB, 24 KB, 64 KB, 448 KB;" in page
    assert page.count("Bars and points are medians of 3 rounds") == len(COVERED)
    assert EXPERIMENTS["e3"].size_text(4_287_156) == "4.29 MB" and EXPERIMENTS["e3"].size_text(607_930) == "608 KB"


def test_a_page_says_when_its_results_are_older_than_the_engine(chapters, monkeypatch):
    assert "Older than the code" not in lab_page.render(chapters, LAB)
    monkeypatch.setattr(lab_page, "is_older_than_the_engine", lambda commit: commit == "abc123")
    assert "Older than the code: the engine&#x27;s sources changed since E1, E2, E4 ran." in lab_page.render(chapters, LAB)


def test_a_run_of_two_commits_is_older_when_its_first_is(chapters, monkeypatch):
    first = chapters[0].last_session
    chapters[0].run.add_session({**first, "machine": {**first["machine"], "commit": "def456"}})
    monkeypatch.setattr(lab_page, "is_older_than_the_engine", lambda commit: commit == "abc123")
    assert "sources changed since E1, E2, E4 ran." in lab_page.render(chapters, LAB)


def test_a_run_that_was_gone_on_with_shows_the_servers_of_all_its_sessions(chapters):
    last = {**chapters[0].last_session, "servers": {"NDB": {"version": "9.7", "pinned": {}}}}
    chapters[0].run.add_session(last)
    page = lab_page.render(chapters[:1], LAB)
    assert "<dt>e1, server main</dt><dd>10.11; plugin 000000000000; a=1</dd>" in page and "<dt>e1, server NDB</dt><dd>9.7; </dd>" in page


def test_json_and_csv_hold_what_the_page_shows(chapters, tmp_path):
    state = lab.LabState(tmp_path, {"scale": "normal"}, fresh=False)
    steps = [lab.Step(c.experiment, type("R", (), {"output_directory": c.run.path}), 1, 0, 0, False) for c in chapters]
    assert lab.write_report(tmp_path, steps, state) == tmp_path / "index.html"
    content = json.loads((tmp_path / "lab.json").read_text())
    assert {v["id"] for v in content["verdicts"]["e4"]} >= {"e4-compress", "e4-embedded"}
    assert content["published"]["e2"][0]["there"] == "1,211.91 tps" and content["published"]["e2"][0]["here"].endswith("/s (9,017 to 9,017)")
    rows = (tmp_path / "lab.csv").read_text().splitlines()
    assert len(rows) == 1 + sum(len({(p["operation"], p["size_bytes"], p["threads"], p["variant"], p["setting"]) for p in c.run.points}) for c in chapters)


def parsed(*arguments):
    return cli.build_parser().parse_args(["lab", *arguments])


def test_every_lack_is_said_before_anything_starts(tmp_path):
    wanted = lab.requests_of(parsed("--only", "e1,e4", "--plugin", str(tmp_path / "none.so"), "--output", str(tmp_path)))
    with pytest.raises(LabError, match=r"(?s)e1 needs .*none.so.*e4 needs .*none.so"):
        lab.check_all(wanted)
    assert not list(tmp_path.iterdir())
    with pytest.raises(LabError, match="unknown 'e9'"):
        lab.requests_of(parsed("--only", "e9"))


def test_an_experiments_own_option_reaches_it_and_no_other():
    """What an experiment says when a machine lacks something: `--option drives= leaves them out`."""
    wanted = {experiment.name: request for experiment, request in lab.requests_of(parsed("--only", "e1,e5", "--option", "drives=", "--option", "sweep=0"))}
    assert (wanted["e5"].options["drives"], wanted["e1"].options["sweep"]) == ([], 0)
    assert "drives" not in wanted["e1"].options and "sweep" not in wanted["e5"].options
    with pytest.raises(LabError, match="unknown option 'drives='"):
        lab.requests_of(parsed("--only", "e1", "--option", "drives="))


def test_the_wall_time_is_planned_and_a_finished_part_of_an_interrupted_lab_is_kept(chapters, tmp_path):
    console = Console(file=io.StringIO(), width=160)
    experiment, run = chapters[0].experiment, chapters[0].run
    request = experiment.request()
    request.plugin, request.output = tmp_path / "ha_quarry.so", run.path
    wanted = [(experiment, request)]
    asked = {"scale": "normal", "runs": [experiment.identity(request)]}
    first = lab.LabState(tmp_path, asked, fresh=False)
    (step,) = lab.plan(wanted, first, True)
    # A finished run of an earlier lab is not this one's.
    assert not first.resumed and step.left == step.points and 3600 < step.seconds < 5 * 3600 and not step.target_is_left_out
    lab.print_plan(console, [step], "normal")
    shown, disk = console.file.getvalue(), human_bytes(experiment.disk_bytes(request))
    assert "together" in shown and str(step.points) in shown
    assert shown.count(disk) == 2, "what it needs on disk, and the most of any: one experiment runs after the other"
    again = lab.LabState(tmp_path, asked, fresh=False)
    assert again.resumed and lab.plan(wanted, again, False)[0].left == 0
    assert not lab.LabState(tmp_path, {**asked, "scale": "quick"}, fresh=False).resumed


def test_planned_wall_times_of_the_scales():
    """What the documents promise of the default, for the experiments of this module. tests/test_e1_plan.py has E1's with NDB."""
    def planned(scale):
        return sum(e.planned_seconds(r, all_points(e.plan(r))) for e in PUBLISHED if e.name in COVERED for r in [e.request(scale)])

    assert 2.5 * 3600 < planned("normal") < 4.5 * 3600
    assert planned("quick") < 900


@pytest.mark.parametrize("text, address", [("/tmp/x.sock", Address(socket="/tmp/x.sock")), ("db:3306", Address(host="db", port=3306))])
def test_target_addresses(text, address):
    assert target.parse_address(text) == address and address.text == text


@pytest.mark.parametrize("text", ["db", "db:", ":3306", "db:99999", "db:x"])
def test_a_target_that_is_no_address_is_refused(text):
    with pytest.raises(LabError, match="HOST:PORT"):
        target.parse_address(text)


def test_an_unreachable_target_says_what_is_needed():
    (said,) = target.needs(Address(socket="/nowhere/mysqld.sock", user="somebody"))
    assert "/nowhere/mysqld.sock" in said and "somebody" in said and target.PASSWORD_VARIABLE in said


def test_a_target_is_measured_with_the_engines_that_it_has():
    own = ["innodb", "rocksdb", "quarry-inline", "quarry-head-4m"]
    assert variants.on_target(own, {"INNODB"}) == ["target-innodb"]
    assert variants.on_target(own, {"NDBCLUSTER"}) == ["target-ndb-inline", "target-ndb-head-4m"]
    ndb = variants.ALL["target-ndb-inline"]
    assert variants.create_table(ndb, 4096, "t").endswith('COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE=4096") ENGINE=NDBCLUSTER')
    assert ndb.session_sql == "SET ndb_blob_read_batch_bytes=65536, ndb_blob_write_batch_bytes=65536, ndb_batch_size=65536"
    default = variants.ALL["target-ndb-head"]
    assert variants.create_table(default, 65536, "t") == "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB) ENGINE=NDBCLUSTER"


def test_the_cluster_of_make_ndb_is_measured_with_ndb_alone_unless_it_is_named(monkeypatch):
    monkeypatch.setattr(experiment_module, "local_cluster", lambda: Address(socket="/ndb"))
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)
    monkeypatch.setattr(command, "engines_of", lambda _address: {"INNODB", "NDBCLUSTER"})

    def added(name, *arguments):
        experiment = EXPERIMENTS[name]
        request = command.with_target(experiment, experiment.request(), cli.build_parser().parse_args(["bench", "--exp", name, *arguments]))
        return {variants.ALL[key].engine for key in request.variants if key.startswith("target-")}

    for name in ("e1", "e2"):
        assert (added(name), added(name, "--target", "/ndb")) == ({"NDBCLUSTER"}, {"InnoDB", "NDBCLUSTER"})


def test_without_a_cluster_of_make_ndb_nothing_is_added(tmp_path, monkeypatch):
    monkeypatch.setattr(target, "NDB_SOCKET", tmp_path / "mysqld.sock")
    assert target.local_cluster() is None
    (tmp_path / "mysqld.sock").touch()  # left behind: nobody answers
    assert target.local_cluster() is None
