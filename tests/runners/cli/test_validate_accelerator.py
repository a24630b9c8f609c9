"""``sluice validate --accelerator``: what a TPU refuses is an invalid config."""

from __future__ import annotations

import json

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.tf

MODEL = """
import tensorflow as tf

def build(inputs, params):
    features = inputs.keras_inputs()
    x = tf.keras.layers.Flatten()(features["image_xf"])
    own = lambda x: tf.strings.to_number(tf.strings.as_string(x))
    x = tf.keras.layers.Lambda(own, name="mine")(x)
    return tf.keras.Model(features, inputs.output_layer()(x))
"""


def test_a_refused_training_is_an_invalid_config(tmp_path, monkeypatch, sluice):
    (tmp_path / "configs").mkdir()
    text = (own_root() / "configs" / "digits.yaml").read_text()
    text = text.replace("batch_size: 32", "batch_size: 64")
    (tmp_path / "configs" / "digits.yaml").write_text(text)
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "digits").symlink_to(own_root() / "schemas" / "digits")
    (tmp_path / "refused_strings.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    given = ("--accelerator", "tpu", "--set", "model=refused_strings:build")
    code, out, err = sluice("validate", "digits", *given, "--json")
    message = json.loads(out)["error"]["message"]
    assert code == 2 and message in err.replace("error: ", "")
    assert "the training cannot run on a TPU: XLA cannot compile" in message
    assert "AsString" in message and "mine" in message
