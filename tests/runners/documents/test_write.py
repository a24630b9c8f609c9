"""Which documents a node writes, where, and when it refers to earlier ones."""

import json

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from pipeline.config.load import load_config
from pipeline.config.serialize import write_stored_config
from runners.documents.write import write_documents
from sluice.mlmd_items import Artifact
from sluice.project import own_root
from sluice.record.parts import NodeEnd

pytestmark = pytest.mark.unit


@pytest.fixture
def run_dir(tmp_path):
    path = tmp_path / "runs" / "1"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def write(tmp_path, run_dir):
    """Writes a node's documents, and returns them by kind."""

    def write(outputs, state="ran", *, notes=0, **options):
        options = {"inputs": {}, "properties": {}, **options}
        end = NodeEnd("Mine", state, inputs=options.pop("inputs"), outputs=outputs)
        write_documents(end, run_dir, tmp_path / "documents", **options)
        assert len(end.notes) == notes, end.notes
        assert all(record.node == "Mine" for record in end.documents)
        return {
            record.kind: json.loads((run_dir / record.path).read_text())
            for record in end.documents
        }

    return write


def _artifact(kind, uri, number=4, **properties):
    return Artifact(number, kind, str(uri), properties)


def _statistics(directory, *splits):
    data = statistics_pb2.DatasetFeatureStatisticsList()
    features = data.datasets.add(num_examples=3).features
    features.add(name="fare").num_stats.common_stats.num_non_missing = 3
    features[0].num_stats.max = 9
    for split in splits:
        folder = directory / f"Split-{split}"
        folder.mkdir(parents=True)
        (folder / "FeatureStats.pb").write_bytes(data.SerializeToString())
    names = json.dumps(splits)
    return _artifact("ExampleStatistics", directory, split_names=names)


def _model_run(directory):
    directory.mkdir(parents=True)
    (directory / "history.json").write_text('{"loss": [2.0, 1.0]}')
    return _artifact("ModelRun", directory, 9)


def test_a_document_per_artifact(tmp_path, write):
    outputs = {
        "statistics": [_statistics(tmp_path / "4", "train", "eval")],
        "model_run": [_model_run(tmp_path / "9")],
        "blessing": [_artifact("ModelBlessing", tmp_path)],
    }
    assert set(write(outputs)) == {"statistics", "epochs"}
    names = {path.name for path in (tmp_path / "documents").iterdir()}
    assert names == {"4.statistics.json", "9.epochs.json"}


def test_a_cached_node_refers_to_what_was_written(tmp_path, run_dir, write):
    outputs = {"model_run": [_model_run(tmp_path / "9")]}
    first = write(outputs)
    (tmp_path / "9" / "history.json").write_text('{"loss": [7.0]}')
    assert write(outputs, "cached") == first
    # Not where the config allows to show something else.
    config = str(own_root() / "configs" / "digits.yaml")
    write_stored_config(
        load_config(config, overrides=["private=true"]), run_dir / "config.json"
    )
    changed = write(outputs, "cached")["epochs"]
    assert changed != first["epochs"] and changed["privacy"]["private"]
    assert write({"run": [_model_run(tmp_path / "10")]}, "cached")


def test_a_damaged_artifact_does_not_cost_the_others(tmp_path, write):
    outputs = {
        "model_run": [_model_run(tmp_path / "9")],
        "statistics": [_statistics(tmp_path / "5", "train")],
    }
    (tmp_path / "9" / "history.json").write_text("{")
    assert set(write(outputs, notes=1)) == {"statistics"}


def test_the_lineage_is_that_of_the_artifact(tmp_path, write):
    outputs = {"pushed_model": [_artifact("PushedModel", tmp_path)]}
    found = write(outputs, lineage_of=lambda item: {"of": item})
    assert found["lineage"]["of"] == 4
