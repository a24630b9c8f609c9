"""Values that violate the schema: named by feature, kind and record."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


@pytest.fixture
def wrong(trips):
    """A project whose train split has one wrong record of each kind."""
    records = trips.examples()
    records[1] = trips.example(1, label=None)
    records[2] = trips.example(2, payment=[b"bitcoin"])
    records[3] = trips.example(3, fare=[math.nan])
    records[4] = trips.example(4, fare=[math.inf])
    records[5] = trips.example(5, fare=[-2.5])
    records[6] = trips.example(6, tip=[1.0])
    records[7] = trips.example(7, fare=[1.0, 2.0])
    records[8] = trips.example(8, label=[2])
    # Of eval all labels are text, and no record says how it was paid.
    other = trips.examples(start=100, label=[b"seven"], payment=None)
    trips.fill(train=records, eval=other)
    return trips


EXPECTED = {
    # split, feature, kind: the record of the example, what is seen there
    ("train", "label", "missing"): (2, "missing"),
    ("train", "payment", "new_value"): (3, "'bitcoin'"),
    ("train", "fare", "not_finite"): (4, "nan"),
    ("train", "fare", "out_of_range"): (6, "-2.5"),
    ("train", "tip", "new_feature"): (7, "1"),
    ("train", "fare", "wrong_shape"): (8, "2 values"),
    ("train", "label", "out_of_range"): (9, "2"),
    ("eval", "payment", "missing"): (1, "missing"),
    ("eval", "label", "wrong_type"): (1, "'seven'"),
}


def test_each_violation_is_named_and_judged_by_the_policy(wrong) -> None:
    record = wrong.run()
    rows = wrong.stopped(record)
    shown = wrong.shown(record)
    seen = {key: row for key, row in rows.items() if key[2] != "not_compared"}
    assert set(seen) == set(EXPECTED)
    for key, (number, value) in EXPECTED.items():
        split, feature, _ = key
        path = wrong.data / f"{split}-0"
        line = seen[key]["examples"][0]
        assert line.startswith(f"{path}, record {number}: {feature} ")
        assert value in line
        assert line in shown
        assert seen[key]["policy"] == "validate.default: fail"
    assert "inf" in rows["train", "fare", "not_finite"]["examples"][1]
    assert len(rows["eval", "label", "wrong_type"]["examples"]) == 5

    # Warned of: it passes, and says so.
    record = wrong.run_to_gate("validate.default=warn")
    assert record.status == "succeeded", record.error
    results = {row["severity"] for row in record.gates[0]["rows"]}
    assert results == {None, "warn"}
    shown = wrong.shown(record)
    assert "warn: feature 'tip', train   (validate.default: warn)" in shown
    assert "'bitcoin'" in shown

    # The last rule that matches applies, and its line is named.
    record = wrong.run(
        "validate.default=ignore",
        "validate.rules=[{feature: fare, action: fail}, {anomaly: not_finite, "
        "action: warn}, {feature: tip, anomaly: new_feature, action: fail}]",
    )
    rows = wrong.stopped(record)
    assert {key: row["policy"] for key, row in rows.items()} == {
        ("train", "fare", "out_of_range"): "validate.rules[0]: fail",
        ("train", "fare", "wrong_shape"): "validate.rules[0]: fail",
        ("train", "tip", "new_feature"): "validate.rules[2]: fail",
    }
    others = {
        (row["feature"], row["kind"]): row["policy"]
        for row in record.gates[0]["rows"]
        if row["severity"] and row["passed"] and row["slice"] == "train"
    }
    assert others["fare", "not_finite"] == "validate.rules[1]: warn"
    assert others["payment", "new_value"] == "validate.default: ignore"

    # Counts, from the same statistics.
    record = wrong.run(
        "validate.default=ignore",
        "validate.rules=[{anomaly: count, action: fail}]",
        "validate.min_examples={eval: 21}",
        "validate.max_examples={train: 19}",
    )
    rows = wrong.stopped(record)
    assert {(key[0], row["limit"], row["actual"]) for key, row in rows.items()} == {
        ("train", "1 to 19", 20),
        ("eval", ">= 21", 20),
    }
    assert record.node("StatisticsGen").state == "cached"


@pytest.mark.browser
def test_the_page_of_blocked_data(wrong, report_pages: Any) -> None:
    report = Path(wrong.run_to_gate().report_uri)
    report_pages.check(report, ("Verdict", "Run", "Data", "Provenance"))
    with report_pages.open(report) as page:
        banner = page.locator("#verdict .banner").first.inner_text()
        assert "Not pushed: the data gate stopped the run" in banner
        anomalies = page.locator("#data .table").filter(has_text="'bitcoin'").first
        assert anomalies.locator("tbody tr").count() >= len(EXPECTED)


def test_serving_requests_are_compared_and_judged(trips) -> None:
    """Serving requests have no label; all of these were paid by card."""
    requests = trips.examples(start=300, label=None, payment=[b"card"])
    more = [*requests, trips.example(400, label=None, fare=[-1.0])]
    path = trips.write("served/a", more)
    damaged = bytearray(path.read_bytes())
    damaged[-6] ^= 1  # in the data of the last record
    trips.write("served/b", bytes(damaged))
    record = trips.run("data.serving='served/*'")
    rows = trips.stopped(record)
    assert set(rows) == {
        ("train", "payment", "skew"),
        ("serving", "fare", "out_of_range"),
        ("serving", None, "corrupt"),
    }
    assert rows["serving", "fare", "out_of_range"]["examples"] == [
        f"{path}, record 21: fare -1"
    ]
    (place,) = rows["serving", None, "corrupt"]["examples"]
    assert place.startswith(f"{path.with_name('b')}, record 21 at byte ")
    skew = rows["train", "payment", "skew"]
    assert skew["limit"] == "L-infinity <= 0.2"
    assert skew["baseline"] == "serving examples"
    assert 0.2 < skew["actual"] < 0.6
    assert record.node("ServingStatisticsGen").state == "ran"

    record = trips.run("data.serving='served/*'", "examples.max_corrupt_fraction=0.1")
    assert ("serving", None, "corrupt") not in trips.stopped(record)
    rows = record.gates[0]["rows"]
    (damage,) = [row["why"] for row in rows if row["slice"] == "serving"][:1]
    assert damage == "1 of 42 records quarantined (1 checksum)"
