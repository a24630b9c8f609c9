"""Every node's executor with all its inputs and outputs on ``gs://``, in one process.

TensorFlow, Beam and TFX read and write the bucket through file systems of their own.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from runners.documents.write import write_documents
from sluice.interrupt import Interrupted
from sluice.mlmd_items import Artifact
from sluice.record.parts import NodeEnd
from sluice.record.verdict import Verdict
from sluice.storage import digest

pytestmark = [pytest.mark.cloud, pytest.mark.acceptance]

EPOCHS = 4
_stopped: list[int] = []


class StopOnce:
    """Keras callback: a service ends the container after the second epoch."""

    def __new__(cls) -> Any:
        import tensorflow as tf

        class Callback(tf.keras.callbacks.Callback):
            def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
                if epoch == 2 and not _stopped:
                    _stopped.append(epoch)
                    os.kill(os.getpid(), signal.SIGTERM)

        return Callback()


class Nodes:
    """The components of a pipeline whose locations are in a bucket."""

    def __init__(self, project: Path, bucket: Any, name: str, *settings: str) -> None:
        from pipeline.checks.check_config import validate_config
        from pipeline.config.load import load_config
        from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS
        from pipeline.graph.create_pipeline import create_pipeline
        from runners.cloud.job_inputs import cloud_locations, upload

        for path in (project / "data" / name).iterdir():
            bucket.put(f"data/{path.name}", path.read_bytes())
        overrides = [
            f"data.dir={bucket.uri('data')}",
            f"cloud.root={bucket.uri('root')}",
            *settings,
        ]
        config = load_config(name, overrides=overrides, cwd=project)
        self.config = validate_config(config).config
        locations = cloud_locations(self.config)
        pipeline = create_pipeline(self.config, locations)
        for item in locations.uploads.values():
            upload(item)
        self.beam_args = LOCAL_BEAM_ARGS
        self.bucket = bucket
        self.root = f"{locations.pipeline_root}/7"
        self.components = {node.id: node for node in pipeline.components}
        self.outputs: dict[tuple[str, str], Any] = {}
        self.last: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.ids = count(1)

    def run(self, node: str, **more_inputs: Any) -> dict[str, Any]:
        """Runs a node's executor, and returns the artifacts it made by key."""
        from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
        from tfx.dsl.components.base.base_executor import BaseExecutor

        component = self.components[node]
        inputs = {
            key: [self.outputs[channel.producer_component_id, channel.output_key]]
            for key, channel in component.inputs.items()
            if (channel.producer_component_id, channel.output_key) in self.outputs
        }
        inputs |= {key: [artifact] for key, artifact in more_inputs.items()}
        made = {key: channel.type() for key, channel in component.outputs.items()}
        for key, artifact in made.items():
            artifact.uri, artifact.name = f"{self.root}/{node}/{key}", key
            artifact.id = next(self.ids)
            self.outputs[node, key] = artifact
        given = {"tmp_dir": f"{self.root}/{node}/.temp", "unique_id": "1"}
        executor = component.executor_spec.executor_class
        context: Any = BaseExecutor.Context(**given)
        if issubclass(executor, BaseBeamExecutor):
            flags = list(self.beam_args)
            context = BaseBeamExecutor.Context(extra_flags=flags, **given)
        self.last[node] = {key: item for key, (item,) in inputs.items()}, made
        executor(context).Do(
            inputs,
            {key: [artifact] for key, artifact in made.items()},
            {k: v for k, v in component.exec_properties.items() if v is not None},
        )
        return made

    def documents(self, run_dir: Path) -> dict[str, list[Any]]:
        """Returns the documents of the executors that ran, by kind.

        The inputs of a node are those of its last run.
        """
        from pipeline.config.serialize import write_stored_config

        write_stored_config(self.config, run_dir / "config.json")
        found: dict[str, list[Any]] = {}
        for node in self.components:
            inputs, outputs = (
                {key: [_described(item)] for key, item in side.items()}
                for side in self.last.get(node, ({}, {}))
            )
            properties = self.components[node].exec_properties
            end = NodeEnd(node, "ran", inputs=inputs, outputs=outputs)
            write_documents(end, run_dir, run_dir, properties)
            assert not end.notes
            for record in end.documents:
                document = json.loads((run_dir / record.path).read_text())
                found.setdefault(record.kind, []).append(document)
        return found

    def names(self, folder: str) -> list[str]:
        """Returns the objects below a folder, without folder markers."""
        found = self.bucket.names(f"root/{folder}/")
        return [name for name in found if not name.endswith("/")]


