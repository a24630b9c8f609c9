"""The section Data: splits, features, anomalies, bad records, schema, images."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from reports.read_run import RunData
from reports.run_page import render_run
from reports.sections import features
from reports.sections.data import build

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]
HOSTILE = "</td><script>alert(1)</script>\"'&\u202e"
PNG = "data:image/png;base64,AAAA"


def numeric(name: str, counts: list[float], **changes: Any) -> dict[str, Any]:
    edges = [float(i) for i in range(len(counts) + 1)]
    values = {
        "zeros": 1,
        "nan": 0,
        "mean": 1.5,
        "std_dev": 1.0,
        "min": 0.0,
        "median": 1.0,
        "max": edges[-1],
        "histogram": {"edges": edges, "counts": counts},
        "quantiles": None,
        **changes,
    }
    return feature(name, "FLOAT", numeric=values)


def text(name: str, **counts: int) -> dict[str, Any]:
    top = [{"value": value, "count": count} for value, count in counts.items()]
    values = {
        "unique": len(top) + 5,
        "avg_length": 4.0,
        "invalid_utf8": 0,
        "top_values": top,
        "rank_histogram": None,
    }
    return feature(name, "STRING", string=values)


def feature(name: str, kind: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "present": 80,
        "missing": 20,
        "min_values": 1,
        "max_values": 1,
        "sensitive": False,
        "numeric": None,
        "string": None,
        "bytes": None,
        **changes,
    }


def statistics(**splits: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "splits": [
            {
                "split": name,
                "examples": 100,
                "slices_left_out": 0,
                "features": found,
                "features_left_out": 0,
            }
            for name, found in splits.items()
        ]
    }


def miss(name: str, severity: str = "fail", **changes: Any) -> dict[str, Any]:
    row = {
        "check": f"feature {name!r}",
        "slice": "train",
        "limit": "in the domain",
        "baseline": None,
        "actual": 3,
        "passed": severity != "fail",
        "why": "new values",
        "severity": severity,
        "policy": "always",
        "kind": "new_value",
        "feature": name,
        "examples": ["a.tfrecord, record 3"],
    }
    return {**row, **changes}


def data_gate(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"gate": "data", "passed": False, "override": None, "rows": list(rows)}


def test_nothing_without_documents(run_with: RunWith) -> None:
    assert build(run_with()) is None


def test_features_are_compared_across_splits_and_with_the_accepted_data(
    run_with: RunWith,
) -> None:
    run = run_with(
        {
            "statistics": statistics(
                eval=[numeric("fare", [4.0, 4.0])],
                train=[numeric("fare", [30.0, 10.0])],
            ),
            "baseline_statistics": {
                **statistics(train=[numeric("fare", [1.0, 3.0])]),
                "baseline": {
                    "name": "span 1",
                    "accepted_at": "2026-01-01T00:00:00+00:00",
                    "override": None,
                },
            },
        }
    )
    view = build(run)
    assert view is not None and view.features is not None
    (card,) = view.features.cards
    assert card.header == ["train", "eval", "accepted data"]
    chart = str(card.chart)
    assert "train: 75 %\neval: 50 %\naccepted data: 25 %" in chart
    assert view.baseline.startswith("Compared with the data accepted last: span 1")
    assert [row[:2] for row in view.examples.rows] == [["eval", 100], ["train", 100]]
    assert view.examples.rows[1][3:] == [100, 0.0]
    assert ["present", "80", "80", "80"] in card.rows


def test_anomalies_come_first_then_what_is_near_its_drift_limit(
    run_with: RunWith,
) -> None:
    names = ["calm", "warned", "near", "failed", "far"]
    distances = [("near", 0.09), ("far", 0.01)]
    run = run_with(
        {
            "statistics": statistics(train=[numeric(name, [1.0]) for name in names]),
            "distances": {
                "comparisons": [
                    {
                        "check": "drift",
                        "split": "train",
                        "against": "span 1",
                        "features": [
                            {
                                "feature": name,
                                "measure": "L-infinity",
                                "distance": value,
                                "limit": 0.1,
                            }
                            for name, value in distances
                        ],
                    }
                ]
            },
        },
        gates=[data_gate(miss("warned", "warn"), miss("failed"))],
    )
    view = build(run)
    assert view is not None and view.features is not None
    order = [card.name for card in view.features.cards]
    assert order == ["failed", "warned", "near", "far", "calm"]
    labels = [column.label for column in view.features.table.columns]
    row = view.features.table.rows[2]
    assert row[labels.index("Distance")] == 0.09
    assert row[labels.index("Limit")] == 0.1
    near = view.features.cards[2]
    assert near.remarks == [
        "train since the accepted data: L-infinity 0.09000, limit 0.1000"
    ]
    assert view.anomalies is not None
    assert [str(row[0]) for row in view.anomalies.rows] == ["fail", "warn"]
    assert "a.tfrecord, record 3" in view.anomalies.rows[0][-1]


def test_a_histogram_in_one_bucket_shows_the_middle_of_the_values(
    run_with: RunWith,
) -> None:
    quantiles = {"edges": [float(i * i) for i in range(11)], "counts": [10.0] * 10}
    quantiles["edges"][-1] = 200.0
    wide = {"edges": [0.0, 100.0, 200.0], "counts": [95.0, 5.0]}
    skewed = numeric("fare", [], histogram=wide, quantiles=quantiles)
    run = run_with({"statistics": statistics(train=[skewed])})
    found = features.build(run)
    assert found is not None
    chart = str(found.cards[0].chart)
    assert "<title>1 to 41\n" in chart and "<title>41 to 81\n" in chart
    # Of all values: the quantiles at 1, 36, 49 and 81 are 10, 60, 70 and 90 %.
    shares = [float(share) for share in re.findall(r"train: ([\d.]+) %<", chart)]
    assert sum(shares) == pytest.approx(80, abs=0.2)
    assert shares[0] == pytest.approx(50 + 10 * 5 / 13, abs=0.2)
    assert "lowest and the highest tenth" in found.cards[0].remarks[0]


def test_whole_numbers_have_a_bucket_each(run_with: RunWith) -> None:
    label = numeric("label", [])
    label["type"] = "INT"
    label["numeric"]["histogram"] = {
        "edges": [i * 0.2 for i in range(11)],
        # TFDV's buckets have their upper edges.
        "counts": [5, 0, 0, 0, 3, 0, 0, 0, 0, 2],
    }
    found = features.build(run_with({"statistics": statistics(train=[label])}))
    assert found is not None
    chart = str(found.cards[0].chart)
    for value, share in enumerate((50, 30, 20)):
        assert f"<title>{value}\ntrain: {share} %</title>" in chart


def test_whole_numbers_are_not_cut_unevenly(run_with: RunWith) -> None:
    """Of ten buckets over 0 to 12, three hold two whole numbers."""
    label = numeric("label", [])
    label["type"] = "INT"
    label["numeric"]["histogram"] = {
        "edges": [i * 1.2 for i in range(11)],
        "counts": [8, 4, 4, 4, 8, 4, 4, 4, 4, 8],
    }
    found = features.build(run_with({"statistics": statistics(train=[label])}))
    assert found is not None
    chart = str(found.cards[0].chart)
    values = re.findall(r"<title>(.+)\ntrain", chart)
    assert values == [
        "0 to 1",
        "2",
        "3",
        "4",
        "5 to 6",
        "7",
        "8",
        "9",
        "10",
        "11 to 12",
    ]
    assert "share per whole number" in chart
    spark = next(str(cell) for cell in found.table.rows[0] if "spark" in str(cell))
    assert len(set(re.findall(r"v-[\d.]+", spark))) == 1


def test_texts_show_their_most_frequent_values(run_with: RunWith) -> None:
    run = run_with(
        {
            "statistics": statistics(
                train=[text("payment", Cash=40, Card=20)],
                eval=[text("payment", Cash=40, New=40)],
            )
        }
    )
    found = features.build(run)
    assert found is not None
    card = found.cards[0]
    assert "Cash\ntrain: 50 %\neval: 50 %" in str(card.chart)
    assert "New\neval: 50 %" in str(card.chart)
    assert card.remarks == ["5 more distinct values"]


def test_sensitive_features_have_counts_only(run_with: RunWith) -> None:
    secret = text("name")
    secret |= {"sensitive": True}
    secret["string"]["top_values"] = [{"value": None, "count": 7}]
    run = run_with({"statistics": statistics(train=[secret])})
    found = features.build(run)
    assert found is not None
    assert found.cards[0].chart is None
    assert found.cards[0].remarks == ["sensitive: counts only"]
    assert found.cards[0].kind == "text, sensitive"


def test_spans_and_bad_records(run_with: RunWith) -> None:
    file = {
        "version": None,
        "size_bytes": 10,
        "quarantined": 1,
        "records": 50,
        "split": "train",
    }
    run = run_with(
        {
            "ingestion": {
                "files": [{**file, "span": 1}, {**file, "span": 2, "split": "eval"}],
                "files_left_out": 0,
                "splits": {"train": {"records": 50, "shards": 1}},
                "records": 100,
                "quarantined": 2,
                "lost_bytes": 0,
                "errors": {"truncated": 2},
                "first_errors": [
                    {
                        "path": "a.tfrecord",
                        "record": 7,
                        "offset": 1234,
                        "kind": "truncated",
                        "reason": "the file ends early",
                    }
                ],
                "problems": [],
                "quarantine_cut": False,
            }
        }
    )
    view = build(run)
    assert view is not None and view.spans is not None and view.bad_records is not None
    assert view.spans.rows[0] == [2, None, None, 50, 1, 10, 1]
    assert view.spans.rows[1] == [1, None, 50, None, 1, 10, 1]
    assert view.bad_summary == "2 records in the quarantine (truncated: 2)."
    assert view.bad_records.rows[0][1:4] == ["a.tfrecord", 7, 1234]


def test_the_schema_and_what_the_data_suggests(run_with: RunWith) -> None:
    item = {
        "name": "fare",
        "type": "FLOAT",
        "validated": True,
        "shape": [1],
        "min_values": None,
        "max_values": None,
        "min_fraction": 1.0,
        "min_count": None,
        "domain": {
            "kind": "float",
            "name": None,
            "min": 0.0,
            "max": None,
            "values": [],
        },
        "sensitive": False,
        "environments": {"only_in": [], "not_in": ["SERVING"]},
        "comparators": [
            {"check": "drift", "measure": "infinity_norm", "threshold": 0.1}
        ],
    }
    suggestion = {
        "feature": "fare",
        "kind": "out_of_range",
        "text": "min: -1",
        "refusal": None,
    }
    run = run_with(
        {
            "statistics": statistics(train=[numeric("fare", [1.0])]),
            "schema": {"features": [item], "features_left_out": 0},
            "anomalies": {"splits": [], "suggestions": [suggestion]},
        }
    )
    view = build(run)
    assert view is not None and view.schema is not None
    assert view.schema.table.rows == [
        [
            "fare",
            "float",
            "shape [1]",
            "100 % of the examples",
            "float, 0 to –",  # noqa: RUF001
            "not in SERVING",
            "drift: L-infinity ≤ 0.1000",
        ]
    ]
    assert view.schema.suggestions is not None
    assert "sluice schema diff digits" in render_run(run)


def image(**changes: Any) -> dict[str, Any]:
    values = {"split": "train", "file": "a", "record": 1, "class": "7", "data": PNG}
    return {**values, "width": 8, "height": 8, "format": "png", **changes}


def images(**changes: Any) -> dict[str, Any]:
    group = {"images": [image(), image(split="test")], "images_left_out": 3}
    counts = ("groups", "images", "across_splits", "across_classes")
    none: dict[str, Any] = {"compared": 9, **dict.fromkeys(counts, 0), "examples": []}
    found = {**none, "groups": 1, "images": 5, "across_splits": 1, "examples": [group]}
    feature = {
        "name": "image",
        "sensitive": False,
        "splits": [
            {
                "split": "train",
                "images": 9,
                "undecodable": 1,
                "formats": {"png": 8, "jpeg": 1},
                "channels": {"1": 9},
                "sizes": [{"width": 8, "height": 8, "count": 9}],
                "sizes_left_out": 0,
                "bytes": {"min": 1, "median": 140, "max": 150},
                "brightness": {"edges": [0, 128, 255], "counts": [3, 6]},
            }
        ],
        "gallery": [{"class": "7", "images": [image(), image(data=None)]}],
        "classes_left_out": 2,
        "duplicates": {"exact": found, "near": none},
    }
    return {
        "private": False,
        "limits": {"records": 9, "hashed_records": 9, "seconds": 1.0},
        "splits": [{"split": "train", "records": 9, "complete": False, "decoded": 9}],
        "features": [{**feature, **changes}],
    }


def test_images_have_a_gallery_and_duplicates(run_with: RunWith) -> None:
    run = run_with(
        {"statistics": statistics(train=[text("image")]), "samples": images()}
    )
    view = build(run)
    assert view is not None and view.images is not None
    found = view.images.features[0]
    assert found.table.rows[0][3:6] == ("png: 8, jpeg: 1", "1", "8 x 8")
    equal, near = found.duplicates
    assert equal.is_leak and "1 group across splits" in equal.summary
    assert not near.is_leak and near.summary.startswith("No two images are nearly")
    assert view.images.bound.startswith("Read: the first 9 records of train.")
    page = render_run(run)
    assert page.count(f'src="{PNG}"') == 3
    assert "too large to show" in page and "Classes not shown: 2" in page


def test_a_private_run_shows_no_samples(run_with: RunWith) -> None:
    samples = {"private": True, "limits": {}, "splits": [], "features": []}
    found = statistics(train=[text("image")])
    run = run_with({"statistics": found, "samples": samples})
    assert "no samples of the data are shown" in render_run(run)
    assert not run.notices


def test_only_images_are_shown_as_images(run_with: RunWith) -> None:
    gallery = [{"class": HOSTILE, "images": [image(data="javascript:alert(1)")]}]
    run = run_with(
        {
            "statistics": statistics(train=[text("image")]),
            "samples": images(gallery=gallery, name=HOSTILE),
        }
    )
    page = render_run(run)
    assert "javascript:" not in page and "<script>alert" not in page


def test_hostile_names_and_values_are_escaped(run_with: RunWith) -> None:
    values = {HOSTILE: 3, HOSTILE * 100: 2}
    run = run_with(
        {"statistics": statistics(train=[text(HOSTILE, **values)])},
        gates=[data_gate(miss(HOSTILE, why=HOSTILE, examples=[HOSTILE]))],
    )
    page = render_run(run)
    assert not run.notices
    assert "<script>alert" not in page and "\u202e" not in page


def test_2000_features_are_bounded(run_with: RunWith) -> None:
    found = [numeric(f"feature_{i}", [float(i % 7 + 1)] * 10) for i in range(2000)]
    run = run_with({"statistics": statistics(train=found, eval=found)})
    started_s = time.monotonic()
    page = render_run(run)
    assert not run.notices
    assert time.monotonic() - started_s < 30
    assert len(page) < 5_000_000
    assert page.count('<figure class="card"') == features.MAX_CARDS
    assert "1,800 more features without an anomaly" in page
