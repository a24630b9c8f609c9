"""Residuals document: how far an evaluated regression is from the truth.

A residual is the prediction minus the true value, in the label's unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np

from runners.documents.examples import read_examples
from runners.documents.mistakes import MAX_EXAMPLES, MAX_MISTAKES, shown_record
from runners.documents.predict import load_model, predict, task_of
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy

GROUPS = 10
_SHARES = np.linspace(0.0, 1.0, 101)
_BAND = {"low": 0.1, "median": 0.5, "high": 0.9}


def residuals(
    model_uris: Sequence[str],
    examples: Artifact,
    splits: Sequence[str],
    privacy: Privacy,
) -> dict[str, Any] | None:
    """Returns quantiles of residuals and the largest; None for what is no regression.

    Quantiles and means are weighted, the largest errors are not.

    Examples without a label are left out, as are predictions that are not finite.
    Of several targets, ``largest`` sorts by the largest error relative to the target's
    root mean squared error. Nothing is counted if the label is sensitive.

    Args:
      model_uris: of the ``Model`` artifacts, local or remote; the first is described.
      examples: the artifact that it was evaluated on.
      splits: those that were evaluated.
      privacy: what may be shown, and which feature is the label.
    """
    if not privacy.label or task_of(model_uris[0]) != "regression":
        return None
    records = read_examples(examples.uri, splits)
    with ExitStack() as opened:
        model = load_model(model_uris[0], privacy.label, opened)
        found = [*predict([model], islice(records, MAX_EXAMPLES))]
    rows = [pair for _, *pair in found]
    # By example, label or prediction, and target.
    values = np.array(rows or np.zeros((0, 2, 1)), np.float64)
    weights = np.array([record.weight(privacy.weight) for record, *_ in found])
    known = np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))
    values, weights = values[known], weights[known]
    is_hidden = privacy.label in privacy.sensitive or not len(known)
    worst = [] if is_hidden or privacy.private else _worst(values)
    places = {known[i].item(): values[i].tolist() for i in worst}
    again = enumerate(islice(read_examples(examples.uri, splits), len(rows)))
    shown = {i: shown_record(record, privacy) for i, record in again if i in places}
    return {
        "split": ", ".join(splits),
        "examples": len(known),
        "complete": next(records, None) is None,
        "targets": []
        if is_hidden
        else [_target(*x.T, weights) for x in values.transpose(2, 0, 1)],
        "largest": [
            {**shown[i], "true": true, "predicted": predicted}
            for i, (true, predicted) in places.items()
        ],
    }


def _worst(values: np.ndarray) -> list[int]:
    """Returns the examples with the largest errors."""
    errors = np.abs(values[:, 1] - values[:, 0])
    scale = np.sqrt(np.square(errors).mean(axis=0))
    relative = errors / np.where(scale > 0, scale, 1.0)
    order = np.argsort(-relative.max(axis=1), kind="stable")
    return [int(i) for i in order[:MAX_MISTAKES]]


def _target(
    true: np.ndarray, predicted: np.ndarray, weights: np.ndarray
) -> dict[str, Any]:
    """Returns quantiles of a target's residuals, and of predictions by true value."""
    order = np.argsort(true, kind="stable")
    order = order[weights[order] > 0]
    residuals = predicted - true
    groups = np.array_split(order, min(GROUPS, len(order)) or 1)
    band = {
        name: [_quantiles(predicted[x], weights[x], share).item() for x in groups]
        for name, share in _BAND.items()
    }
    means = [np.average(true[x], weights=weights[x]).item() for x in groups]
    return {
        "mean": np.average(residuals, weights=weights).item(),
        "quantiles": _quantiles(residuals[order], weights[order], _SHARES).tolist(),
        "by_value": {"true": means, **band},
    }


def _quantiles(values: np.ndarray, weights: np.ndarray, shares: Any) -> np.ndarray:
    """Returns weighted quantiles; with equal weights they are NumPy's."""
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    places = weights.cumsum() - weights / 2
    places -= places[0]
    return np.asarray(np.interp(shares, places / (places[-1] or 1.0), values))
