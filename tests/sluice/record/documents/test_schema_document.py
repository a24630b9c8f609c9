"""The schema document: types, presence, domains, comparators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import WorkspaceError
from sluice.record.documents import schema_document as module
from sluice.record.documents.schema_document import schema_document

pytestmark = pytest.mark.unit

SCHEMA = """
default_environment: "TRAINING"
string_domain { name: "payment" value: "Cash" value: "Card" }
feature {
  name: "payment_type" type: BYTES domain: "payment"
  value_count { min: 1 max: 3 }
  drift_comparator { infinity_norm { threshold: 0.05 } }
  skew_comparator { jensen_shannon_divergence { threshold: 0.5 } }
}
feature {
  name: "fare" type: FLOAT float_domain { min: 0.0 max: inf }
  shape { dim { size: 2 } dim { size: -1 } }
  presence { min_fraction: 0.5 min_count: 1 }
  not_in_environment: "SERVING"
}
feature {
  name: "hour" type: INT int_domain { min: 0 max: 23 is_categorical: true }
  lifecycle_stage: DEBUG_ONLY
}
feature {
  name: "trip" type: STRUCT
  struct_domain { feature { name: "note" type: BYTES image_domain { } } }
}
"""


def document(folder: Path, *sensitive: str) -> dict[str, dict[str, Any]]:
    (folder / "schema.pbtxt").write_text(SCHEMA)
    found = schema_document(folder, sensitive)
    assert found is not None
    json.dumps(found)
    assert found["default_environments"] == ["TRAINING"]
    return {feature["name"]: feature for feature in found["features"]}


def test_each_feature_is_described(tmp_path: Path) -> None:
    features = document(tmp_path)
    assert list(features) == ["payment_type", "fare", "hour", "trip", "trip.note"]
    assert features["payment_type"] == {
        "name": "payment_type",
        "type": "BYTES",
        "validated": True,
        "shape": None,
        "min_values": 1,
        "max_values": 3,
        "min_fraction": None,
        "min_count": None,
        "domain": {
            "kind": "string",
            "name": "payment",
            "min": None,
            "max": None,
            "categorical": None,
            "values": ["Cash", "Card"],
            "values_left_out": 0,
        },
        "sensitive": False,
        "environments": {"only_in": [], "not_in": []},
        "comparators": [
            {"check": "drift", "measure": "infinity_norm", "threshold": 0.05},
            {"check": "skew", "measure": "jensen_shannon_divergence", "threshold": 0.5},
        ],
    }
    fare = features["fare"]
    assert (fare["shape"], fare["min_values"]) == ([2, None], None)
    assert (fare["min_fraction"], fare["min_count"]) == (0.5, 1)
    assert (fare["domain"]["min"], fare["domain"]["max"]) == (0.0, "Infinity")
    assert fare["environments"]["not_in"] == ["SERVING"]
    hour = features["hour"]
    assert (hour["validated"], hour["domain"]["categorical"]) == (False, True)
    assert features["trip"]["domain"] is None
    assert features["trip.note"]["domain"]["kind"] == "image"


def test_sensitive_features_have_no_values(tmp_path: Path) -> None:
    features = document(tmp_path, "payment_type", "fare")
    domain = features["payment_type"]["domain"]
    assert (domain["values"], domain["values_left_out"]) == ([], 2)
    domain = features["fare"]["domain"]
    assert (domain["min"], domain["max"]) == (None, None)


def test_long_schemas_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FEATURES", 1)
    monkeypatch.setattr(module, "MAX_VALUES", 1)
    (feature,) = document(tmp_path).values()
    assert feature["domain"]["values"] == ["Cash"]
    assert feature["domain"]["values_left_out"] == 1
    found = schema_document(tmp_path)
    assert found is not None
    assert found["features_left_out"] == 4


def test_damage_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "schema.pbtxt").write_text("feature {")
    with pytest.raises(WorkspaceError, match="schema cannot be read") as caught:
        schema_document(tmp_path)
    assert caught.value.where == str(tmp_path / "schema.pbtxt")
    (tmp_path / "schema.pbtxt").unlink()
    assert schema_document(tmp_path) is None
