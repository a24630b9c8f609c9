"""Exports of the digits model, as a run pushes them and as an app loads them."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.config.load import load_config
from runners.documents.examples import values_of
from serving.predictor import Predictor
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse
from sluice.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

COUNT = 40
VARIANTS = ("none", "dynamic", "float16", "int8")
TFLITE = ", ".join(f"{{format: tflite, quantize: {name}}}" for name in VARIANTS)
# TF.js in Node: its handler reads files, where a browser's fetches them.
NODE_SCRIPT = """
const tf = require('@tensorflow/tfjs'), fs = require('fs'), path = require('path');
async function main() {
  const [folder, inputs] = process.argv.slice(2);
  const read = name => fs.readFileSync(path.join(folder, name));
  const json = JSON.parse(read('model.json')), [group] = json.weightsManifest;
  const weights = Uint8Array.from(Buffer.concat(group.paths.map(read)));
  const model = await tf.loadLayersModel(tf.io.fromMemory({
    modelTopology: json.modelTopology, weightSpecs: group.weights,
    weightData: weights.buffer}));
  const given = JSON.parse(fs.readFileSync(inputs));
  const found = model.predict(given.map(x => tf.tensor(x)));
  console.log('\\n' + JSON.stringify(found.arraySync()));
}
main();
"""

Run = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("exports") / "digits")


@pytest.fixture(scope="module")
def run(project: Path, workspace: Workspace, run_config: Callable[..., Any]) -> Run:
    """Runs digits with exports, and a model that is trained for a moment."""

    def run(*exports: str, limit: float = 0.5) -> RunRecord:
        overrides = [
            "train.epochs=3",
            f"evaluate.thresholds=[{{metric: accuracy, lower_bound: {limit}}}]",
            f"export=[{', '.join(exports)}]",
        ]
        config = load_config("digits", cwd=project, overrides=overrides)
        return run_config(config, workspace)

    return run


@pytest.fixture(scope="module")
def exported(run: Run) -> RunRecord:
    record = run(TFLITE, "keras")
    assert record.exit_code == 0, record.error
    return record


def version_of(record: RunRecord) -> Path:
    (push,) = record.pushes
    assert push.state == "pushed"
    return Path(str(push.uri))


def ran(record: RunRecord) -> set[str]:
    ended = {node.id for node in record.nodes if node.state in ("ran", "blocked")}
    return ended - {"LatestBlessedModel"}


def images_and_answers(project: Path, version: Path) -> tuple[Any, Any]:
    """Returns pixels as ``signature.json`` asks for them, and the SavedModel's answer.

    The images are decoded by Pillow, as an app would without TensorFlow.
    """
    from PIL import Image

    shard = project / "data" / "digits" / "test-00000-of-00002.tfrecord"
    records = islice(tfrecord.read(shard), COUNT)
    encoded = [values_of(parse(x).features.feature["image"])[0] for x in records]
    images = [np.asarray(Image.open(io.BytesIO(image))) for image in encoded]
    (about,) = json.loads(next(version.rglob("signature.json")).read_text())["inputs"]
    divisor = about["preprocessing"]["divide_by"]
    pixels = np.stack(images)[..., np.newaxis].astype(about["dtype"]) / divisor
    predicted = islice(Predictor(version).predict_files([shard]), COUNT)
    found: list[Any] = [x.probabilities for x in predicted]
    answers = np.array([[*by_class.values()] for by_class in found])
    return pixels.astype(np.float32), answers


@pytest.mark.parametrize("name", ["tflite", "tflite-int8"])
def test_an_app_gets_the_answers_of_the_served_model(project, exported, name):
    import tensorflow as tf

    version = version_of(exported)
    pixels, answers = images_and_answers(project, version)
    path = version / "assets.extra" / "exports" / name / "model.tflite"
    interpreter = tf.lite.Interpreter(str(path))
    predict = interpreter.get_signature_runner()
    found = np.concatenate(
        [predict(image_xf=pixels[i : i + 1])["probabilities"] for i in range(COUNT)]
    )
    if name == "tflite":
        np.testing.assert_allclose(found, answers, atol=1e-5)
    assert (found.argmax(1) == answers.argmax(1)).mean() >= 0.95


def test_a_run_compares_each_export_and_shows_it(exported):
    names = ["tflite", *(f"tflite-{name}" for name in VARIANTS[1:]), "keras"]
    gate = next(x for x in exported.gates if x.gate == "export")
    assert gate.passed
    rows = {row.check: row.actual for row in gate.rows}
    parts = ("", " difference", " agreement")
    assert [*rows] == ["saved_model", *(f"{x}{part}" for x in names for part in parts)]
    # They are different files: only float32 is almost exact.
    assert 0 < rows["tflite difference"] < 1e-5 < rows["tflite-float16 difference"]
    folder = version_of(exported) / "assets.extra" / "exports"
    sizes = {
        name: (folder / name / "model.tflite").stat().st_size for name in names[:-1]
    }
    assert sizes["tflite-int8"] < sizes["tflite-float16"] < sizes["tflite"]
    assert rows["tflite"].startswith(f"{sizes['tflite'] / 1000:,.0f} kB, ")
    assert rows["tflite-int8"] in Path(str(exported.report_uri)).read_text()


def test_a_limit_that_is_not_met_stops_the_push(run, exported, workspace):
    before = os.listdir(workspace.serving)
    record = run("{format: tflite, quantize: int8, max_difference: 0.0}")
    assert ran(record) == {"Exports", "ServingCheck", "Pusher"}
    assert (record.status, record.exit_code) == ("blocked", 4)
    assert record.pushes[0].state == "blocked"
    assert record.node("Pusher").reason == "stopped by Exports"
    assert os.listdir(workspace.serving) == before


def test_tfjs_in_node_gets_the_answers_of_the_served_model(
    project, run, exported, tmp_path, tfjs_environment
):
    npm = shutil.which("npm")
    command = [str(npm), "install", "--no-package-lock", "--prefix", str(tmp_path)]
    done = npm and subprocess.run([*command, "@tensorflow/tfjs@4.22.0"])
    if not done or done.returncode:
        pytest.skip("npm is not installed, or cannot reach its registry")
    record = run("tfjs")
    assert record.exit_code == 0, record.error
    assert ran(record) == {"Exports", "ServingCheck", "Pusher"}
    version = version_of(record)
    pixels, answers = images_and_answers(project, version)
    (tmp_path / "inputs.json").write_text(json.dumps([pixels.tolist()]))
    (tmp_path / "predict.js").write_text(NODE_SCRIPT)
    folder = version / "assets.extra" / "exports" / "tfjs"
    node = ["node", "predict.js", str(folder), "inputs.json"]
    shown = subprocess.run(node, cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout.splitlines()[-1])
    np.testing.assert_allclose(found, answers, atol=1e-5)
