"""Decides what is wrong with a model's signatures, its answers and its server."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from components.serving_check.settings import version_of
from serving.signatures import EXAMPLES, VALUES
from sluice.metrics import THRESHOLD
from sluice.model_facts import CLASSES_FILE
from sluice.record.verdict import Check, Result

GATE = "serving"
# Probabilities in bfloat16 have three digits.
_SUM_TOLERANCE = 0.01


class Answer(NamedTuple):
    """What a model predicts.

    Attributes:
      numbers: the probabilities or predictions, ``[N, K]``.
      labels: ``[N]``; empty texts of a regression.
    """

    numbers: np.ndarray
    labels: np.ndarray


def signature_problem(
    name: str,
    signatures: Mapping[str, Any],
    facts: Mapping[str, Any],
    hidden: Collection[str],
) -> str:
    """Returns what is wrong with a signature, empty if nothing is.

    Args:
      name: of the signature.
      signatures: the ``SignatureDef`` of each name.
      facts: what the model says of itself.
      hidden: the features that a client does not know, such as the label.
    """
    if not facts:
        return f"{CLASSES_FILE} is missing"
    if name not in signatures:
        known = sorted(x for x in signatures if not x.startswith("__"))
        return f"there is no such signature, only {', '.join(known)}"
    inputs = _types(signatures[name].inputs)
    if name == EXAMPLES and [*inputs.values()] != ["string"]:
        return f"it takes {', '.join(sorted(inputs))}, not serialized examples alone"
    wanted = sorted(item["input"] for item in facts["features"].values())
    if name == VALUES and sorted(inputs) != wanted:
        found = ", ".join(sorted(inputs))
        return f"it takes {found}, but the inputs of features are {', '.join(wanted)}"
    if asked := {*hidden} & {*facts["features"]}:
        return f"it asks for {', '.join(asked)}, which a client does not know"
    kinds = {"probabilities": "float32", "label": "string"}
    if facts["task"] == "regression":
        kinds = {"prediction": "float32"}
    outputs = _types(signatures[name].outputs)
    if not kinds.items() <= outputs.items():
        return f"it returns {_listed(outputs)}, not {_listed(kinds)}"
    return ""


def _types(tensors: Mapping[str, Any]) -> dict[str, str]:
    from tensorflow import as_dtype

    return {name: as_dtype(spec.dtype).name for name, spec in tensors.items()}


def _listed(kinds: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in sorted(kinds.items()))


def read_answer(
    predictions: Any, rows: range, facts: Mapping[str, Any]
) -> Answer | str:
    """Returns the answer to examples, or what is wrong with it.

    Args:
      predictions: a list with the outputs of each example, by name, where a single
        output has no name; or a text that says why there are none.
      rows: the indices of the examples.
      facts: what the model says of itself.
    """
    place = f"example {rows[0] + 1}" if len(rows) == 1 else f"a batch of {len(rows)}"
    if not isinstance(predictions, list):
        return f"{place}: {' '.join(str(predictions).split())[:200]}"
    if len(predictions) != len(rows):
        return f"{place}: {len(predictions)} answers"
    key = "prediction" if facts["task"] == "regression" else "probabilities"
    outputs = [x if isinstance(x, dict) else {key: x} for x in predictions]
    is_of_two = facts["task"] == "classification" and len(facts["classes"]) == 2
    width = 1 if is_of_two else len(facts.get("targets") or facts["classes"])
    try:
        numbers = np.array([x[key] for x in outputs], float)
        shape = (len(rows), width or numbers.shape[1])
        if numbers.shape != shape:
            return f"{place}: {key} has the shape {numbers.shape}, not {shape}"
    except (TypeError, ValueError, LookupError):
        return f"{place}: its {key} are not lists of numbers of one length"
    labels = np.array([np.ravel(x.get("label", ""))[0] for x in outputs])
    for index, found, label in zip(rows, numbers, labels, strict=True):
        if problem := _problem(key, found, label, facts):
            together = "" if len(rows) == 1 else f" in {place}"
            return f"example {index + 1}{together}: {problem}"
    return Answer(numbers, labels)


def _problem(
    key: str, numbers: np.ndarray, label: str, facts: Mapping[str, Any]
) -> str:
    if not np.isfinite(numbers).all():
        return f"{key} has {numbers[~np.isfinite(numbers)][0]}"
    if facts["task"] == "regression":
        return ""
    if wrong := [x for x in numbers if not -1e-6 <= x <= 1 + 1e-6]:
        return f"{key} has {wrong[0]:g}, which is no probability"
    if facts["task"] == "classification":
        total = numbers.sum()
        if len(numbers) > 1 and abs(total - 1) > _SUM_TOLERANCE:
            return f"{key} sum to {total:g}"
        if label not in facts["classes"]:
            return f"label is {str(label)!r}, which is none of the classes"
    return ""


def difference(
    found: Answer | str,
    wanted: Answer | str,
    facts: Mapping[str, Any],
    most: float,
    than: str,
) -> tuple[float, str]:
    """Returns the largest difference of two answers, and what is wrong with it.

    Args:
      found: an answer to the first examples, or why there is none.
      wanted: another one, to at least as many.
      facts: what the model says of itself.
      most: the largest difference, of numbers beyond 1 as a share of the largest.
      than: what the other is, such as ``of the evaluated model``.
    """
    if isinstance(found, str) or isinstance(wanted, str):
        return 0.0, str(found if isinstance(found, str) else wanted)
    numbers, labels = (x[: len(found.labels)] for x in wanted)
    sizes = np.maximum(1.0, np.abs(numbers).max(axis=1, keepdims=True))
    differences = np.abs(found.numbers - numbers) / sizes
    row, column = np.unravel_index(differences.argmax(), differences.shape)
    largest = float(differences[row, column])
    if largest > most:
        pair = f"{found.numbers[row, column]:g}, {than} {numbers[row, column]:g}"
        return largest, f"example {row + 1}: value {column + 1} is {pair}"
    for row in np.flatnonzero(found.labels != labels):
        if not _is_tie(numbers[row], facts, most):
            pair = f"{str(found.labels[row])!r}, {than} {str(labels[row])!r}"
            return largest, f"example {row + 1}: label is {pair}"
    return largest, ""


def _is_tie(numbers: np.ndarray, facts: Mapping[str, Any], most: float) -> bool:
    """Whether rounding may decide on the label."""
    if facts["task"] == "classification" and len(numbers) > 1:
        first, second = np.sort(numbers)[-2:]
        return bool(second - first <= most)
    is_several = facts["task"] == "multi_label"
    threshold = THRESHOLD if is_several else facts["threshold"]
    return bool(np.abs(numbers - threshold).min() <= most)


def row(name: str, problem: str, **about: Any) -> Check:
    """Returns the row of a check; ``why`` says what is wrong if anything is."""
    failed = {"result": "FAIL", "why": problem} if problem else {}
    return Check(check=name, **(about | failed))


def limited_row(name: str, actual: float, limit: float | None, why: str) -> Check:
    """Returns the row of a number with its upper limit, if there is one."""
    found = Check(check=name, limit=limit, actual=actual, why=why)
    if limit is not None:
        found = replace(found, comparison="<=")
    return found if found.is_within else replace(found, result="FAIL")


def server_rows(server: str | None, exporter: str) -> list[Check]:
    """Returns the row of the server that will serve the model, if it is known.

    Args:
      server: an image or version.
      exporter: the version of TensorFlow that has exported the model.
    """
    version, needed = version_of(server or ""), version_of(exporter)
    if version is None or needed is None:
        return []
    why = f"the model was exported by TensorFlow {exporter}"
    result: Result = "pass"
    if version < needed:
        why += ", which is newer: the server may lack its operations"
        result = "warn" if version[0] == needed[0] else "FAIL"
    return [Check(check="TensorFlow Serving", actual=server, result=result, why=why)]
