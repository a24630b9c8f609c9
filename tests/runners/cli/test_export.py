"""``sluice export mlflow``: what MLflow's own client reads back."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from runners.operations.export_mlflow import _SETTINGS
from sluice.record.parts import NodeRecord, PushRecord

pytestmark = pytest.mark.unit

FIRST, SECOND, THIRD = (f"2026010{day}T000000Z-aaaa" for day in (1, 2, 3))
MINUTE_LATER = "2026-01-01T00:01:00+00:00"
EPOCHS = {"epochs": [1, 2], "metrics": {"loss": [0.5, None], "val_loss": [0.7, "NaN"]}}


@pytest.fixture(autouse=True)
def keep_handlers(monkeypatch):
    """MLflow's import closes all handlers of logs: absl's with pytest's own stream."""
    monkeypatch.setattr("logging.config._clearExistingHandlers", lambda: None)


@pytest.fixture
def stored(root, monkeypatch):
    """Returns the runs in the store by their names."""
    for name, value in _SETTINGS.items():
        monkeypatch.setenv(name, value)
    tracking = pytest.importorskip("mlflow.tracking")

    def read() -> dict[str, Any]:
        client = tracking.MlflowClient((root / "workspace" / "mlruns").as_uri())
        experiment = client.get_experiment_by_name("digits")
        runs = client.search_runs([experiment.experiment_id])
        assert len({run.info.run_name for run in runs}) == len(runs)
        return {run.info.run_name: (run, client) for run in runs}

    return read


def test_values_of_a_run(write_run, sluice, stored):
    run_dir = write_run(
        FIRST,
        {"auc": 0.9, "lost": "NaN", "matrix": {"shape": [1], "values": [1]}},
        {"epochs": EPOCHS, "ingestion": {"splits": {"train": 70}}},
        config={"train": {"epochs": 2}, "slices": [{"of": "x"}], "text": "x" * 9000},
        digests={"code": "abc"},
        tags={"night": "", "team": "a"},
        pushes=[PushRecord("s", "pushed", 4)],
        nodes=[NodeRecord("Node", "Trainer", "ran", 3.5)],
        ended_at=MINUTE_LATER,
    )
    (run_dir / "report.html").write_text("<p>")
    code, out, _ = sluice("export", "mlflow", "digits")
    assert code == 0 and "exported 1 runs to the experiment 'digits'" in out
    run, client = stored()[FIRST]
    assert (run.info.status, run.info.end_time - run.info.start_time) == (
        "FINISHED",
        60_000,
    )
    assert run.data.params["train.epochs"] == "2"
    assert run.data.params["slices.0.of"] == "x"
    assert 500 <= len(run.data.params["text"]) < 9000
    metrics = run.data.metrics
    assert (metrics["auc"], metrics["examples/train"]) == (0.9, 70)
    assert (metrics["duration_s/run"], metrics["duration_s/Node"]) == (60, 3.5)
    assert metrics["lost"] != metrics["lost"] and "matrix" not in metrics
    history = client.get_metric_history(run.info.run_id, "Node/loss")
    assert [(item.step, item.value) for item in history] == [(1, 0.5)]
    assert len(client.get_metric_history(run.info.run_id, "Node/val_loss")) == 2
    tags = run.data.tags
    assert (tags["night"], tags["team"], tags["sluice.version"]) == ("", "a", "4")
    assert (tags["sluice.verdict"], tags["sluice.digest.code"]) == ("pushed", "abc")
    files = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert files == {"run.json", "report.html"}


def test_a_run_is_written_once_until_it_is_resumed(write_run, sluice, stored):
    write_run(FIRST, {"auc": 0.9}, ended_at=MINUTE_LATER)
    failed = write_run(SECOND, status="failed", exit_code=7, ended_at=MINUTE_LATER)
    write_run(THIRD, status="interrupted", exit_code=130, ended_at=MINUTE_LATER)

    def export() -> dict[str, Any]:
        return json.loads(sluice("export", "mlflow", "digits", "--json")[1])

    assert list(export()["runs"]) == [FIRST, SECOND, THIRD]
    statuses = {name: run.info.status for name, (run, _) in stored().items()}
    assert statuses == {FIRST: "FINISHED", SECOND: "FAILED", THIRD: "KILLED"}
    again = export()
    assert (again["runs"], again["unchanged"]) == ({}, [FIRST, SECOND, THIRD])
    record = json.loads((failed / "run.json").read_text())
    record |= {"status": "succeeded", "ended_at": "2026-01-01T00:02:00+00:00"}
    (failed / "run.json").write_text(json.dumps(record))
    # As if its export had been killed.
    first, client = stored()[FIRST]
    client.delete_tag(first.info.run_id, "sluice.ended_at")
    assert list(export()["runs"]) == [FIRST, SECOND]
    runs = stored()
    assert len(runs) == 3
    assert runs[SECOND][0].info.status == "FINISHED"


def test_errors(write_run, sluice, root, monkeypatch):
    code, _, err = sluice("export", "mlflow", "digits")
    assert code == 2 and "digits has not run yet" in err
    write_run(FIRST, ended_at=MINUTE_LATER)
    (root / "file").write_text("")
    code, _, err = sluice("export", "mlflow", "digits", "--to", "file")
    assert (
        code == 2 and "MLflow cannot write the runs" in err and "Traceback" not in err
    )
    monkeypatch.setitem(sys.modules, "mlflow", None)
    code, _, err = sluice("export", "mlflow", "digits")
    assert code == 2 and "MLflow's client is not installed" in err
    assert f"{sys.executable} -m pip install mlflow-skinny" in err
