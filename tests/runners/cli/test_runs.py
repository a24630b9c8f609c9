"""``sluice runs``: the table in a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reports.formats import MISSING
from sluice.record.parts import PushRecord
from tests.kit.runs import a_check, a_gate

pytestmark = pytest.mark.unit

IDS = tuple(f"2026010{day}T000000Z-aaaa" for day in (1, 2, 3))


@pytest.fixture
def three(write_run):
    """Three runs; the second was blocked, the third has no model."""
    values: list[dict[str, Any]] = [
        {"train": {"epochs": epochs, "seed": 7}} for epochs in (9, 10, 10)
    ]
    pushed = [PushRecord("s", "pushed", 4)]
    gates = [a_gate("model", a_check(result="FAIL"))]
    write_run(IDS[0], {"auc": 0.9, "loss": 0.5}, config=values[0], pushes=pushed)
    write_run(
        IDS[1],
        {"auc": 0.8, "loss": "NaN", "example_count": 30.0},
        config=values[1],
        status="blocked",
        gates=gates,
        tags={"night": "", "team": "a"},
    )
    write_run(IDS[2], config=values[2], status="failed", exit_code=7)


def _ids(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()[1:]]


def test_a_pipeline_without_runs(root, sluice):
    assert "digits has no run" in sluice("runs", "digits")[1]
    assert json.loads(sluice("runs", "digits", "--json")[1]) == []


@pytest.mark.usefixtures("three")
def test_the_screen(sluice):
    assert [line.split() for line in sluice("runs", "digits")[1].splitlines()] == [
        "run verdict version auc loss tags train.epochs".split(),
        f"{IDS[2]} failed {MISSING} {MISSING} 10".split(),
        f"{IDS[1]} blocked (model gate) 0.8000 NaN night, team=a 10".split(),
        f"{IDS[0]} pushed 4 0.9000 0.5000 9".split(),
    ]


def test_damaged_records_and_documents_are_named(write_run, sluice):
    write_run(IDS[0], {"auc": 0.9})
    run_dir = write_run(IDS[1], {"auc": 0.8})
    (run_dir / "documents" / "1.metrics.json").write_text("{")
    strange = write_run(IDS[2], {"auc": 0.7})
    document = {"kind": "metrics"}
    (strange / "documents" / "1.metrics.json").write_text(json.dumps(document))
    damaged = write_run("20260104T000000Z-aaaa")
    (damaged / "run.json").write_text("{")
    code, out, err = sluice("runs", "digits")
    assert code == 0
    assert _ids(out) == [IDS[2], IDS[1], IDS[0]]
    assert "the record of run 20260104T000000Z-aaaa cannot be read" in err
    assert "warning: documents/1.metrics.json cannot be read" in err
    assert f"warning: run {IDS[2]}: a document is damaged: KeyError('metrics')" in err


@pytest.mark.usefixtures("three")
def test_runs_are_sorted_by_a_metric_or_a_parameter_that_a_run_has(sluice):
    _, out, _ = sluice("runs", "digits", "--sort", "auc")
    assert _ids(out) == [IDS[0], IDS[1], IDS[2]]
    _, out, _ = sluice("runs", "digits", "--sort", "train.epochs")
    assert _ids(out) == [IDS[2], IDS[1], IDS[0]]
    code, _, err = sluice("runs", "digits", "--sort", "epohs")
    assert code == 2
    assert "no run has 'epohs' to sort by" in err
    assert "did you mean 'train.epochs'?" in err


@pytest.mark.usefixtures("three")
def test_json_has_a_row_per_run(sluice):
    third, second, first = json.loads(sluice("runs", "digits", "--json")[1])
    assert (first["outcome"], first["version"]) == ("pushed", 4)
    assert first["parameters"] == {"train.epochs": 9}
    assert second["metrics"] == {"auc": 0.8, "loss": "NaN", "example_count": 30.0}
    assert second["tags"] == {"night": "", "team": "a"}
    assert (third["exit_code"], third["metrics"]) == (7, {})
    (row,) = json.loads(sluice("runs", "digits", "--tag", "team=a", "--json")[1])
    assert row["run_id"] == IDS[1]
