"""A world in which every figure is the one that a document gives: its rules must find it there. E1's is in test_e1_findings.py."""

from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.design import published
from quarry_lab.experiments.e3.findings import RANDOM
from quarry_lab.experiments.e4 import space
from worlds import DOCUMENT_BYTES, MEDIUM_BYTES, Run, fetch, fetched, points

UUID = "2e37598d-d17a-9330-cd87-594ba18cfc87"
E3 = published.document("e3")


def others_than_reproduced(name, rounds, suffix="", **session):
    """Claims of the engine with this suffix that have another verdict."""
    found = {verdict.id: verdict.state for verdict in EXPERIMENTS[name].verdicts(Run(rounds, **session))}
    states = {claim: found.get(claim + suffix) for claim in published.document(name).claims}
    return {claim: state for claim, state in states.items() if state != "reproduced"}


def test_the_cluster_of_e2s_document_reproduces_every_claim():
    """What readers keep beside an updater has no figure there."""
    value = published.document("e2").value
    rounds = [p for n in (1, 256, 1024) for p in points("insert", 1024, 8, f"target-ndb-prefetch-{n}", value(f"prefetch-{n}"))]
    for kind, rate, kept in (("2blob", value("two-blobs"), 0.5), ("2varbinary", value("two-varbinarys"), 1.0)):
        rounds += points("read", 2048, 8, f"target-ndb-{kind}", rate) + points("few", 2048, 8, f"target-ndb-{kind}", rate)
        rounds += points("updated", 2048, 8, f"target-ndb-{kind}", rate * kept)
    assert others_than_reproduced("e2", rounds, "-ndb") == {}


def test_the_cluster_of_e4s_document_reproduces_every_claim_but_mongodbs():
    """Processors and disk have no figure there."""
    value = published.document("e4").value
    rounds = []
    for way, rate in (("text", value("plain")), ("text-compressed", value("compressed")), ("api", value("plain") * (1 + value("mongodb")))):
        rounds += points("fetch", 100, 8, f"target-ndb-{way}", rate)
    rounds += points("fetch", 100, 1, "target-ndb-text", 9000)
    for point in rounds:
        is_alone = point["threads"] == 1
        point["cpu"] |= {"server_cpus": 0.7 if is_alone else 1.6, "daemon_cpus": 0.6 if is_alone else 1.3, "client_cpus": 0.2 if is_alone else 0.35}
    for size, ratio in zip(space.SIZES, (4.0, 1.0), strict=True):
        rounds += [p | {"disk": {"payload_bytes": 1, "disk_bytes": ratio}} for p in points("disk", size, 1, "target-ndb-disk", 500)]
    assert others_than_reproduced("e4", rounds, "-ndb") == {"e4-mongodb": None}


def real_data():
    """gzip on localhost and the processors are of what the text says without a figure."""
    value = E3.value
    clients = {"app_none": 0.4, "app_lz4_17": 1.9, "app_gzip": 1.9, "uncompress": 0.4, "row_compressed": 0.4}
    made = fetched("real", DOCUMENT_BYTES, "localhost", client=clients, app_none=value("local-none"), app_lz4_17=value("local-lz4-17"), app_gzip=167,
                   uncompress=value("local-uncompress"), row_compressed=value("local-row-format"))
    for link in ("cloud", "routed"):
        made += fetch(link, app_none=value("cloud-none"), app_lz4_17=value("cloud-lz4-17"), app_zstd=value("cloud-zstd"),
                      uncompress=value("cloud-uncompress"))
    for link in ("localhost", "cloud"):
        made += fetched("real", MEDIUM_BYTES, link, app_none=value(f"medium-none.{link}"), app_lz4_17=value(f"medium-lz4-17.{link}"))
    weak = {name: value(f"weak.{name}") for name in ("uncompress", "row-compressed")}
    weak |= {f"app-{name}": value(f"weak.{name}") for name in ("lz4-17", "zstd", "brotli-11")}
    return made + fetch("weak", app_none=value("weak-none"), **{name.replace("-", "_"): rate for name, rate in weak.items()})


def random_data():
    made = []
    for kind in RANDOM:
        for link, name in (("localhost", "local"), ("cloud", "cloud"), ("gigabit", "ethernet"), ("wifi", "wifi")):
            none = {"gigabit": "ethernet"}.get(link, link)
            made += fetched(kind, DOCUMENT_BYTES, link, app_none=E3.value(f"random-none.{none}"), app_lz4_9=E3.value(f"{name}-lz4.{kind}"))
        for link, name in (("localhost", "local"), ("cloud", "cloud")):
            made += fetched(kind, DOCUMENT_BYTES, link, 1.4, 0.4, uncompress=E3.value(f"{name}-inside.{kind}"))
            made += fetched(kind, DOCUMENT_BYTES, link, 0.3, 1.5, E3.value(f"deflate-ratio.{kind}"), app_mysql=E3.value(f"{name}-java.{kind}"))
        made += fetched(kind, DOCUMENT_BYTES, "localhost", row_compressed=E3.value(f"local-table.{kind}"))
    return made


def test_what_the_author_of_e3_charted_reproduces_every_claim_but_those_that_his_charts_deny():
    inside = {"app-none": UUID, "app-gzip": None, "row-compressed": UUID}
    denied = others_than_reproduced("e3", real_data() + random_data(), json_value={str(DOCUMENT_BYTES): inside})
    assert denied == {"e3-cloud-none-next": "opposite", "e3-cloud-winners": "opposite"}
    assert all("the author's own chart of large values is opposite" in E3.claims[name].rule for name in denied)
