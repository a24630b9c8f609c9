"""Rehearsals of the bundled pipelines, with all that they read and write on gs://."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.local.engine import LocalEngine
from runners.operations.rehearse import Rehearsal, RehearseRequest, rehearse
from sample_data import catalog
from sample_data.data_set import Source
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from tests.e2e.test_data_sets import NO_FLOOR, label_of, write_flowers

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

Rehearse = Callable[..., Rehearsal]


@pytest.fixture
def rehearsal(project: Path, process_pool, tmp_path: Path) -> Rehearse:
    """Rehearses a bundled config and compares it with local runs."""

    def run(name: str, *overrides: str, **options: object) -> Rehearsal:
        request = RehearseRequest(
            name=str(project / "configs" / f"{name}.yaml"),
            overrides=overrides,
            workspace_dir=str(tmp_path / "workspace"),
            workers=2,
            **options,  # type: ignore[arg-type]
        )
        return rehearse(request, local_engine=LocalEngine(process_pool))

    return run


def _check(found: Rehearsal, quiet: tuple[int, ...] = ()) -> None:
    """Checks that all rounds are as locally, and push but for quiet ones."""
    for number, record in enumerate(found.records, start=1):
        pushed = ["not_reached"] if number in quiet else ["pushed"]
        states = [push.state for push in record.pushes]
        assert (record.status, states) == ("succeeded", pushed), record.error
        assert record.digests.keys() == {"config", "schema", "code", "data"}
        uris = [
            uri for node in record.nodes for one in node.outputs.values() for uri in one
        ]
        assert uris and all(uri.startswith("gs://") for uri in uris)
    assert found.differences == ((),) * len(found.records)
    assert found.exit_code == 0


def _models(record: RunRecord) -> list[str]:
    return record.node("Trainer").outputs["model"]


def test_digits_in_three_rounds_of_a_schedule(
    project: Path, rehearsal: Rehearse, tmp_path: Path
) -> None:
    for span, shards in ((1, (0, 1)), (2, (2, 3))):
        folder = tmp_path / "spans" / f"span-{span}"
        folder.mkdir(parents=True)
        for path in (project / "data" / "digits").glob("test-*"):
            shutil.copy(path, folder)
        for path in (project / "data" / "digits").glob("eval-*"):
            shutil.copy(path, folder)
        for number, shard in enumerate(shards):
            source = project / "data" / "digits" / f"train-{shard:05}-of-00004.tfrecord"
            shutil.copy(source, folder / f"train-{number:05}-of-00002.tfrecord")
    found = rehearsal(
        "digits",
        f"data.dir={tmp_path / 'spans'}",
        *(f"data.splits.{s}=span-{{SPAN}}/{s}-*" for s in ("train", "eval", "test")),
        "train.epochs=10",
        "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.9}, {metric: accuracy, "
        "change: {direction: higher_is_better, absolute: -0.05}}]",
        scheduled=True,
        rounds=3,
    )
    # There are two spans: the second round has no new one.
    _check(found, quiet=(2,))
    first, quiet, third = found.records
    assert [record.spans["data"][0]["span"] for record in (first, third)] == [1, 2]
    assert third.node("ModelVerdict").inputs["baseline_model"] == _models(first)
    assert [record.status for record in found.local] == [
        *("succeeded", "up_to_date", "succeeded")
    ]
    note = "no new data since the last complete run: nothing is trained"
    assert note in quiet.notes and note not in first.notes
    for record in found.records:
        assert "the exit handler WriteReport ran" in record.notes[-1]
    ran = {node.id for node in quiet.nodes if node.state == "ran"}
    assert "TFRecordGen" in ran and not ran & {"StatisticsGen", "Trainer", "Pusher"}


def test_digits_on_kubeflow_compares_with_the_model_in_the_store(
    rehearsal: Rehearse,
) -> None:
    """It has no resolvers, and passes input artifacts without their types."""
    settings = ("cloud.engine=kubeflow", "train.epochs=12", "train.seed=1", NO_FLOOR)
    found = rehearsal("digits", *settings, rounds=2, tolerance=None)
    first, second = found.records
    assert [record.status for record in found.records] == ["succeeded"] * 2
    (placeholder,) = first.node("ModelVerdict").inputs["baseline_model"]
    assert "/LatestBlessedModel" in placeholder
    assert second.node("ModelVerdict").inputs["baseline_model"] == _models(first)


def test_taxi(rehearsal: Rehearse) -> None:
    _check(rehearsal("taxi"))


def test_flowers(project: Path, rehearsal: Rehearse, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    write_flowers(tmp_path / "images")
    made, data = tmp_path / "made", tmp_path / "flowers"
    catalog.make("flowers", made, source=Source(tmp_path / "images"), workers=1)
    shards = sorted(made.glob("*.tfrecord.gz"))
    records = [record for shard in shards for record in tfrecord.read(shard)]
    # As many of each class in every file: so few records differ by chance otherwise.
    records.sort(key=label_of)
    data.mkdir()
    for number in range(16):
        own = records[number::16]
        tfrecord.write(data / f"flowers{number:02}-{len(own)}.tfrec", own)
    brief = ["train.epochs=1", "train.early_stopping=null", NO_FLOOR]
    _check(
        rehearsal(
            "flowers",
            f"data.dir={data}",
            *brief,
            profile="flowers-public",
            tolerance=0.2,
        )
    )
