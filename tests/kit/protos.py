"""Documents in the JSON form of TFDV's and TFMA's protos."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sluice.uncertainty import ESTIMATES, wilson


def feature(
    name: str, kind: str, type: str, present: int = 100, missing: int = 0, **stats: Any
) -> dict[str, Any]:
    """Returns the statistics of a feature with one value per example."""
    common = {"num_non_missing": str(present), "num_missing": str(missing)}
    common |= {"min_num_values": "1", "max_num_values": "1"}
    found = {"common_stats": common, **stats}
    return {"path": {"step": [name]}, "type": type, kind: found}


def numeric(
    name: str,
    counts: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    type: str = "FLOAT",
    **stats: Any,
) -> dict[str, Any]:
    """Returns a number's statistics; ``counts`` are of buckets of the width 1."""
    histogram = [
        {"low_value": float(i), "high_value": float(i + 1), "sample_count": count}
        for i, count in enumerate(counts)
    ]
    parts = [
        {"low_value": low, "high_value": high, "sample_count": 10.0}
        for low, high in pairwise(quantiles)
    ]
    histograms = [{"buckets": histogram}, {"type": "QUANTILES", "buckets": parts}]
    return feature(name, "num_stats", type, histograms=histograms, **stats)


def text(name: str, top: Mapping[str, float], **stats: Any) -> dict[str, Any]:
    """Returns the statistics of a text with its most frequent values."""
    found = [{"value": value, "frequency": count} for value, count in top.items()]
    unique = str(len(top))
    return feature(
        name, "string_stats", "STRING", top_values=found, unique=unique, **stats
    )


def split(*features: Mapping[str, Any], examples: int = 100) -> dict[str, Any]:
    """Returns the statistics of a split."""
    return {"num_examples": str(examples), "features": list(features)}


def slice_metrics(
    metrics: Mapping[str, Any], model: str = "candidate", **where: str
) -> dict[str, Any]:
    """Returns a slice's metrics: a number, a list, or a value with its bounds."""
    keys = [
        {"column": column, "bytes_value": base64.b64encode(value.encode()).decode()}
        for column, value in where.items()
    ]
    return {
        "slice_key": {"single_slice_keys": keys},
        "metric_keys_and_values": [
            {"key": {"name": name, "model_name": model}, "value": _value(value)}
            for name, value in metrics.items()
        ],
    }


def estimates(examples: float, **shares: float) -> dict[str, Any]:
    """Returns the metric of estimates, of shares; a change is as certain."""
    metrics = {}
    for name, share in shares.items():
        low, high = (x - share for x in wilson(share * examples, examples))
        metrics[name] = {
            **{"value": share, "interval": [low, high], "of": examples},
            **{"reference": 0.5, "gain": [low, high]},
            "changes": {"baseline": [low, high]},
        }
    found = {"examples": examples, "metrics": metrics, "predicted": []}
    content = base64.b64encode(json.dumps(found).encode()).decode()
    return {ESTIMATES: {"bytes_value": content}}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"array_value": {"int64_values": [str(x) for x in value]}}
    if isinstance(value, tuple):
        names = ("value", "lower_bound", "upper_bound")
        return {"bounded_value": dict(zip(names, value, strict=True))}
    return value if isinstance(value, dict) else {"double_value": value}


def evaluation(*slices: Mapping[str, Any], plots: Sequence[Any] = ()) -> dict[str, Any]:
    """Returns the document ``metrics``; ``slices`` are those of ``slice_metrics``."""
    return {"metrics": list(slices), "slices_left_out": 0, "plots": list(plots)}
