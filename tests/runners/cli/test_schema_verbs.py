"""``sluice schema show``, ``diff``, ``accept`` and ``infer``."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from sample_data.tf_example import encode
from schemas.data_statistics import compute_statistics
from schemas.loader import load
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.tf


CONFIG = """
version: 1
name: trips
data: {dir: data, splits: {train: "train-*", eval: "eval-*"}}
sensitive: [name]
label: {feature: tip}
features:
  fare: {kind: numeric}
model: dense
evaluate: {metrics: [AUC]}
"""
SCHEMA = """\
# Reviewed.

feature { name: "tip" type: INT presence { min_fraction: 1.0 } }  # the label
feature {
  name: "payment"
  type: BYTES
  domain: "payment"  # { closed
}
feature {
  name: "name"
  type: BYTES
  string_domain { value: "Ada" }
}
feature {
  name: "fare"
  type: FLOAT
  float_domain { min: 0 max: 300 }
}
string_domain {
  name: "payment"
  value: "Cash"
}
"""
RECORDS: list[dict[str, Any]] = [
    {"tip": [1], "payment": [b"Cash"], "fare": [-3.0], "name": [b"Ada"]},
    {"tip": [0], "payment": [b"Apple Pay"], "fare": [400.0], "name": [b"Grace"]},
    {"payment": [b"Cash"], "user": [b"u1"]},
]
FIRST, SECOND = "20260101T000000Z-0001", "20260102T000000Z-0002"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project with two splits whose records differ from the schema."""
    for name, text in (
        ("configs/trips.yaml", CONFIG),
        ("schemas/trips/schema.pbtxt", SCHEMA),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data").mkdir()
    for split, number in (("train", 3), ("eval", 2)):
        path = tmp_path / "data" / f"{split}-0.tfrecord"
        tfrecord.write(path, map(encode, RECORDS[:number]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    return tmp_path


@pytest.fixture
def reviewed(root):
    return root / "schemas" / "trips" / "schema.pbtxt"


@pytest.fixture
def sluice(sluice):
    return partial(sluice, "schema")


@pytest.fixture
def run(root):
    """Records a run, with statistics of its records by split, or without any."""

    def record(run_id: str, **splits: list[dict[str, Any]]) -> None:
        workspace = Workspace(root / "workspace" / "trips")
        workspace.prepare()
        node = NodeRecord("StatisticsGen", "StatisticsGen", state="failed")
        artifact = workspace.root / "artifacts" / "StatisticsGen" / run_id
        for split, records in splits.items():
            node.state, node.outputs = "ran", {"statistics": [str(artifact)]}
            path = artifact / f"Split-{split}" / "FeatureStats.pb"
            path.parent.mkdir(parents=True)
            found = compute_statistics(map(encode, records))
            path.write_bytes(found.SerializeToString())
        record = RunRecord(run_id, "trips", "2026-01-01T00:00:00+00:00", "sluice run")
        record.status, record.exit_code, record.nodes = "succeeded", 0, [node]
        workspace.run_dir(run_id).mkdir()
        record.save(workspace.run_dir(run_id))

    return record


@pytest.fixture
def ran(run):
    """A run of records that differ from the schema, and a later one that failed."""
    run(FIRST, train=RECORDS, eval=RECORDS[1:])
    run(SECOND)


def _ids(changes: list[dict[str, Any]]) -> list[str]:
    return [change["id"] for change in changes]


def test_diff_with_the_last_run_that_has_statistics(ran, reviewed, sluice):
    code, out, err = sluice("diff", "trips")
    assert code == 0, err
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == f"{reviewed} and the data of run {FIRST}"
    for line in (
        "payment.new_value",
        "  train: Examples contain values missing from the schema: Apple Pay (~33%).",
        "  eval: Examples contain values missing from the schema: Apple Pay (~50%).",
        "name.new_value",
        "  train: a value that the feature's domain does not list; the values are not "
        "shown, because the feature is sensitive",
        "user.new_feature",
        "  train: New column (column in data but not in schema)",
        "tip.missing",
        "  cannot be accepted: it is the label",
    ):
        assert line in lines
    assert lines[-1] == "if the data is right: sluice schema accept trips CHANGE"
    assert "Grace" not in out
    document = json.loads(sluice("diff", "trips", "--json")[1])
    assert document["source"] == {"run_id": FIRST}
    assert set(_ids(document["changes"])) == {
        "tip.missing",
        "payment.new_value",
        "name.new_value",
        "fare.out_of_range",
        "user.new_feature",
    }


def test_accept_by_name(ran, root, reviewed, sluice):
    code, out, _ = sluice("accept", "trips", "fare.out_of_range", "payment.new_value")
    assert code == 0
    fare = "  float_domain { min: 0 max: 300 }"
    new = "  float_domain {\n    min: -3.0\n    max: 400.0\n  }"
    wanted = SCHEMA.replace(fare, new)
    wanted = wanted.replace('"Cash"\n', '"Cash"\n  value: "Apple Pay"\n')
    assert reviewed.read_text() == wanted
    assert [line for line in out.splitlines() if line[:1] in "+-"] == [
        f"--- {reviewed}",
        f"+++ {reviewed}",
        f"-{fare}",
        *(f"+{line}" for line in new.splitlines()),
        '+  value: "Apple Pay"',
    ]
    assert not list(reviewed.parent.glob(".*")) and len(list(root.rglob("*.bak"))) == 0


def test_accept_all_skips_refused_changes(ran, reviewed, sluice):
    sensitive = ("--set", "sensitive=[name, user]")
    code, out, _ = sluice("accept", "trips", "--all", "--json", *sensitive)
    assert code == 0
    refused = json.loads(out)["refused"]
    assert set(_ids(refused)) == {"tip.missing", "name.new_value"}
    assert "the feature is sensitive" in out
    assert "Grace" not in out + reviewed.read_text()
    assert "u1" not in out + reviewed.read_text()
    assert [feature.name for feature in load(reviewed).feature][-1] == "user"
    assert "# { closed" in reviewed.read_text()
    written_at_ns = reviewed.stat().st_mtime_ns
    code, out, _ = sluice("accept", "trips", "--all", "--json", *sensitive)
    assert code == 0 and json.loads(out)["accepted"] == []
    assert reviewed.stat().st_mtime_ns == written_at_ns
    document = json.loads(sluice("diff", "trips", "--json")[1])
    assert set(_ids(document["changes"])) == set(_ids(refused))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["name.new_value", "fare.out_of_range"], "name.new_value cannot be accepted: "
         "the feature is sensitive"),
        (["fare.out_of_rang"], "fare.out_of_range"),
        ([], "give each CHANGE to accept, or --all"),
    ],
)  # fmt: skip
def test_accept_refuses_and_writes_nothing(ran, reviewed, sluice, arguments, words):
    code, _, err = sluice("accept", "trips", *arguments)
    assert code == 2
    assert words in err
    assert reviewed.read_text() == SCHEMA


def test_infer_prints_a_schema_without_sensitive_values(root, sluice):
    code, out, _ = sluice("infer", "trips")
    assert code == 0
    assert out.startswith("# all 5 records of 2 files\n")
    found = text_format.Parse(out, schema_pb2.Schema())
    assert [item.name for item in found.feature] == [
        "fare", "name", "payment", "tip", "user"
    ]  # fmt: skip
    assert "Ada" not in out and "Grace" not in out
    document = json.loads(sluice("infer", "trips", "--json")[1])
    assert out.endswith(document["text"])
