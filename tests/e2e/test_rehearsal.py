"""Rehearsals of the bundled pipelines, compared with local runs."""

import json

import pytest

from runners.cli.rehearse import command as verb
from sluice.record.run_record import RunRecord

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

BRIEF = (
    "train.epochs=8",
    "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.5}, {metric: accuracy, "
    "change: {direction: higher_is_better, absolute: -0.3}}]",
)


@pytest.fixture
def rehearse(project, server, tmp_path, capsys):
    """Rehearses a config; its runs end well, and are as locally."""

    def call(name, *options):
        config = str(project / "configs" / f"{name}.yaml")
        given = [word for item in BRIEF for word in ("--set", item)]
        words = [config, *given, *options, "--json", "--workspace", str(tmp_path)]
        exit_code = verb.main(words, standalone_mode=False)
        found = json.loads(capsys.readouterr().out)
        run_dir = tmp_path / name / "runs" / found["record"]["run_id"]
        record, local = RunRecord.load(run_dir), found["local"]
        assert record.status in ("succeeded", "skipped"), record.error
        assert exit_code == 0
        assert local is None or local["status"] == "succeeded"
        assert (run_dir / "report.html").exists()
        assert record.tags == {"rehearsal": ""} and record.digests
        uris = [x for node in record.nodes for y in node.outputs.values() for x in y]
        assert uris and all(uri.startswith(str(tmp_path)) for uri in uris)
        return record, found["comparison"]

    return call


def test_runs_of_vertex_and_kubeflow(rehearse):
    """Each builds on those before: the model served, and the data of a complete run."""
    vertex = ["--profile", "vertex", "--set", "cloud.schedule={cron: 0 3 * * *}"]
    first, comparison = rehearse("digits", *vertex)
    assert [push.version for push in first.pushes] == [1]
    kinds = {document.kind for document in first.documents}
    assert {"statistics", "metrics", "epochs"} <= kinds
    assert comparison["metrics"]

    again, _ = rehearse("digits", *vertex, "--no-compare")
    note = "no new data since the last complete run: nothing is trained"
    assert note in again.notes and note not in first.notes
    ran = {node.id for node in again.nodes if node.state == "ran"}
    assert "TFRecordGen" in ran and not ran & {"StatisticsGen", "Trainer", "Pusher"}

    # The same training on the same data would make the same model.
    kubeflow = ["--profile", "kubeflow", "--no-compare", "--set", "train.seed=1"]
    second, _ = rehearse("digits", *kubeflow)
    baseline = second.node("ModelVerdict").inputs["baseline_model"]
    assert baseline == first.node("Trainer").outputs["model"]
    assert [push.version for push in second.pushes] == [2]

    drop = "retrain.metric_drop=[{metric: accuracy, lower_bound: 0.2}]"
    third, _ = rehearse("digits", *kubeflow, "--set", drop)
    (row,) = third.gate_rows("retrain")
    assert (row.result, row.why) == ("no", "version 2 was trained on the same data")
    states = {name: third.node(name).state for name in ("RetrainGate", "Transform")}
    assert states == {"RetrainGate": "ran", "Transform": "skipped"}
