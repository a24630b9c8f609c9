"""``sluice predict`` loads only versions that are as they were pushed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sample_data.tf_example import encode
from serving.local_store import LocalModelStore
from sluice.project import own_root
from sluice.tfrecords import tfrecord
from tests.kit.ingestion import Room

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
        about_name = {"required": False, "in_every_record": True}
        features = {"name": {"input": "name", **about_name}}
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


def test_a_file_has_the_ids_and_a_note_names_what_rows_lack(
    store, make_model, sluice, tmp_path
):
    rows = [{"order": 2**60 + 1, "name": "a"}, {"order": 7}, {"order": 8, "name": ""}]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("predict", "digits", "rows.jsonl", "--id", "order")
    # Refused although there is no version to load.
    code, _, err = sluice(*asked, "-o", "out.txt")
    assert code == 2 and ".parquet" in err
    assert sluice("predict", "digits", "out.csv", "-o", "out.csv")[0] == 2
    for name in ("index", "label"):
        assert "cannot be the id" in sluice(*asked[:-1], name)[2]
    store.publish(make_model(tmp_path / "trace"), facts={})

    code, out, err = sluice(*asked, "-o", "out.csv", "--json")

    file = tmp_path / "out.csv"
    assert (code, json.loads(out)) == (0, {"schema_version": 1, "file": str(file)})
    assert "'name' (2)" in err
    assert file.read_text().splitlines()[1:] == [
        f'{2**60 + 1},"rows.jsonl",0,"a",0.5,0.5',
        '7,"rows.jsonl",1,"",0.5,0.5',
        '8,"rows.jsonl",2,"",0.5,0.5',
    ]
    _, out, _ = sluice(*asked)
    found = [json.loads(line) for line in out.splitlines()]
    assert [row["order"] for row in found] == [2**60 + 1, 7, 8]
    assert [row.get("missing") for row in found] == [None, ["name"], ["name"]]


def test_a_folder_has_a_file_for_each_input_and_is_completed(
    store, make_model, sluice, tmp_path
):
    store.publish(make_model(tmp_path / "trace"), facts={})
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps({"name": name}))
    (tmp_path / "bad").write_text("{")
    asked = ("predict", "digits", "a", "bad", "b", "-o", "out")
    # A process of its own, which forks before it loads the model.
    command = [sys.executable, "-m", "runners.cli.main", *asked]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3 and "bad, line 1" in done.stderr, done.stderr
    assert not (tmp_path / "out" / "bad.jsonl").exists()
    (tmp_path / "bad").write_text(json.dumps({"name": "c"}))
    first = tmp_path / "out" / "a.jsonl"
    sluice(*asked)
    written = first.stat().st_mtime_ns

    code, out, err = sluice(*asked, "--json")

    assert (code, len(json.loads(out)["files"])) == (0, 3), err
    assert first.stat().st_mtime_ns == written
    names = {"a": "a", "bad": "c", "b": "b"}
    for name, label in names.items():
        (line,) = (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()
        assert json.loads(line)["label"] == label
    store.publish(make_model(tmp_path / "trace 2"), facts={})
    code, _, err = sluice(*asked)
    assert code == 2 and "predictions of another version" in err
    assert sluice(*asked, "--version", "1")[0] == 0
    (tmp_path / "later").mkdir()
    shutil.copy(tmp_path / "a", tmp_path / "later" / "a")
    # Found: the predictions of the other file were taken for its.
    of_later = ("predict", "digits", "later/a", "-o", "out", "--version", "1")
    code, _, err = sluice(*of_later)
    assert code == 2 and "other files with these names" in err
    for wrong in (("a", "./a"), ("-",), ("a", "--limit", "1")):
        assert sluice("predict", "digits", *wrong, "-o", "other")[0] == 2


def test_logs_in_a_folder_are_what_the_ingestion_reads(
    store, make_model, sluice, tmp_path
):
    from tensorflow_serving.apis import prediction_log_pb2

    store.publish(make_model(tmp_path / "trace"), facts={})
    records = [encode({"name": [b"x"], "other": [1]}), encode({"other": [2]})]
    tfrecord.write(tmp_path / "records", records)
    (tmp_path / "rows").write_text(json.dumps({"name": "y"}))
    asked = ("predict", "digits", "--as", "prediction-logs")

    code, out, err = sluice(*asked, "records", "rows", "-o", "logs", "--json")

    files = [Path(path) for path in json.loads(out)["files"]]
    assert code == 0, err
    assert [path.name for path in files] == [
        "records.logs.tfrecord.gz",
        "rows.logs.tfrecord.gz",
    ]
    room = Room(tmp_path)
    paths = [room.put(path.name, path.read_bytes()) for path in files]
    report = room.ingest(*paths, splits=("serving",), are_logs=True)
    assert (report.records, report.quarantined) == (3, 0)
    written = (tmp_path / "out" / "Split-serving").glob("*.gz")
    read = [record for path in written for record in tfrecord.read(path)]
    assert sorted(read) == sorted([*records, encode({"name": [b"y"]})])
    (log,) = map(prediction_log_pb2.PredictionLog.FromString, tfrecord.read(files[1]))
    assert log.log_metadata.model_spec.version.value == 1
    assert log.predict_log.response.outputs["label"].string_val == [b"y"]
    first = files[0].stat().st_mtime_ns
    assert sluice(*asked, "records", "rows", "-o", "logs")[0] == 0
    assert files[0].stat().st_mtime_ns == first
    for wrong in (("-o", "a.jsonl"), (), ("-o", "logs", "--id", "other")):
        assert sluice(*asked, "records", *wrong)[0] == 2