def _described(artifact: Any) -> Artifact:
    properties = {
        name: artifact.get_custom_property(name) or getattr(artifact, name, "")
        for name in ("split_names", "payload_format", "file_format")
    }
    return Artifact(artifact.id, artifact.type_name, artifact.uri, properties)


@pytest.fixture
def signals() -> Iterator[None]:
    """Restores the handlers that a training replaces."""
    kept = {number: signal.getsignal(number) for number in (2, 15)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


DOCUMENTS = {
    *("anomalies", "distances", "epochs", "ingestion"),
    *("metrics", "mistakes", "model", "samples", "schema", "statistics"),
}


def _until_training(nodes: Nodes) -> None:
    for name in ("ImportSchemaGen", "TFRecordGen", "StatisticsGen", "ExampleValidator"):
        nodes.run(name)
    nodes.run("DataVerdict")
    nodes.run("DataGate")
    nodes.run("AcceptData")
    nodes.run("Transform")


def test_digits(project, bucket, signals, tmp_path, monkeypatch, capfd):
    monkeypatch.delenv("SLUICE_CHECKPOINT_DIR", raising=False)
    nodes = Nodes(
        project,
        bucket,
        "digits",
        f"train.epochs={EPOCHS}",
        "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.1},"
        " {metric: accuracy, change: {direction: higher_is_better, absolute: -0.01}}]",
    )
    properties = nodes.components["Trainer"].exec_properties
    config = json.loads(properties["custom_config"])
    stop_once = {"function": f"{__name__}:StopOnce", "params": {}}
    config["train"]["callbacks"] = [stop_once]
    properties["custom_config"] = json.dumps(config)
    _until_training(nodes)
    # Without a progress file it is in the log.
    with pytest.raises(Interrupted):
        nodes.run("Trainer")
    assert '"event": "epoch", "epoch": 2' in capfd.readouterr().err
    assert nodes.names("digits/checkpoints")
    model = nodes.run("Trainer")["model"]
    log = capfd.readouterr().err
    assert f"training resumes with epoch 3 of {EPOCHS}" in log
    assert '"epoch": 2' not in log and '"epoch": 3' in log
    assert not nodes.names("digits/checkpoints")
    made = [name.partition("/Trainer/")[2] for name in nodes.names("digits/artifacts")]
    assert {
        "model/Format-Serving/saved_model.pb",
        "model/Format-Serving/assets.extra/classes.json",
        "model_run/history.json",
        "model_run/model.weights.h5",
    } <= set(made)
    assert any("model_run/tensorboard/train/events" in name for name in made)

    nodes.run("Evaluator")
    blessing = nodes.run("ModelVerdict")["blessing"]
    assert blessing.get_int_custom_property("blessed") == 1
    verdict = nodes.outputs["ModelVerdict", "verdict"].uri
    assert Verdict.load(verdict).passed
    for state in ("pushed", "already_served"):
        pushed = nodes.run("Pusher")["pushed_model"]
        assert pushed.get_string_custom_property("state") == state
    version = pushed.get_string_custom_property("pushed_destination")
    assert version == bucket.uri("root/digits/serving/1")
    assert digest.of_tree(version) == digest.of_tree(f"{model.uri}/Format-Serving")
    # The next run compares with this model, and its data with this data. It has folders
    # of its own: TensorFlow remembers the size of an object for 5 s.
    nodes.root = nodes.root.replace("/7", "/8")
    nodes.run("DataVerdict")
    baseline = type(model)()
    baseline.uri, baseline.id = model.uri.replace("/7/", "/6/"), next(nodes.ids)
    for name in bucket.names(model.uri.partition(bucket.uri(""))[2]):
        bucket.put(name.replace("/7/", "/6/"), bucket.get(name))
    nodes.run("Evaluator", baseline_model=baseline)
    blessing = nodes.run("ModelVerdict", baseline_model=baseline)["blessing"]
    assert blessing.get_string_custom_property("baseline_model") == baseline.uri
    verdict = nodes.outputs["ModelVerdict", "verdict"].uri
    assert any(row.baseline is not None for row in Verdict.load(verdict).rows)

    documents = nodes.documents(tmp_path)
    assert set(documents) ^ DOCUMENTS == set()
    assert documents["epochs"][0]["metrics"]["loss"]
    assert documents["ingestion"][0]["records"] == 1797
    assert documents["mistakes"] and documents["model"][0]["signatures"]
