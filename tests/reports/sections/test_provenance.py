"""The section Provenance: command, lineage, config against its defaults, digests."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pipeline.config.load import load_config
from pipeline.config.serialize import plain_config
from reports.read_run import RunData
from reports.run_page import render_run
from reports.sections.provenance import build
from sluice.project import own_root

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]


def test_values_that_differ_from_the_defaults(run_with):
    path = str(own_root() / "configs" / "digits.yaml")
    config = plain_config(load_config(path, overrides=("train.seed=5",)))
    view = build(run_with(config=config))
    assert view.chosen is not None and view.config is not None
    chosen = {key: value for key, value in view.chosen.rows}
    assert chosen["train.seed"] == "5" and chosen["data.dir"] == '"data/digits"'
    assert "train.deterministic" not in chosen
    marks = {key: str(mark) for key, _, mark in view.config.rows}
    assert marks["train.seed"] == "set"
    assert marks["train.deterministic"] == "default"
    thresholds = json.loads(chosen["evaluate.thresholds"])
    assert thresholds[0] == {"metric": "accuracy", "lower_bound": 0.97}
    assert {key for key, mark in marks.items() if mark == "set"} == set(chosen)


def test_a_config_of_another_version_has_no_marks(run_with):
    view = build(run_with(config={"version": 99, "old": {"key": 1}}))
    assert view.chosen is None and view.config is not None
    assert [row[:2] for row in view.config.rows] == [
        ("version", "99"),
        ("old.key", "1"),
    ]


def test_a_foreign_pipeline_has_no_config(run_with):
    view = build(run_with(config={}))
    assert view.config is None and view.lineage is None
    assert view.command == "sluice run digits"


def test_spans_digests_and_packages(run_with):
    spans = [
        {"span": 3, "version": None, "date": None},
        {"span": 4, "version": 2, "date": "2026-01-04"},
    ]
    view = build(
        run_with(
            spans={"data": spans, "serving": []},
            digests={"code": "ab", "schema": None},
            packages={"tfx": "1.16.0", "tf-keras": None},
        )
    )
    assert view.spans == [("Input data", "span 3, span 4 version 2 (2026-01-04)")]
    assert view.digests == [("code", "ab")]
    assert view.packages is not None and view.packages.rows == [("tfx", "1.16.0")]


def test_the_lineage_goes_back_to_the_data(run_with):
    lineage = {
        "artifacts": [
            {
                "id": number,
                "name": name,
                "uri": f"/artifacts/{number}",
                "created_at": "2026-01-01T00:00:00+00:00",
                "producer": number,
            }
            for number, name in ((1, "Gen.examples"), (2, "Trainer.model"))
        ],
        "executions": [
            {"id": 1, "run_id": "20251231T000000Z-aaaa"},
            {"id": 2, "run_id": "20260101T000000Z-aaaa"},
        ],
        "origin": {"data": [{"path": "/data", "span": 4, "fingerprint": "sha256:1"}]},
        "served": [
            {
                "version": 3,
                "uri": "/serving/3",
                "digest": "ab" * 32,
                "published_at": "2026-01-01T00:02:00+00:00",
                "run_id": "20260101T000000Z-aaaa",
            }
        ],
        "complete": True,
    }
    run = run_with({"lineage": lineage})
    view = build(run)
    assert "Versions in the store that are this model" in render_run(run)
    assert view.lineage is not None
    assert [(row[0], row[1], row[3]) for row in view.lineage.rows] == [
        ("Version 3", "this run", "/serving/3"),
        ("Trainer.model #2", "this run", "/artifacts/2"),
        ("Gen.examples #1", "20251231T000000Z-aaaa", "/artifacts/1"),
        ("Data, span 4", None, "/data sha256:1"),
    ]
    partial = build(run_with({"lineage": {**lineage, "complete": False}}, run_id="b"))
    assert partial.lineage is not None
    assert "`sluice lineage digits` has older ones" in partial.lineage.caption
