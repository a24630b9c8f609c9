"""Rehearsals of the bundled pipelines, compared with a local run."""

import json

import pytest

from pipeline.config.load import load_config
from reports.compare import compare
from reports.read_run import RunData
from runners.cli.rehearse import command as verb
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

BRIEF = (
    "train.epochs=8",
    "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.5}, {metric: accuracy, "
    "change: {direction: higher_is_better, absolute: -0.3}}]",
)


@pytest.fixture
def rehearse(project, server, tmp_path, capsys):
    """Rehearses a config; its run ends well."""

    def call(name, *options):
        config = str(project / "configs" / f"{name}.yaml")
        given = [word for item in BRIEF for word in ("--set", item)]
        words = [config, *given, *options, "--json", "--workspace", str(tmp_path)]
        exit_code = verb.main(words, standalone_mode=False)
        found = json.loads(capsys.readouterr().out)
        run_dir = tmp_path / name / "runs" / found["run_id"]
        record = RunRecord.load(run_dir)
        assert record.status in ("succeeded", "skipped"), record.error
        assert exit_code == 0
        assert (run_dir / "report.html").exists()
        assert record.tags == {"rehearsal": ""} and record.digests
        uris = [x for node in record.nodes for y in node.outputs.values() for x in y]
        assert uris and all(uri.startswith(str(tmp_path)) for uri in uris)
        return record

    return call


def test_runs_of_vertex_and_kubeflow(rehearse, project, run_config, tmp_path):
    """Each builds on those before: the model served, and the data of a complete run."""
    vertex = ["--profile", "vertex", "--set", "cloud.schedule={cron: 0 3 * * *}"]
    first = rehearse("digits", *vertex)
    assert [push.version for push in first.pushes] == [1]
    kinds = {document.kind for document in first.documents}
    assert {"statistics", "metrics", "epochs"} <= kinds
    workspace = Workspace(tmp_path / "local" / "digits")
    config = load_config("digits", overrides=BRIEF, cwd=project)
    local = run_config(config, workspace)
    decided = [{x.gate: x.passed for x in run.gates} for run in (local, first)]
    assert decided[0] == decided[1]
    there = RunData(tmp_path / "digits" / "runs" / first.run_id, first)
    assert compare(RunData(workspace.run_dir(local.run_id), local), there).metrics

    again = rehearse("digits", *vertex)
    note = "no new data since the last complete run: nothing is trained"
    assert note in again.notes and note not in first.notes
    ran = {node.id for node in again.nodes if node.state == "ran"}
    assert "TFRecordGen" in ran and not ran & {"StatisticsGen", "Trainer", "Pusher"}

    # The same training on the same data would make the same model.
    kubeflow = ["--profile", "kubeflow", "--set", "train.seed=1"]
    second = rehearse("digits", *kubeflow)
    baseline = second.node("ModelVerdict").inputs["baseline_model"]
    assert baseline == first.node("Trainer").outputs["model"]
    assert [push.version for push in second.pushes] == [2]

    drop = "retrain.metric_drop=[{metric: accuracy, lower_bound: 0.2}]"
    third = rehearse("digits", *kubeflow, "--set", drop)
    (row,) = third.gate_rows("retrain")
    assert (row.result, row.why) == ("no", "version 2 was trained on the same data")
    states = {name: third.node(name).state for name in ("RetrainGate", "Transform")}
    assert states == {"RetrainGate": "ran", "Transform": "skipped"}
