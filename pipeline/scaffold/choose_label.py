"""Chooses the label by names and values, and finds features that give it away."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.config.label import Task
from pipeline.scaffold.choose import FEW, is_identifier, is_not_finite, words
from pipeline.scaffold.sample import Column, Sample
from sluice.errors import UsageError, did_you_mean

MAX_CLASSES = 1000

# The usual names of a label, the clearest first: a coordinate may be called y.
_NAMES = "label labels target targets class classlabel outcome y".split()
_MIN_PER_CLASS = 10
_CHANCE = 1e-6  # A coincidence that is less likely than this is none.
# What is called so is not what is looked for.
_NO = frozenset("0 -1 no n false f negative neg".split())


def choose_label(sample: Sample, requested: str | None) -> tuple[Column, str]:
    """Returns the label and why it was chosen: it was requested, or has a usual name.

    Raises:
      UsageError: the requested feature, or any, cannot be the label; or none was
        requested, and not exactly one has a usual name.
    """
    columns = sample.columns
    possible = [column for column in columns.values() if task_of(column)]
    # The likeliest first: of a long list only the beginning is printed.
    possible.sort(key=lambda x: (task_of(x) == "regression", len(x.counts)))
    names = [column.name for column in possible]
    if requested in names:
        return columns[requested], "your choice"
    if requested is not None or not possible:
        which = "no feature can" if requested is None else f"{requested!r} cannot"
        raise UsageError(
            f"{which} be the label: in every record a number, or a whole number or "
            f"string of 2 to {MAX_CLASSES:,} classes, or lists of either",
            examples=names,
            hint=did_you_mean(requested, names) if requested else None,
        )
    by_name = ([x for x in names if words(x)[-1:] == [usual]] for usual in _NAMES)
    named = next(filter(None, by_name), [])
    if len(named) != 1:
        raise UsageError(
            "none of the features has a usual name of a label, such as label or class"
            if not named
            else "more than one feature has a usual name of a label",
            examples=named or names,
            hint="name the label: --label FEATURE",
        )
    *before, last = words(named[0])
    return columns[named[0]], f"its name {'ends in' if before else 'is'} {last!r}"


def task_of(column: Column) -> Task | None:
    """Returns the task whose label a feature can be: a few classes, or numbers."""
    if column.images or not column.is_text:
        return None
    return _task_of_classes(column) or ("regression" if _is_number(column) else None)


def _is_number(column: Column) -> bool:
    """Whether every record has a number, or as many, that are no few classes."""
    least, most = column.lengths
    is_fixed = column.type == "FLOAT" and least == most
    is_everywhere = column.present == column.records
    if column.type == "BYTES" or not (is_everywhere and (column.is_single or is_fixed)):
        return False
    few = FEW if column.type == "INT" else 1
    if len(column.counts) <= few or is_not_finite(column):
        return False
    return column.type == "FLOAT" or not is_identifier(column)


def _task_of_classes(column: Column) -> Task | None:
    if (rows := indicators(column)) is not None:
        is_one_hot = (rows.sum(axis=1) == 1).all()
        return "classification" if is_one_hot else "multi_label"
    classes = len(column.counts)
    if b"" in column.counts:
        return None
    if not 2 <= classes <= min(MAX_CLASSES, column.records / 2):
        return None
    low, high = column.bounds
    if column.type == "FLOAT":
        # Class ids, as some converters write them.
        is_ids = column.is_required and {*column.counts} == {*range(min(classes, FEW))}
        return "classification" if is_ids else None
    if column.type == "INT" and high - low >= max(10 * classes, MAX_CLASSES):
        return None
    is_rare = column.records < _MIN_PER_CLASS * classes
    if column.type == "INT" and column.is_single and classes > FEW and is_rare:
        return None  # Numbers.
    if not column.is_single:
        return "multi_label"
    return "classification" if column.is_required else None


def indicators(column: Column) -> np.ndarray | None:
    """Returns the lists ``[records, classes]`` of a feature with 0 or 1 for each class.

    None for other features.
    """
    least, most = column.lengths
    is_fixed = 2 <= least == most <= MAX_CLASSES and column.present == column.records
    if not (is_fixed and column.counts.keys() <= {0, 1}):
        return None
    return np.reshape(column.values.to_numpy(zero_copy_only=False), (-1, most))


def class_counts(label: Column) -> dict[Any, int]:
    """Returns how many records have each class."""
    if (rows := indicators(label)) is not None:
        return dict(enumerate(map(int, rows.sum(axis=0))))
    return {
        name.decode(errors="replace") if isinstance(name, bytes) else name: count
        for name, count in label.counts.items()
    }


def positive_class(label: Column) -> int | str | None:
    """Returns which of two classes is looked for; None where there are not two.

    It is the one whose opposite is called no or the like, otherwise the rarer one.
    """
    is_one = task_of(label) == "classification" and indicators(label) is None
    if not is_one or len(label.counts) != 2:
        return None
    by_count = sorted(label.counts, key=lambda x: (label.counts[x], x))
    names = [x.decode() if isinstance(x, bytes) else int(x) for x in by_count]
    return min(names, key=lambda x: str(x).lower() in _NO)


def listed_classes(label: Column) -> list[int]:
    """Returns the classes that the config lists: those of floats, and codes.

    Whole numbers are codes where those between them that were not seen are at least
    half as many; fewer are classes that may come.
    """
    has_codes = label.type != "BYTES" and task_of(label) != "regression"
    if not has_codes or indicators(label) is not None:
        return []
    (low, high), seen = label.bounds, len(label.counts)
    is_dense = label.type == "INT" and 2 * (high - low + 1 - seen) < seen
    return [] if is_dense else sorted(map(int, label.counts))


def _presence_gives_away(column: Column, label: Column) -> str | None:
    """Returns how it tells the label that a feature is there, or is not."""
    labels = label.values.to_pylist()
    for which, places in (("with", column.is_present), ("without", ~column.is_present)):
        classes = {labels[i] for i in np.flatnonzero(places)}
        if len(classes) == 1:
            share = labels.count(*classes) / len(labels)
            if share ** np.count_nonzero(places) < _CHANCE and share < 1:
                return f"all records {which} it have one class"
    return None


def gives_away(column: Column, label: Column) -> str | None:
    """Returns how a feature tells the label of every record; None if it does not.

    With enough records of each class that is no coincidence, but a copy of the label,
    or what is known only after it. Lists of any length, and of numbers, are not judged.
    """
    is_number, rows = task_of(label) == "regression", indicators(label)
    if rows is None and not label.is_required:
        return None
    if not column.is_required:
        is_class = rows is None and not is_number and column.is_single
        return _presence_gives_away(column, label) if is_class else None
    labels = label.values.to_pylist() if rows is None else [*map(tuple, rows.tolist())]
    pairs = sorted(zip(column.values.to_pylist(), labels, strict=True))
    ordered = [answer for _, answer in pairs] if column.type != "BYTES" else []
    values, classes = len(column.counts), Counter(labels)
    if is_number:
        is_monotonic = sorted(ordered) in (ordered, ordered[::-1])
        if ordered and values > FEW and is_monotonic:
            return "it rises or falls with it in all records"
    elif len(classes) < 2 or min(classes.values()) < _MIN_PER_CLASS:
        return None
    elif sum(a != b for a, b in pairwise(ordered)) == len(classes) - 1:
        return "thresholds of it separate the classes"
    if values <= column.records / 2 and len(set(pairs)) == values:
        return f"each of its values has one {'label' if is_number else 'class'}"
    return None
