"""Commands and caches of local runs that push to ``gs://``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cache import up_to_date
from runners.cache.node_cache import still_served
from runners.cache.run_inputs import RunInputs
from runners.operations.models import list_models
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


def test_versions_are_listed_and_damage_is_named(
    bucket, store, config, make_saved_model
):
    assert list_models(config) == []
    store.publish(make_saved_model("a", b"a"), facts={"pipeline_run_id": "r1"})
    store.publish(make_saved_model("b", b"b"), facts={})
    bucket.put("serving/digits/1/saved_model.pb", b"other")

    newest, oldest = list_models(config)

    assert newest.to_dict()["uri"] == f"{store.uri}/2"
    assert newest.flaws == {}
    assert list(oldest.flaws) == ["damaged"]
    bucket.fail("GET", "prefix=serving/digits", 403, times=99)
    with pytest.raises(ServingError, match="cannot be read.*permission denied"):
        list_models(config)


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
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"name": "x"}))
    files = [str(rows)]
    with pytest.raises(UsageError, match="no version of digits has been pushed yet"):
        list(predict(config, files))
    store.publish(tmp_path / "model", facts={})

    assert [item.label for item in predict(config, files)] == ["x"]

    bucket.put("serving/digits/1/variables/more", b"planted")
    with pytest.raises(ServingError, match="differs from what was pushed") as refused:
        list(predict(config, files))
    assert refused.value.where == f"{store.uri}/1"


def test_a_push_counts_while_it_is_the_newest_and_undamaged(
    bucket, store, make_saved_model
):
    def is_served(uri: str, digest: str) -> bool:
        texts = {"pushed_destination": uri, "digest": digest}
        artifact = SimpleNamespace(
            get_int_custom_property=lambda name: 1,
            get_string_custom_property=lambda name: texts[name],
        )
        return still_served(artifact)

    first = store.publish(make_saved_model("a", b"a"), facts={})
    bucket.requests()
    assert is_served(first.uri, first.digest)
    requests = bucket.requests()
    # Two listings of names (pages of three), one record, one listing of the version.
    assert len([line for line in requests if "alt=media" in line]) == 1, requests
    second = store.publish(make_saved_model("b", b"b"), facts={})
    assert not is_served(first.uri, first.digest)
    bucket.put("serving/digits/2/saved_model.pb", b"other")
    assert not is_served(second.uri, second.digest)
    assert is_served("gs://elsewhere/1700000000", ""), "pushed by another Pusher"


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
