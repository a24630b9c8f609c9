"""Weights of examples: of their class, their own, and 0 for padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.config.feature_set import Label


def weights_of_classes(
    given: str | Mapping[str | int, float] | None,
    label: Label,
    counts: Sequence[int] | None,
) -> list[float] | None:
    """Returns the weight of each class by its id; None if all are 1.

    Args:
      given: weights by class, 1 where there is none; ``balanced``: the mean count of
        the classes that occur, divided by each one's count, as in scikit-learn's
        ``compute_class_weight``; None: all are 1.
      label: the classes.
      counts: number of training examples of each class, for ``balanced``.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        # Keys become strings in a node's parameters.
        by_name = {str(name): weight for name, weight in given.items()}
        return [by_name.get(name, 1.0) for name in label.class_names]
    assert counts is not None
    present = sum(count > 0 for count in counts)
    return [sum(counts) / present / count if count else 1.0 for count in counts]
