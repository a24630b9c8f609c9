"""Counts per class out of confusion-matrix counts."""

from __future__ import annotations

import pytest

from components.model_verdict import class_counts

pytestmark = pytest.mark.unit


def _counts(tp: float, fn: float, tn: float, fp: float) -> dict[str, float]:
    values = {"tp": tp, "fn": fn, "tn": tn, "fp": fp}
    return {f"class_count_{name}": value for name, value in values.items()}


def test_two_classes() -> None:
    by_class_id: dict[int | None, dict[str, float]] = {
        None: _counts(tp=3, fn=4, tn=10, fp=1)
    }
    assert class_counts.counts(by_class_id, ["no", "yes"]) == {"no": 11, "yes": 7}


def test_many_classes_are_counted_one_against_the_rest() -> None:
    by_class_id: dict[int | None, dict[str, float]] = {
        0: _counts(tp=1, fn=1, tn=5, fp=0),
        1: _counts(tp=2, fn=3, tn=1, fp=1),
    }
    assert class_counts.counts(by_class_id, ["a", "b", "c"]) == {"a": 2, "b": 5, "c": 0}


def test_only_many_classes_are_binarized() -> None:
    assert "binarize" not in class_counts.metrics_spec(["no", "yes"])
    spec = class_counts.metrics_spec(["a", "b", "c"])
    assert spec["binarize"] == {"class_ids": {"values": [0, 1, 2]}}


def test_our_counters_are_known_by_name() -> None:
    assert class_counts.is_counter("class_count_tp")
    assert not class_counts.is_counter("auc")
