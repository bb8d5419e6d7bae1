"""Tests of the differential runner itself: what it rewrites, how it reads mtr, what it takes for equal."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compare  # noqa: E402
import run as program  # noqa: E402
import trees  # noqa: E402
from rewrite import rewrite  # noqa: E402
from runner import MtrRun, Parser, Record, Results, key_of, kept_folder  # noqa: E402

SERVER_TESTS = program.SERVER / "usr" / trees.TEST_TREE


@pytest.mark.parametrize(
    "before, after",
    [
        ("CREATE TABLE t (a INT) ENGINE=InnoDB;", "CREATE TABLE t (a INT) ENGINE=QUARRY;"),
        ("alter table t engine innodb;", "alter table t engine QUARRY;"),
        ("CREATE TABLE t (a INT) ENGINE = 'innodb' ROW_FORMAT=COMPRESSED;", None),
        ("SET default_storage_engine=InnoDB;", "SET default_storage_engine=QUARRY;"),
        ("let $engine_type= InnoDB;", "let $engine_type= QUARRY;"),
        ("if (`SELECT IF('$engine' != 'InnoDB', 1, 0)`)", "if (`SELECT IF('$engine' != 'QUARRY', 1, 0)`)"),
        ("SELECT * FROM information_schema.tables WHERE engine='innodb';", None),
        ("--replace_result InnoDB ENGINE MyISAM ENGINE", "--replace_result QUARRY ENGINE MyISAM ENGINE"),
        ("SHOW ENGINE INNODB STATUS;", "SHOW ENGINE INNODB STATUS;"),
        ("show engine  InnoDB mutex;", "show engine  InnoDB mutex;"),
        ("--source include/have_innodb.inc", "--source include/have_innodb.inc"),
        ("--innodb-page-size=4k", "--innodb-page-size=4k"),
        ("SET GLOBAL innodb_file_per_table=1;", "SET GLOBAL innodb_file_per_table=1;"),
        ("call mtr.add_suppression('InnoDB: Table');", "call mtr.add_suppression('InnoDB: Table');"),
        (
            "SELECT * FROM INFORMATION_SCHEMA.ENGINES\nWHERE engine = 'innodb';",
            "SELECT * FROM INFORMATION_SCHEMA.ENGINES\nWHERE engine = 'innodb';",
        ),
    ],
)
def test_rewrite(before, after):
    if after is None:
        assert "QUARRY" in rewrite(before, ".test") and "innodb" not in rewrite(before, ".test").lower()
    else:
        assert rewrite(before, ".test") == after


def test_rewrite_spells_options_as_the_command_line_does():
    assert rewrite("[innodb]\ndefault-storage-engine=InnoDB\n", ".combinations") == (
        "[innodb]\ndefault-storage-engine=quarry\n"
    )


def test_rewrite_keeps_lengths():
    text = "create table t (b blob) engine=innodb; --replace_result innodb x"
    assert len(rewrite(text, ".test")) == len(text)


def test_parser_reads_verdicts_and_their_details():
    seen = []
    parser = Parser(lambda *what: seen.append(what))
    for line in [
        "worker[01] Using MTR_BUILD_THREAD 300, with reserved ports 19000..19029",
        "main.update                              w2 [ pass ]     89",
        "innodb.alter 'b,a'                       w1 [ fail ]",
        "        Test ended at 2026-11-20 20:00:00",
        "mysqltest: At line 3: query 'x' failed",
        "engines/funcs.x 'innodb'                 [ skipped ]  Needs debug",
        "main.old                                 [ disabled ]  MDEV-1",
        "--------------------------------------------------------------------------",
        "main.never is a word in the summary",
    ]:
        parser.line(line)
    parser.end()
    assert [(key, verdict) for key, verdict, _ in seen] == [
        ("main.update", "pass"),
        ("innodb.alter,a,b", "fail"),
        ("engines/funcs.x,innodb", "skipped"),
        ("main.old", "disabled"),
    ]
    assert seen[0][2] == ["89"]
    assert "mysqltest: At line 3: query 'x' failed" in seen[1][2]
    assert seen[2][2] == ["Needs debug"]


def test_results_are_kept_per_identity(tmp_path):
    results = Results(tmp_path, "one")
    results.store(Record("engines/funcs.x,innodb", "pass", "", 1.5, "one"), None)
    assert list(results.of_test("engines/funcs.x")) == ["engines/funcs.x,innodb"]
    assert Results(tmp_path, "two").of_test("engines/funcs.x") == {}
    results.forget("engines/funcs.x")
    assert results.of_test("engines/funcs.x") == {}


def test_options_reach_the_servers_of_both_sides(tmp_path, monkeypatch):
    options = ["--mysqld=--binlog-row-image=MINIMAL", "--mysqld=--join-cache-level=5"]
    monkeypatch.setattr(sys, "argv", ["make mtr", *options])
    arguments = program.parse_arguments()
    for engine in ("innodb", "quarry"):
        run = MtrRun(tmp_path, tmp_path, engine, tmp_path, tmp_path, arguments)
        assert set(options) <= set(run.command("rpl", ["rpl_alter"]))


def test_kept_folder_whatever_the_order_of_combinations(tmp_path):
    (tmp_path / "rpl.x,row,innodb").mkdir()
    assert kept_folder(tmp_path, key_of("rpl.x", "innodb,row")) == tmp_path / "rpl.x,row,innodb"
    assert kept_folder(tmp_path, "rpl.x,mix") is None


# --- judging ----------------------------------------------------------------------------------------------------------


def side(output, verdict="pass", message="", detail=""):
    return compare.make_run(Record("s.t", verdict, detail, 0, ""), output, message)


def entry(**more):
    item = {"test": "s.t", "reason": "why", "code": "sql/handler.cc", **more}
    return compare.make_entry(item, {}, "test")


def kind(innodb, quarry, listed=None):
    return compare.judge("s.t", innodb, quarry, listed).kind


def test_engine_names_are_made_equal_and_nothing_else():
    assert kind(side("t ENGINE=InnoDB\n1\n"), side("t ENGINE=QUARRY\n1\n")) == compare.EQUAL
    assert kind(side("COMMIT /* xid=12 */\n"), side("COMMIT /* xid=3 */\n")) == compare.EQUAL
    event = "#261122 {} server id 1  end_log_pos 7\n"
    assert kind(side(event.format(" 2:51:43")), side(event.format("12:00:01"))) == compare.EQUAL
    processes = "4\troot\tlocalhost\ttest\t{}\t{}\t\tNULL\t0.000\n"
    assert kind(side(processes.format("Sleep", 44)), side(processes.format("Sleep", 37))) == compare.EQUAL
    assert kind(side(processes.format("Sleep", 44)), side(processes.format("Query", 44))) == compare.DIFFERS
    assert kind(side("1\n"), side("2\n")) == compare.DIFFERS
    assert kind(side("a\nb\n"), side("a\n")) == compare.DIFFERS
    assert compare.normalise("/x/var/2/tmp /x/var/log", ["/x/var"]) == "<run>/tmp <run>/log"


def test_what_stops_in_different_places_is_listed_with_both_messages():
    runs = side("", "fail", detail="Server [mysqld.1 - pid: 7] failed"), side("a\n", "fail", detail="DISCARD refused")
    assert kind(*runs) == compare.DIFFERS
    assert kind(*runs, entry(innodb_fails="failed$", fails="DISCARD")) == compare.BY_DESIGN
    assert kind(*runs, entry(innodb_fails="failed$", fails="IMPORT")) == compare.DIFFERS
    assert kind(*runs, entry(innodb_fails="passed$", fails="DISCARD")) == compare.DIFFERS


def test_same_failure_counts_apart_and_another_one_differs():
    stop = "mysqltest: At line 3: query 'CREATE TABLE t ENGINE={}' failed: 1005"
    innodb = side("1\n", "fail", stop.format("InnoDB"))
    assert kind(innodb, side("1\n", "fail", stop.format("QUARRY"))) == compare.BOTH_FAIL
    assert kind(innodb, side("1\n", "fail", "mysqltest: At line 3: query 'x' failed: <ER_DUP>")) == compare.DIFFERS
    late = [side("", "fail", detail=f"timeout after 240 seconds\n\nstack {where}") for where in ("a", "b")]
    assert kind(*late) == compare.BOTH_FAIL
    assert kind(innodb, side("1\n2\n", "fail", stop.format("QUARRY"))) == compare.DIFFERS
    assert kind(innodb, side("1\n")) == compare.DIFFERS
    assert kind(side("1\n"), side("1\n", "fail", stop)) == compare.DIFFERS


def test_skipped_and_not_run():
    idle = side("", "skipped", detail="Needs debug")
    assert compare.judge("s.t", idle, idle).reason == "Needs debug"
    assert kind(side("1"), idle) == compare.DIFFERS
    assert kind(side("1"), compare.make_run(None, "", "")) == compare.NOT_RUN


def test_listed_tests_may_differ_only_as_listed():
    listed = entry(lines=["^[+-]rows \\d+$"])
    assert kind(side("a\nrows 1\n"), side("a\nrows 2\n"), listed) == compare.BY_DESIGN
    assert kind(side("a\nrows 1\n"), side("b\nrows 2\n"), listed) == compare.DIFFERS
    assert kind(side("a\n"), side("a\n"), listed) == compare.NEW_PASS
    assert compare.judge("s.t", side("a\n"), side("a\n"), listed, may_be_equal=True).kind == compare.EQUAL
    assert kind(side("a\n"), side("a\n"), entry(lines=["x"], unsteady=True)) == compare.EQUAL


def test_listed_failures_must_fail_as_listed_after_the_same_output():
    listed = entry(fails="DISCARD .* of a QUARRY table is refused \\(1031\\)")
    stopped = side("a\nb\n", "fail", "mysqltest: DISCARD TABLESPACE of a QUARRY table is refused (1031)")
    assert kind(side("a\nb\nc\nd\n"), stopped, listed) == compare.BY_DESIGN
    assert kind(side("a\nx\nc\nd\n"), stopped, listed) == compare.DIFFERS
    assert kind(side("a\nb\nc\n"), side("a\nb\n", "fail", "mysqltest: crash"), listed) == compare.DIFFERS
    only_innodb = side("a\n", "fail", "mysqltest: server went away")
    assert kind(only_innodb, side("a\nb\n"), listed) == compare.DIFFERS
    assert kind(only_innodb, side("a\nb\n"), entry(innodb_fails="went away")) == compare.BY_DESIGN
    assert kind(side("a\n"), side("", "skipped", detail="x"), listed) == compare.DIFFERS
    assert kind(side("a\n"), side("", "skipped", detail="no y"), entry(skipped="no y")) == compare.BY_DESIGN


@pytest.mark.parametrize(
    "item, said",
    [
        ({"test": "s.t", "reason": "r"}, "'code' is missing"),
        ({"test": "s.t", "reason": "r", "code": "c", "line": []}, "unknown key"),
        ({"test": "s.t", "reason": "r", "code": "c", "class": "x"}, "no class 'x'"),
        ({"test": "s.t", "reason": "r", "code": "c", "lines": ["("]}, "no regular expression"),
    ],
)
def test_bad_entries_are_refused(item, said):
    with pytest.raises(compare.ListError, match=said.replace("(", "\\(")):
        compare.make_entry(item, {}, "expected.toml")


# --- the lists --------------------------------------------------------------------------------------------------------


def known_tests(suite):
    return trees.suites_tests(SERVER_TESTS, suite)


def test_the_list_names_tests_that_exist():
    for test in compare.load_list(program.HERE / "expected.toml"):
        suite, _, name = test.partition(",")[0].partition(".")
        assert name in known_tests(suite), test


def test_the_quick_selection_names_tests_that_exist():
    lines = (program.HERE / "quick.txt").read_text(encoding="utf-8").splitlines()
    tests = [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]
    assert tests
    for test in tests:
        suite, _, name = test.partition(".")
        assert name in known_tests(suite), test


def test_the_unpacked_server_is_never_written(tmp_path):
    """The copy with hard links must not be the way into the original."""
    source, target = tmp_path / "a.test", tmp_path / "b.test"
    source.write_text("create table t (a int) engine=innodb;\n", encoding="ascii")
    trees.copy_file(source, target, "quarry")
    assert "QUARRY" in target.read_text(encoding="ascii")
    assert "innodb" in source.read_text(encoding="ascii")
    assert source.stat().st_ino != target.stat().st_ino
    (tmp_path / "combinations").write_text("[innodb]\ndefault-storage-engine=innodb\n", encoding="ascii")
    trees.copy_file(tmp_path / "combinations", tmp_path / "copy", "quarry")
    assert (tmp_path / "copy").read_text(encoding="ascii") == "[innodb]\ndefault-storage-engine=quarry\n"
