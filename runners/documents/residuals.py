"""Residuals document: how far an evaluated regression is from the truth.

A residual is the prediction minus the true value, in the label's unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np

from runners.documents.examples import load_model, predict, read_examples, task_of
from runners.documents.importance import importance
from runners.documents.mistakes import MAX_EXAMPLES, MAX_MISTAKES, shown_record
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy

GROUPS = 10
# Weighted examples are replaced by that many of equal weight.
_RESAMPLED = 200_000
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
        is_hidden = privacy.label in privacy.sensitive
        kept = [record for record, *_ in found if not is_hidden]
        permuted = importance(model, kept, "regression", privacy.weight)
    rows = [pair for _, *pair in found]
    # By example, label or prediction, and target.
    values = np.array(rows or np.zeros((0, 2, 1)), np.float64)
    known = np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))
    values = weighted = values[known]
    if privacy.weight and len(known):
        weights = np.array([found[i][0].weight(privacy.weight) for i in known])
        places = (np.arange(_RESAMPLED) + 0.5) / _RESAMPLED * weights.sum()
        weighted = values[np.searchsorted(weights.cumsum(), places)]
    is_hidden = is_hidden or not len(known)
    worst = [] if is_hidden or privacy.private else _worst(values)
    places = {known[i].item(): values[i].tolist() for i in worst}
    again = enumerate(islice(read_examples(examples.uri, splits), len(rows)))
    shown = {i: shown_record(record, privacy) for i, record in again if i in places}
    return {
        "split": ", ".join(splits),
        "examples": len(known),
        "complete": next(records, None) is None,
        "importance": permuted,
        "targets": []
        if is_hidden
        else [_target(*x.T) for x in weighted.transpose(2, 0, 1)],
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


def _target(true: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Returns quantiles of a target's residuals, and of predictions by true value."""
    residuals = predicted - true
    count = min(GROUPS, len(true))
    groups = np.array_split(np.argsort(true, kind="stable"), count)
    band = {
        name: [np.quantile(predicted[group], share).item() for group in groups]
        for name, share in _BAND.items()
    }
    return {
        "mean": residuals.mean().item(),
        "quantiles": np.quantile(residuals, _SHARES).tolist(),
        "by_value": {"true": [true[group].mean().item() for group in groups], **band},
    }
