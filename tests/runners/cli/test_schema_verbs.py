"""``sluice schema show``, ``diff``, ``accept`` and ``infer``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
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
feature { name: "fare" type: FLOAT float_domain { min: 0 max: 300 } }
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
FITTING: dict[str, Any] = {"tip": [1], "fare": [2.0], "name": [b"Ada"]}
PAID = ["Cash"] * 187 + ["Apple Pay"] * 12 + ["Csah"]


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


def _run(root: Path, run_id: str, paid: list[str] | None) -> None:
    """Records a run, with statistics of records by their payment, or without."""
    workspace = Workspace(root / "workspace" / "trips")
    workspace.prepare()
    node = NodeRecord("StatisticsGen", "StatisticsGen", state="failed")
    if paid is not None:
        node.state = "ran"
        artifact = workspace.root / "artifacts" / "StatisticsGen" / run_id
        node.outputs = {"statistics": [str(artifact)]}
        path = artifact / "Split-train" / "FeatureStats.pb"
        path.parent.mkdir(parents=True)
        records = [encode({**FITTING, "payment": [x.encode()]}) for x in paid]
        path.write_bytes(compute_statistics(records).SerializeToString())
    record = RunRecord(run_id, "trips", "2026-01-01T00:00:00+00:00", "sluice run")
    record.status, record.exit_code, record.nodes = "succeeded", 0, [node]
    workspace.run_dir(run_id).mkdir()
    record.save(workspace.run_dir(run_id))


def _ids(document: str) -> list[str]:
    return [change["id"] for change in json.loads(document)["changes"]]


def test_show_is_a_table_without_sensitive_values(root, sluice):
    code, out, _ = sluice("show", "trips")
    assert code == 0
    assert "payment  BYTES" in out and '"Cash"' in out and "0 .. 300" in out
    assert "1 value (sensitive)" in out and "Ada" not in out
    code, out, _ = sluice("show", "trips", "--json")
    assert json.loads(out)["features"][0]["presence"] == "all"
    assert "Ada" not in out


def test_diff_with_the_records(root, sluice):
    code, out, err = sluice("diff", "trips", "--data")
    assert code == 0, err
    for line in (
        "schema  schemas/trips/schema.pbtxt",
        "5 records, splits: train, eval",
        "if the data is right: sluice schema accept trips CHANGE... --data",
        "tip: The feature was present in fewer examples than expected: minimum "
        "fraction = 1.000000, actual = 0.666667 (in train)  [tip.missing]",
        "payment: Examples contain values missing from the schema: Apple Pay (~33%) "
        "(in train); Examples contain values missing from the schema: Apple Pay "
        "(~50%) (in eval)  [payment.new_value]",
        "name: a value that the feature's domain does not list; the values are not "
        "shown, because the feature is sensitive (in train, eval)  [name.new_value]",
        "[fare.out_of_range]",
        "user: New column (column in data but not in schema) (in train)  "
        "[user.new_feature]",
        "cannot be accepted: it may not be missing: it is the label",
    ):
        assert line in out
    assert "Grace" not in out


def test_diff_with_the_last_run_that_has_statistics(root, sluice):
    code, _, err = sluice("diff", "trips")
    assert code == 2
    assert "no run of trips has statistics" in err and "--data" in err
    _run(root, "20260101T000000Z-0001", PAID)
    _run(root, "20260102T000000Z-0002", None)
    code, out, err = sluice("diff", "trips", "--json")
    assert code == 0
    assert _ids(out) == ["payment.new_value"]
    document = json.loads(out)
    assert document["source"]["run_id"] == "20260101T000000Z-0001"
    assert document["changes"][0]["values"] == {"Apple Pay": 12, "Csah": 1}
    assert "Apple Pay (~6%), Csah (<1%)" in document["changes"][0]["text"]
    code, _, err = sluice("diff", "trips", "--run", "20260102")
    assert code == 2
    assert "run 20260102 has no statistics" in err


def test_accept_by_name(root, reviewed, sluice):
    code, out, _ = sluice(
        "accept", "trips", "--data", "fare.out_of_range", "payment.new_value"
    )
    assert code == 0
    assert out.splitlines() == [
        "accepted payment.new_value",
        '  + value: "Apple Pay"',
        "accepted fare.out_of_range",
        "  + float_domain { min: -3.0 max: 400.0 }",
        f"next: review and commit {reviewed}, then sluice run trips",
    ]
    fare = 'feature { name: "fare" type: FLOAT float_domain { min: 0 max: 300 } }'
    assert fare in SCHEMA
    new = fare.replace("0 max: 300", "-3.0 max: 400.0").replace(" } }", " }\n}")
    for field in (' name: "fare"', " type:", " float_domain {"):
        new = new.replace(field, f"\n {field}", 1)
    wanted = SCHEMA.replace(fare, new)
    wanted = wanted.replace('"Cash"\n', '"Cash"\n  value: "Apple Pay"\n')
    assert reviewed.read_text() == wanted
    assert not list(reviewed.parent.glob(".*")) and len(list(root.rglob("*.bak"))) == 0


def test_accept_all_skips_refused_changes(root, reviewed, sluice):
    code, out, _ = sluice("accept", "trips", "--data", "--all", "--json")
    assert code == 0
    document = json.loads(out)
    refused = [change["id"] for change in document["refused"]]
    assert refused == ["tip.missing", "name.new_value"]
    assert "the feature is sensitive" in document["refused"][1]["refusal"]
    assert "Grace" not in out + reviewed.read_text()
    assert [feature.name for feature in load(reviewed).feature][-1] == "user"
    assert "# { closed" in reviewed.read_text()
    _, out, _ = sluice("diff", "trips", "--data", "--json")
    assert _ids(out) == refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["name.new_value", "fare.out_of_range"], "name.new_value cannot be accepted: "
         "the feature is sensitive"),
        (["name.new_value=Grace"], "there is no difference 'name.new_value=Grace'"),
        (["fare.out_of_rang"], "fare.out_of_range"),
        ([], "select the differences to accept"),
        (["--all", "--run", "2026"], "--run and --data exclude each other"),
    ],
)  # fmt: skip
def test_accept_refuses_and_writes_nothing(root, reviewed, sluice, arguments, words):
    code, _, err = sluice("accept", "trips", "--data", *arguments)
    assert code == 2
    assert words in err
    assert reviewed.read_text() == SCHEMA


def test_infer_prints_a_schema_without_sensitive_values(root, sluice):
    code, out, err = sluice("infer", "trips")
    assert code == 0
    assert "5 records" in err
    found = text_format.Parse(out, schema_pb2.Schema())
    assert [item.name for item in found.feature] == [
        "fare", "name", "payment", "tip", "user"
    ]  # fmt: skip
    assert "Ada" not in out and "Grace" not in out
    code, out, _ = sluice("infer", "trips", "--examples", "data/eval-*", "-o", "new")
    assert code == 0
    assert "4 features of 2 records in data/eval-*" in out
    code, _, err = sluice("infer", "trips", "-o", "schemas/trips/schema.pbtxt")
    assert code == 2
    assert "the file exists" in err


def test_accept_one_value(root, reviewed, sluice):
    _run(root, "20260101T000000Z-0001", PAID)
    code, out, _ = sluice("accept", "trips", "payment.new_value=Apple Pay", "--json")
    assert code == 0
    (accepted,) = json.loads(out)["accepted"]
    assert accepted["values"] == {"Apple Pay": 12}
    assert 'value: "Apple Pay"' in reviewed.read_text()
    assert "Csah" not in reviewed.read_text()
