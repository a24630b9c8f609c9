"""The documents in ``record/`` and the references to them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tensorflow_metadata.proto.v0 import statistics_pb2

from pipeline.config.load import load_config
from pipeline.config.serialize import write_stored_config
from runners.local import write_documents as module
from runners.local.document_content import DescribedNode
from runners.local.write_documents import write_documents
from sluice.errors import WorkspaceError
from sluice.project import own_root
from sluice.record.documents.privacy import Privacy
from sluice.storage import digest
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.unit


def _artifact(kind: str, uri: Path, **properties: Any) -> dict[str, Any]:
    return {"id": 4, "type": kind, "uri": str(uri), "properties": properties}


def _statistics(directory: Path, *splits: str) -> dict[str, Any]:
    data = statistics_pb2.DatasetFeatureStatisticsList()
    features = data.datasets.add(num_examples=3).features
    features.add(name="fare").num_stats.common_stats.num_non_missing = 3
    features[0].num_stats.max = 9
    for split in splits:
        folder = directory / f"Split-{split}"
        folder.mkdir(parents=True)
        (folder / "FeatureStats.pb").write_bytes(data.SerializeToString())
    names = json.dumps(splits)
    return _artifact("ExampleStatistics", directory, split_names=names, span=1)


def _model_run(directory: Path) -> dict[str, Any]:
    directory.mkdir(parents=True)
    (directory / "history.json").write_text('{"loss": [2.0, 1.0]}')
    return _artifact("ModelRun", directory)


def test_statistics_are_written_with_their_digest(tmp_path: Path) -> None:
    outputs = {"statistics": [_statistics(tmp_path / "4", "train", "eval")]}
    (record,) = write_documents(DescribedNode("StatisticsGen", outputs), tmp_path)
    path = tmp_path / "record" / "StatisticsGen.statistics.json"
    assert (record.kind, record.node) == ("statistics", "StatisticsGen")
    assert record.path == "record/StatisticsGen.statistics.json"
    assert record.digest == digest.of_file(path)
    document = json.loads(path.read_text())
    (artifact,) = document.pop("artifacts")
    assert len(document.pop("made_from")) == 64
    assert document == {
        "schema_version": 1,
        "kind": "statistics",
        "node": "StatisticsGen",
        "artifacts_left_out": 0,
    }
    assert artifact["output"] == "statistics"
    assert (artifact["id"], artifact["uri"]) == (4, str(tmp_path / "4"))
    assert [split["split"] for split in artifact["splits"]] == ["train", "eval"]
    (feature,) = artifact["splits"][0]["features"]
    assert (feature["name"], feature["numeric"]["max"]) == ("fare", 9.0)


def test_each_kind_has_its_own_file(tmp_path: Path) -> None:
    outputs = {
        "gates": [_artifact("ModelBlessing", tmp_path)],
        "model_run": [_model_run(tmp_path / "9")],
        "before": [_statistics(tmp_path / "5", "train")],
        "after": [_statistics(tmp_path / "6", "train")],
    }
    records = write_documents(DescribedNode("Trainer.mine", outputs), tmp_path)
    assert [record.path for record in records] == [
        "record/Trainer.mine.epochs.json",
        "record/Trainer.mine.statistics.json",
    ]
    document = json.loads((tmp_path / records[1].path).read_text())
    assert [item["output"] for item in document["artifacts"]] == ["before", "after"]


def test_distances_are_those_of_the_verdict(tmp_path: Path) -> None:
    found = {"comparisons": [{"check": "drift", "split": "train", "features": []}]}
    outputs = {"verdict": [_artifact("components.DataVerdict", tmp_path / "7")]}
    (tmp_path / "7").mkdir()
    node = DescribedNode("DataVerdict", outputs)
    kinds = [item.kind for item in write_documents(node, tmp_path)]
    assert "distances" not in kinds, "it is of an earlier version"
    (tmp_path / "7" / "distances.json").write_text(json.dumps(found))
    (record,) = [
        item for item in write_documents(node, tmp_path) if item.kind == "distances"
    ]
    (artifact,) = json.loads((tmp_path / record.path).read_text())["artifacts"]
    assert artifact["comparisons"] == found["comparisons"]


def test_a_node_with_nothing_to_describe_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "9").mkdir()
    outputs = {
        "examples": [_artifact("Examples", tmp_path)],
        "model_run": [_artifact("ModelRun", tmp_path / "9")],
    }
    assert write_documents(DescribedNode("Foreign", outputs), tmp_path) == []
    assert not (tmp_path / "record").exists()


def test_many_artifacts_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ARTIFACTS", 2)
    runs = [_model_run(tmp_path / str(i)) for i in range(5)]
    (record,) = write_documents(
        DescribedNode("Resolver", {"model_run": runs}), tmp_path
    )
    document = json.loads((tmp_path / record.path).read_text())
    assert (len(document["artifacts"]), document["artifacts_left_out"]) == (2, 3)


def test_sensitive_features_keep_their_values_out(tmp_path: Path) -> None:
    outputs = {"statistics": [_statistics(tmp_path / "4", "train")]}
    (record,) = write_documents(
        DescribedNode("S", outputs), tmp_path, Privacy(sensitive={"fare"})
    )
    document = json.loads((tmp_path / record.path).read_text())
    (feature,) = document["artifacts"][0]["splits"][0]["features"]
    assert (feature["present"], feature["numeric"]["max"]) == (3, None)


def test_a_damaged_artifact_leaves_the_old_file(tmp_path: Path) -> None:
    outputs = {"model_run": [_model_run(tmp_path / "9")]}
    (record,) = write_documents(DescribedNode("Trainer", outputs), tmp_path)
    (tmp_path / "9" / "history.json").write_text("{")
    with pytest.raises(WorkspaceError, match="history cannot be read"):
        write_documents(DescribedNode("Trainer", outputs), tmp_path)
    assert digest.of_file(tmp_path / record.path) == record.digest
    assert len(list((tmp_path / "record").iterdir())) == 1


def _images(directory: Path) -> dict[str, Any]:
    png = io.BytesIO()
    Image.new("L", (8, 8), 200).save(png, "png")
    example = Example()
    example.features.feature["image"].bytes_list.value.append(png.getvalue())
    (directory / "Split-train").mkdir(parents=True)
    path = directory / "Split-train" / "data-00000-of-00001.gz"
    tfrecord.write(path, [example.SerializeToString()])
    return _artifact("Examples", directory, split_names='["train"]')


def test_only_a_node_that_reads_no_examples_has_samples(tmp_path: Path) -> None:
    outputs = {"examples": [_images(tmp_path / "4")]}
    ingestion = DescribedNode("Gen", outputs)
    (record,) = write_documents(ingestion, tmp_path)
    assert record.path == "record/Gen.samples.json"
    transform = replace(ingestion, inputs=outputs)
    assert write_documents(transform, tmp_path) == []
    resolver = replace(ingestion, is_resolver=True)
    assert write_documents(resolver, tmp_path) == []


def test_a_cached_node_takes_the_samples_of_an_earlier_run(tmp_path: Path) -> None:
    node = DescribedNode("Gen", {"examples": [_images(tmp_path / "4")]})
    runs = [tmp_path / "runs" / name for name in ("1", "2", "3")]
    for run_dir in runs:
        run_dir.mkdir(parents=True)
    (first,) = write_documents(node, runs[0])
    content = (runs[0] / first.path).read_bytes()
    (tmp_path / "4" / "Split-train" / "data-00000-of-00001.gz").unlink()
    cached = replace(node, is_cached=True)
    (second,) = write_documents(cached, runs[1])
    assert (runs[1] / second.path).read_bytes() == content
    # Another setting: it cannot be taken, and the file is gone.
    assert write_documents(cached, runs[2], Privacy(label="label")) == []


def test_one_damaged_artifact_does_not_cost_the_others(tmp_path: Path) -> None:
    outputs = {
        "model_run": [_model_run(tmp_path / "9")],
        "statistics": [_statistics(tmp_path / "5", "train")],
    }
    (tmp_path / "9" / "history.json").write_text("{")
    errors: list[Exception] = []
    node = DescribedNode("Mine", outputs)
    (record,) = write_documents(node, tmp_path, on_error=errors.append)
    assert record.kind == "statistics"
    (error,) = errors
    assert "history cannot be read" in str(error)


def _validation(directory: Path) -> DescribedNode:
    """Returns an ExampleValidator whose data has a feature without schema."""
    statistics, schema = directory / "statistics", directory / "schema"
    schema.mkdir()
    (schema / "schema.pbtxt").write_text('feature { name: "label" type: INT }')
    found = directory / "anomalies" / "Split-train"
    found.mkdir(parents=True)
    (found / "SchemaDiff.pb").write_bytes(b"")
    artifact = _artifact("ExampleAnomalies", found.parent, split_names='["train"]')
    return DescribedNode(
        "Validator",
        {"anomalies": [artifact]},
        {
            "statistics": [_statistics(statistics, "train")],
            "schema": [_artifact("Schema", schema)],
        },
    )


def test_what_the_data_suggests_is_in_the_anomalies(tmp_path: Path) -> None:
    node = _validation(tmp_path)
    (record,) = write_documents(node, tmp_path)
    (foreign,) = json.loads((tmp_path / record.path).read_text())["artifacts"]
    assert foreign["suggestions"] is None
    config = load_config(str(own_root() / "configs" / "digits.yaml"))
    write_stored_config(config, tmp_path / "config.json")
    (record,) = write_documents(node, tmp_path)
    (artifact,) = json.loads((tmp_path / record.path).read_text())["artifacts"]
    assert artifact["splits"] == foreign["splits"]
    assert artifact["suggestions_left_out"] == 0
    kinds = [(item["feature"], item["kind"]) for item in artifact["suggestions"]]
    assert kinds == [("fare", "new_feature")]


def test_the_lineage_is_of_the_node_that_made_the_model(tmp_path: Path) -> None:
    outputs = {"pushed_model": [_artifact("PushedModel", tmp_path)]}
    node = DescribedNode("Pusher", outputs, lineage_of=lambda item: {"artifact": item})
    (record,) = write_documents(node, tmp_path)
    (found,) = json.loads((tmp_path / record.path).read_text())["artifacts"]
    assert (record.kind, found["artifact"], found["output"]) == (
        "lineage",
        4,
        "pushed_model",
    )
    assert write_documents(replace(node, is_resolver=True), tmp_path) == []
    assert write_documents(DescribedNode("Pusher", outputs), tmp_path) == []
