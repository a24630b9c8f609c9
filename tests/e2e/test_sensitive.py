"""Values of sensitive features are only in the data and in artifacts made from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

SCHEMA = """
feature {
  name: "name" type: BYTES
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  drift_comparator { infinity_norm { threshold: 0.1 } }
}
feature {
  name: "plan" type: BYTES
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  string_domain { value: "basic" }
  drift_comparator { infinity_norm { threshold: 0.1 } }
}
feature {
  name: "income" type: FLOAT
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  float_domain { max: 1000 }
}
feature {
  name: "visits" type: INT
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  int_domain { max: 1000 }
}
"""
NAME, PLAN, INCOME, VISITS = b"Zaphod Beebl", b"platinumplan", 8675309.0, 424242421
SECRETS = ("Zaphod", "platinumplan", "8675309", "8.67531e", "8.675309e", "424242421")


def _person(trips: Any, number: int, **other: Any) -> bytes:
    own = {"name": [NAME], "plan": [PLAN], "income": [INCOME], "visits": [VISITS]}
    return trips.example(number, **{**own, **other})


@pytest.fixture
def people(trips):
    """A project in which every sensitive feature violates the schema."""
    trips.write_schema(SCHEMA)
    trips.settings += ["sensitive=[name, plan, income, visits, image]"]
    plain = {"name": [b"-"], "plan": [b"basic"], "income": [1.0], "visits": [1]}
    trips.fill(
        train=[_person(trips, n) for n in range(20)],
        eval=trips.examples(start=100, **plain),
    )
    return trips


def _leaks(trips: Any, record: Any) -> dict[str, set[str]]:
    """Returns the secrets that a run printed, logged, recorded or stored."""
    workspace = trips.workspace
    folders = (workspace.runs, workspace.root / "documents")
    places = [x for folder in folders for x in folder.rglob("*") if x.is_file()]
    places += [*workspace.root.glob("metadata.db*"), *workspace.root.glob("state/*.db")]
    contents = {str(path): path.read_bytes() for path in places}
    contents["the terminal"] = trips.shown(record).encode()
    assert any(path.endswith("metadata.db") for path in contents)
    assert any("StatisticsGen.log" in path for path in contents)
    found = {
        path: {secret for secret in SECRETS if secret.encode() in content}
        for path, content in contents.items()
    }
    return {path: secrets for path, secrets in found.items() if secrets}


def test_anomalies_show_no_value(people):
    trips = people
    path = trips.write("train-1", [_person(trips, 50, image=[b"Zaphod's face"])])
    record = trips.run()
    rows = trips.stopped(record)
    assert {
        ("train", "plan", "new_value"),
        ("train", "income", "out_of_range"),
        ("train", "visits", "out_of_range"),
        ("train", "plan", "split_drift"),
        ("train", "name", "split_drift"),
        ("overall", None, "corrupt"),
    } == set(rows)
    assert _leaks(trips, record) == {}
    # Nor are the bounds, as in the table of the schema.
    assert rows["train", "income", "out_of_range"].limit == "the schema's range"
    # But where they are is told.
    new = rows["train", "plan", "new_value"]
    assert new.examples[0] == f"{trips.data / 'train-0'}, record 1"
    assert "because the feature is sensitive" in new.why
    assert f"{path}, record 1, " in rows["overall", None, "corrupt"].examples[0]
    # They are counted.
    (item,) = [item for item in record.documents if item.kind == "statistics"]
    path = trips.workspace.run_dir(record.run_id) / item.path
    features = json.loads(path.read_text())["splits"]["train"]["features"]
    (plan,) = [item for item in features if item["path"]["step"] == ["plan"]]
    assert plan["string_stats"]["common_stats"]["num_non_missing"] == "20"
