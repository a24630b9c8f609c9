"""``sluice predict`` loads only versions that are as they were pushed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from sluice.project import own_root

pytestmark = pytest.mark.tf


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The store of a project's pipeline; no version is pushed yet."""
    (tmp_path / "configs").mkdir()
    shutil.copy(own_root() / "configs" / "digits.yaml", tmp_path / "configs")
    (tmp_path / "row.jsonl").write_text(json.dumps({"name": "x"}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    return LocalModelStore(tmp_path / "workspace" / "digits" / "serving")


@pytest.fixture(scope="module")
def make_model(tmp_path_factory):
    """Saves models that write a file whenever they predict."""
    import tensorflow as tf

    def make(trace: Path) -> Path:
        class Writes(tf.Module):
            def _predict(self, names):
                with tf.control_dependencies([tf.io.write_file(str(trace), "here")]):
                    shares = tf.ones([tf.size(names), 2]) / 2.0
                return {"probabilities": shares, "label": tf.identity(names)}

            @tf.function(
                input_signature=[tf.TensorSpec([None], tf.string, name="name")]
            )
            def values(self, name):
                return self._predict(name)

            @tf.function(
                input_signature=[tf.TensorSpec([None], tf.string, name="examples")]
            )
            def examples(self, examples):
                return self._predict(examples)

        module = Writes()
        folder = tmp_path_factory.mktemp("model") / "model"
        signatures = {
            "serving_default": module.examples,
            "predict_values": module.values,
        }
        tf.saved_model.save(module, str(folder), signatures=signatures)
        features = {"name": {"input": "name", "required": False}}
        about = {"task": "classification", "classes": ["a", "b"], "features": features}
        (folder / "assets.extra").mkdir()
        (folder / "assets.extra" / "classes.json").write_text(json.dumps(about))
        return folder

    return make


def test_an_unrecorded_version_is_loaded_only_with_trust(
    store, make_model, sluice, tmp_path
):
    good, planted = tmp_path / "good", tmp_path / "planted"
    store.publish(make_model(good), facts={})
    shutil.copytree(make_model(planted), store.root / "2")

    code, out, err = sluice("predict", "digits", "row.jsonl")

    assert (code, out) == (5, "")
    assert "version 2 is not what was pushed" in err and "--trust" in err
    assert str(store.root / "2") in err
    assert not planted.exists()
    code, out, _ = sluice("predict", "digits", "row.jsonl", "--version", "1")
    assert (code, json.loads(out)["label"]) == (0, "x")
    assert good.exists() and not planted.exists()
    code, out, _ = sluice("predict", "digits", "row.jsonl", "--trust")
    assert (code, json.loads(out)["label"]) == (0, "x")
    assert planted.exists()
