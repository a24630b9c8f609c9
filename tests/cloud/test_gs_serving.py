"""Commands and caches of local runs that push to ``gs://``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs
from runners.operations.predict import predict
from serving.model_store import ModelStore, store_at
from sluice.errors import ServingError, UsageError
from sluice.record.parts import PushRecord
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.cloud

INPUTS = RunInputs({}, {}, "s", {}, {}, {})


@pytest.fixture
def store(bucket: Any) -> ModelStore:
    return store_at(bucket.uri("serving/digits"))


@pytest.fixture
def config(store: ModelStore, tmp_path: Path, monkeypatch: Any) -> Config:
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    return load_config("digits", overrides=(f"push.serving_dir={store.uri}",))


@pytest.mark.tf
def test_a_version_is_copied_checked_and_loaded(bucket, store, config, tmp_path):
    import tensorflow as tf

    class Echo(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def call(self, name: Any) -> dict[str, Any]:
            return {"probabilities": tf.ones([tf.size(name), 2]) / 2, "label": name}

    def signature(argument: str) -> Any:
        spec = tf.TensorSpec([None], tf.string, name=argument)
        return tf.function(
            lambda **given: echo.call(given[argument])
        ).get_concrete_function(**{argument: spec})

    echo = Echo()
    signatures = {
        "serving_default": signature("examples"),
        "predict_values": signature("name"),
    }
    tf.saved_model.save(echo, str(tmp_path / "model"), signatures=signatures)
    features = {"name": {"input": "name", "required": False}}
    about = {"task": "classification", "classes": ["a", "b"], "features": features}
    (tmp_path / "model" / "assets.extra").mkdir()
    classes = tmp_path / "model" / "assets.extra" / "classes.json"
    classes.write_text(json.dumps(about))
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"name": "x"}))
    files = [str(rows)]
    with pytest.raises(UsageError, match="no version of digits has been pushed yet"):
        list(predict(config, files))
    store.publish(tmp_path / "model", facts={})

    assert [item.label for item in predict(config, files)] == ["x"]

    bucket.put("serving/digits/1/variables/more", b"planted")
    with pytest.raises(ServingError, match="is not what was pushed") as refused:
        list(predict(config, files))
    assert refused.value.where == f"{store.uri}/1"


@pytest.mark.parametrize("change", ["damaged", "lost", "another", "record"])
def test_a_run_is_up_to_date_until_the_store_changes(
    bucket, store, tmp_path, make_saved_model, change
):
    workspace = Workspace(tmp_path / "w")
    workspace.prepare()
    workspace.metadata_db.write_bytes(b"metadata")
    pushed = store.publish(make_saved_model("a", b"a"), facts={})
    record = RunRecord("20260101T000000Z-aaaa", "p", "t", "c", status="succeeded")
    record.pushes = [PushRecord(store.uri, "pushed", 1, pushed.uri)]
    workspace.run_dir(record.run_id).mkdir()
    record.save(workspace.run_dir(record.run_id))
    up_to_date.remember(workspace, record, INPUTS)
    assert up_to_date.still_stands(workspace, INPUTS) is not None

    if change == "damaged":
        name = "serving/digits/1/saved_model.pb"
        bucket.put(name, bucket.get(name))  # The same bytes; nobody has read them.
    elif change == "lost":
        bucket.remove("serving/digits/1/variables/variables.index")
    elif change == "another":
        store.publish(make_saved_model("b", b"b"), facts={})
    else:
        bucket.remove("serving/digits/.versions/1.json")

    assert up_to_date.still_stands(workspace, INPUTS) is None
