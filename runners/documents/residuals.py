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

MAX_TARGETS = 8
BINS = 24
_KEYS = "true", "predicted", "baseline"
# Values beyond these quantiles are counted in the outermost bins.
_TAILS = 0.01, 0.99


def residuals(
    model_uris: Sequence[str],
    examples: Artifact,
    splits: Sequence[str],
    privacy: Privacy,
) -> dict[str, Any] | None:
    """Returns counts of residuals and the largest; None for what is no regression.

    Examples without a label are left out, as are predictions that are not finite.
    Of several targets, ``largest`` sorts by the largest error relative to the target's
    root mean squared error. Nothing is counted if the label is sensitive.

    Args:
      model_uris: of the ``Model`` artifacts, local or remote: the candidate, and the
        baseline if there is one.
      examples: the artifact that they were evaluated on.
      splits: those that were evaluated.
      privacy: what may be shown, and which feature is the label.
    """
    if not privacy.label or task_of(model_uris[0]) != "regression":
        return None
    records = read_examples(examples.uri, splits)
    with ExitStack() as opened:
        uris = [uri for uri in model_uris if task_of(uri) == "regression"]
        models = [load_model(uri, privacy.label, opened) for uri in uris]
        rows = [
            # A baseline may have another number of targets.
            [x for x in values if x.shape == values[0].shape]
            for _, *values in predict(models, islice(records, MAX_EXAMPLES))
        ]
    # By example, model (the label first), and target.
    values = np.array(rows or np.zeros((0, 2, 1)), np.float64)
    known = np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))
    values = values[known]
    is_hidden = privacy.label in privacy.sensitive or not len(known)
    targets = [] if is_hidden else [*np.moveaxis(values, 2, 0)[:MAX_TARGETS]]
    worst = [] if is_hidden or privacy.private else _worst(values)
    places = {known[i].item(): values[i].tolist() for i in worst}
    count = len(rows) if places else 0
    again = enumerate(islice(read_examples(examples.uri, splits), count))
    shown = {i: shown_record(record, privacy) for i, record in again if i in places}
    return {
        "split": ", ".join(splits),
        "examples": len(known),
        "complete": next(records, None) is None,
        "has_baseline": values.shape[1] > 2,
        "targets": [_target(x[:, 0], x[:, 1:].T) for x in targets],
        "targets_left_out": max(0, values.shape[2] - MAX_TARGETS),
        "largest": [
            {**shown[i], **dict(zip(_KEYS, found, strict=False))}
            for i, found in places.items()
        ],
    }


def _worst(values: np.ndarray) -> list[int]:
    """Returns the examples with the largest errors of the first model."""
    errors = np.abs(values[:, 1] - values[:, 0])
    scale = np.sqrt(np.square(errors).mean(axis=0))
    relative = errors / np.where(scale > 0, scale, 1.0)
    order = np.argsort(-relative.max(axis=1), kind="stable")
    return [int(i) for i in order[:MAX_MISTAKES]]


def _target(truth: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
    """Returns counts of a target's predictions, ``[models, examples]``."""
    pair = np.array([truth, predictions[0]])
    low, high = np.quantile(pair, _TAILS)
    clipped = np.clip(pair, low, high)
    limits: Any = ((low, high), (low, high))
    grid, edges, _ = np.histogram2d(clipped[0], clipped[1], BINS, limits)
    errors = predictions - truth
    half, sizes = BINS // 2, np.abs(errors)
    least = np.quantile(sizes, _TAILS[1]) / half or 1.0
    power = 10.0 ** np.floor(np.log10(least))
    width = power * next(x for x in (1, 2, 5, 10) if x * power >= least)
    ends = width * np.arange(-half, half + 1)
    # Of the absolute error, by example.
    change = sizes[0] - sizes[-1]
    return {
        "edges": edges.tolist(),
        "grid": grid.astype(int).tolist(),
        "error_edges": ends.tolist(),
        "errors": [
            np.histogram(np.clip(x, ends[0], ends[-1]), ends)[0].tolist()
            for x in errors
        ],
        "bias": errors.mean(axis=1).tolist(),
        "closer": int((change < 0).sum()),
        "farther": int((change > 0).sum()),
        "change": change.mean().item(),
        "deviation": change.std().item(),
    }
