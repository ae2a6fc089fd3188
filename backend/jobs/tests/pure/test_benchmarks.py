"""What the benchmark reports is what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT))

from benchmarks.figures import LIMIT, OURS, Effort, Figure, Series, Target, interleaved  # noqa: E402
from benchmarks.limit import Sent, pgbench_script  # noqa: E402
from benchmarks.peers.known import PEERS, SETTINGS  # noqa: E402
from benchmarks.report import write  # noqa: E402

OURS_AND_LIMIT = (Series(OURS, (50.0, 80.0, 90.0)), Series(LIMIT, (100.0, 100.0, 300.0)))


def test_contenders_take_turns() -> None:
    turns: list[str] = []

    def contender(name: str, value: float) -> float:
        turns.append(name)
        return value

    series = interleaved(
        Effort(rounds=2), {"a": lambda: contender("a", 1), "b": lambda: contender("b", 2)}
    )
    assert turns == ["a", "b", "a", "b"]
    assert [(one.name, one.values) for one in series] == [("a", (1, 1)), ("b", (2, 2))]


def test_the_ratio_is_that_of_the_rounds_and_not_of_the_medians() -> None:
    figure = Figure("Drain", "jobs/s", OURS_AND_LIMIT)
    assert [one.median for one in figure.series] == [80, 100]
    assert figure.ratio == 0.5


@pytest.mark.parametrize(("aim", "verdict"), [(0.5, "met"), (0.51, "missed")])
def test_a_report_says_whether_an_aim_was_met(tmp_path: Path, aim: float, verdict: str) -> None:
    figure = Figure("Drain", "jobs/s", OURS_AND_LIMIT, (Target("ratio", at_least=aim),))
    as_json, as_markdown, _ = write("x", "A title", [figure], {"cores": "2"}, folder=tmp_path)
    assert f"| 0.50 | at least {aim}: {verdict} |" in as_markdown.read_text()
    found = json.loads(as_json.read_text())
    assert found["figures"][0]["series"][0] == {"name": OURS, "values": [50, 80, 90]}
    assert found["figures"][0]["ratio"] == 0.5


def test_the_longest_bar_of_a_chart_is_the_best_rate(tmp_path: Path) -> None:
    series = (Series(OURS, (10.0,)), Series("a < b", (40.0,)))
    chart = write("x", "A title", [Figure("Drain", "jobs/s", series)], {}, folder=tmp_path)[2]
    bars = [
        (bar.get("class"), float(bar.get("width") or 0))
        for bar in ElementTree.parse(chart).iter("{http://www.w3.org/2000/svg}rect")
        if bar.get("class") != "ground"
    ]
    assert [kind for kind, _ in bars] == ["ours", "other"]
    assert bars[1][1] == pytest.approx(4 * bars[0][1], abs=0.1)


def test_pgbench_is_given_the_statement_with_an_id_for_each_record() -> None:
    records = json.dumps([{"job_id": f"00000000-0000-7000-8000-{'abc' * 4}"} for _ in range(2)])
    sent = Sent({}, "SELECT %(records)s::json, %(ids)s", {"records": records, "ids": ["a", "o'b"]})
    script = pgbench_script(sent, 2)
    assert "lpad(to_hex(:base::int + 0), 12, '0')" in script
    assert "lpad(to_hex(:base::int + 1), 12, '0')" in script
    assert "ARRAY['a', 'o''b']" in script
    assert script.endswith("\\set base :base + 2\n")


def test_what_a_worker_sends_fits_into_the_script_of_pgbench() -> None:
    from benchmarks.limit import what_a_worker_sends

    script = pgbench_script(what_a_worker_sends(3), 3)
    assert "%(" not in script
    assert "'bench-2'" in script
    assert script.count("to_hex(:base") == 3


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.key)
def test_every_peer_says_what_its_rate_leaves_out_and_how_it_ran(peer: object) -> None:
    from benchmarks.peers.known import Peer

    assert isinstance(peer, Peer)
    assert peer.leaves_out
    assert set(peer.settings) == set(peer.jobs)
    assert set(peer.settings) <= set(SETTINGS)
    assert (ROOT / "benchmarks" / "peers" / f"{peer.adapter}.py").exists()
    pinned = ROOT / "benchmarks" / "peers" / "requirements" / f"{peer.key}.txt"
    if peer.package and peer.key != "graphile":
        assert f"{peer.package}==" in pinned.read_text()
