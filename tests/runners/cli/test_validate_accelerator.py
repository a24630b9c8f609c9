"""``sluice validate --accelerator``: exit codes, warnings and JSON."""

from __future__ import annotations

import json
import shutil

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.tf


MODEL = """
import tensorflow as tf

def build(inputs, params):
    features = inputs.keras_inputs()
    x = tf.keras.layers.Flatten()(features["image_xf"])
    x = tf.keras.layers.Lambda({function}, name="mine")(x)
    return tf.keras.Model(features, inputs.output_layer()(x))
"""
STRINGS = "lambda x: tf.strings.to_number(tf.strings.as_string(x))"


@pytest.fixture
def make_model(tmp_path, monkeypatch):
    """Writes a model with a function as a layer into a project; returns its path."""
    (tmp_path / "configs").mkdir()
    text = (own_root() / "configs" / "digits.yaml").read_text()
    text = text.replace("batch_size: 32", "batch_size: 64")
    (tmp_path / "configs" / "digits.yaml").write_text(text)
    shutil.copytree(own_root() / "schemas" / "digits", tmp_path / "schemas" / "digits")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def make(name: str, function: str) -> str:
        (tmp_path / f"{name}.py").write_text(MODEL.format(function=function))
        return f"model={name}:build"

    return make


def test_a_refused_training_is_an_invalid_config(make_model, sluice):
    model = make_model("refused_strings", STRINGS)
    code, out, err = sluice(
        "validate", "digits", "--accelerator", "tpu", "--set", model, "--json"
    )

    assert code == 2
    first = "error: the training cannot run on a TPU\n"
    assert first in err
    message = json.loads(out)["error"]["message"]
    assert message in err.replace("error: ", "")
    (refused,) = [line for line in message.splitlines() if line.startswith("  - ")]
    assert "AsString" in refused and "mine" in refused
