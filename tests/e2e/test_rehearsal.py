"""Rehearsals of the bundled pipelines, compared with local runs."""

from pathlib import Path

import pytest

from runners.cli.rehearse import rehearse
from sluice.workspace import locate, workspaces_in

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

BRIEF = (
    "train.epochs=8",
    "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.5}, {metric: accuracy, "
    "change: {direction: higher_is_better, absolute: -0.3}}]",
)


@pytest.fixture
def rehearsal(project, server, tmp_path):
    """Rehearses a config; its runs end well, and are as locally."""

    def run(name, *overrides, **options):
        config = str(project / "configs" / f"{name}.yaml")
        with workspaces_in(str(tmp_path)):
            found = rehearse(config, overrides=overrides, **options)
            run_dir = locate(project, name).run_dir(found.record.run_id)
        record = found.record
        assert found.differences == (), record.error
        assert (record.status, found.exit_code) == ("succeeded", 0), record.error
        assert (run_dir / "report.html").exists()
        assert record.tags == {"rehearsal": ""} and record.digests
        uris = [x for node in record.nodes for y in node.outputs.values() for x in y]
        assert uris and all(uri.startswith(str(tmp_path)) for uri in uris)
        return found

    return run


def baseline_and_model(record):
    (baseline,) = record.node("ModelVerdict").inputs["baseline_model"]
    (model,) = record.node("Trainer").outputs["model"]
    return Path(baseline), Path(model)


@pytest.mark.parametrize("profile", ["vertex", "kubeflow"])
def test_a_second_rehearsal_has_the_first_ones_model_as_baseline(rehearsal, profile):
    """On Vertex AI as a schedule, whose third run finds no new data."""
    options = {"profile": profile, "scheduled": profile == "vertex"}
    first = rehearsal("digits", *BRIEF, **options)
    kinds = {item.kind for item in first.record.documents}
    assert {"statistics", "metrics", "epochs"} <= kinds
    assert first.local.status == "succeeded"
    # The same training on the same data would make the same model.
    again = (*BRIEF, "train.seed=1")
    second = rehearsal("digits", *again, tolerance=None, **options)
    baseline, _ = baseline_and_model(second.record)
    assert baseline == baseline_and_model(first.record)[1]
    assert [push.version for push in second.record.pushes] == [2]
    if profile == "kubeflow":
        return
    third = rehearsal("digits", *again, tolerance=None, **options)
    note = "no new data since the last complete run: nothing is trained"
    assert note in third.record.notes and note not in second.record.notes
    ran = {node.id for node in third.record.nodes if node.state == "ran"}
    assert "TFRecordGen" in ran and not ran & {"StatisticsGen", "Trainer", "Pusher"}
