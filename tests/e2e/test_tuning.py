"""A search from the command line: its values in the config, the model and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from tests.kit.read_page import Page

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

TUNE = """
train:
  epochs: 4   # of the model
  replicas: 2

# Before the training.
tune:
  trials: 5
  epochs: 2
  space:
    train.learning_rate: [0.0000001, 0.05]
    train.batch_size: [4, 10]
    model_params.hidden_units: [[4], [8, 4]]
"""


def _hparams(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns what TensorBoard's HParams shows of each trial."""
    from tensorboard.plugins.hparams import metadata
    from tensorflow.core.util.event_pb2 import Event

    from sluice.tfrecords import tfrecord

    found = {}
    for path in folder.glob("*/events*"):
        for data in tfrecord.read(path):
            for value in Event.FromString(data).summary.value:
                if value.tag == metadata.SESSION_START_INFO_TAG:
                    content = value.metadata.plugin_data.content
                    given = metadata.parse_session_start_info_plugin_data(content)
                    found[path.parent.name] = {
                        key: item.string_value or item.number_value
                        for key, item in given.hparams.items()
                    }
    return found


def test_the_best_values_reach_the_config_and_the_model(trips, fork_command):
    file = trips.root / "configs" / "trips.yaml"
    text = file.read_text() + TUNE
    file.write_text(text)

    def sluice(*arguments: str) -> dict[str, Any]:
        command = fork_command(*arguments, "--json", cwd=trips.root)
        out, err = command.communicate(timeout=300)
        assert command.returncode == 0, err
        return json.loads(out)

    found = sluice("tune", "trips", "--apply")
    states = {node["id"]: node["state"] for node in found["nodes"]}
    assert (states["Tuner"], states["Trainer"]) == ("ran", "skipped")
    assert len(found["trials"]) == 5
    objectives = [trial["objective"] for trial in found["trials"]]
    assert objectives == sorted(objectives)
    best = found["trials"][0]["values"]
    assert found["applied"] == best
    assert best["train.learning_rate"] == 0.05
    assert found["trials"][-1]["values"]["train.learning_rate"] == 1e-7
    written = file.read_text()
    assert set(text.splitlines()) < set(written.splitlines()), "a line was lost"
    config = load_config("trips", cwd=trips.root)
    assert config.train.batch_size == best["train.batch_size"]
    assert config.model_params == {"hidden_units": best["model_params.hidden_units"]}

    # What was written into the config is no reason to search again.
    record = trips.run()
    assert (record.node("Tuner").state, record.node("Trainer").state) == (
        "cached",
        "ran",
    )
    (uri,) = record.node("Trainer").outputs["model_run"]
    training = json.loads(Path(uri, "training.json").read_text())
    assert training["batch_size"] == best["train.batch_size"]
    assert training["strategy"].startswith("mirrored: 2 replicas")
    layers = [
        layer["output_shape"][-1]
        for layer in training["layers"]
        if layer["class"] == "Dense"
    ]
    assert layers == [*best["model_params.hidden_units"], 1]
    assert trips.run().status == "up_to_date"

    # An export has the layers that the search has found, whatever the config says.
    record = trips.run("model_params.hidden_units=[3]", "export=[tflite]")
    assert record.exit_code == 0 and record.gate_rows("export"), record.error

    # The config says something else than the search has found, which counts.
    record = trips.run("train.learning_rate=0.0000001", to_nodes=["Trainer"])
    assert record.node("Tuner").state == "cached"
    (uri,) = record.node("Trainer").outputs["model_run"]
    history = json.loads(Path(uri, "history.json").read_text())
    assert history["learning_rate"] == pytest.approx([0.05] * 4)

    (results,) = record.node("Tuner").outputs["tuner_results"]
    shown = _hparams(Path(results, "tensorboard"))
    units = "model_params.hidden_units"
    for trial in found["trials"]:
        values = {**trial["values"], units: json.dumps(trial["values"][units])}
        assert shown[str(trial["number"])] == pytest.approx(values)
    rows = Page(Path(record.report_uri).read_text()).tables["trials-0"]
    assert [int(row["Trial"]) for row in rows] == [x["number"] for x in found["trials"]]
