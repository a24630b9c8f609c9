"""Asks the served model and the new one the requests that were recorded last.

Their answers now are compared, not those in the records, which versions before may have
given; and those of the new model with its answers to the split that it was judged on.
Nothing is compared where a model would get other inputs than from a client.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from components.serving_check.in_process import LoadedModel, ask
from components.serving_check.judge import Answer, limited_row
from components.serving_check.predictions import against_judged
from components.serving_check.recorded_requests import RecordedRequests
from components.serving_check.settings import Settings
from serving.model_store import ModelVersion
from sluice.errors import bounded
from sluice.metrics import THRESHOLD
from sluice.model_facts import read_facts
from sluice.record.verdict import Check
from sluice.storage import digest
from sluice.storage.local_copy import local_copy
from sluice.uncertainty import MIN_EXAMPLES

MAX_REQUESTS, MAX_SHOWN = 1000, 10
_BATCH, _MAX_CLASSES = 32, 3
_MAX_S = 30.0
# What both must say of themselves.
_SAME = ("task", "classes", "targets")
_CHANGED = "changed answers"


def compare(
    model: Path,
    served: ModelVersion,
    folder: Path,
    examples: str,
    settings: Settings,
) -> list[Check]:
    """Returns the rows of a comparison.

    None if no request is recorded, or the served model is this one.

    Args:
      model: the folder of the new model, as it would be pushed.
      served: the version that is served.
      folder: of recorded requests.
      examples: address of the ``Examples`` artifact that the new model was judged on.
      settings: of the check.
    """
    requests = RecordedRequests(folder)
    if not requests.files or digest.of_tree(model) == served.digest:
        return []
    name = f"version {served.version}"
    if difference := served.difference():
        return _not_compared(f"{name} is not what was pushed: {difference}", settings)
    with local_copy(served.uri) as old:
        facts, before = read_facts(model), read_facts(old)
        if other := [x for x in _SAME if facts.get(x) != before.get(x)]:
            why = f"the models have other {' and '.join(other)}"
            return _not_compared(why, settings)
        taken = {*facts["features"]} | {*before["features"]}
        if hidden := taken & {*settings.sensitive}:
            why = f"requests are recorded without {_listed(hidden)}, which is sensitive"
            return _not_compared(why, settings)
        try:
            models = LoadedModel(old), LoadedModel(model)
        except Exception as error:  # Such as for an operation that is not here.
            why = f"{name} or the new model cannot be loaded: {type(error).__name__}"
            return _not_compared(why, settings)
        pairs, asked = _ask_both(*models, requests, facts)
    why = requests.describe(asked, len(pairs))
    if not pairs:
        return _not_compared(f"no answers: {why}", settings)
    lacking = {*facts["features"]} - requests.features
    if new := lacking - {*before["features"]}:
        what = f"no request has {_listed(new)}, which {name} does not take"
        return _not_compared(f"{what}: {why}", settings)
    if lacking:
        why += f"; none has {_listed(lacking)}"
    rows = [replace(x, baseline=name) for x in _rows(pairs, facts, why, settings)]
    requested = [pair.new for pair in pairs]
    return [*rows, *against_judged(models[1], requested, facts, examples, settings)]


def _not_compared(why: str, settings: Settings) -> list[Check]:
    is_limited = settings.max_changed_answers is not None
    result: Any = "warn" if is_limited else "pass"
    return [Check(check=_CHANGED, actual="not compared", result=result, why=why)]


def _listed(names: set[str]) -> str:
    return ", ".join(bounded([*map(repr, sorted(names))]))


@dataclass(frozen=True)
class _Pair:
    """A request with the answers of both models; a text says why there is none."""

    place: str
    old: Answer
    new: Answer | str

    @property
    def changes(self) -> np.ndarray:
        """The change of each number, infinite without an answer."""
        if isinstance(self.new, str):
            return np.full(self.old.numbers.shape[1], np.inf)
        return np.abs(self.new.numbers - self.old.numbers)[0]


def _ask_both(
    old: LoadedModel, new: LoadedModel, requests: RecordedRequests, facts: Any
) -> tuple[list[_Pair], int]:
    """Returns the pairs, and how many requests were asked."""
    pairs: list[_Pair] = []
    asked, ends_at = 0, time.monotonic() + _MAX_S
    found = islice(requests.read(), MAX_REQUESTS)
    while time.monotonic() < ends_at and (batch := [*islice(found, _BATCH)]):
        asked += len(batch)
        places, records = zip(*batch, strict=True)
        answers = (ask(x, records, facts) for x in (old, new))
        pairs += [
            _Pair(place, before, after)
            for place, before, after in zip(places, *answers, strict=True)
            if not isinstance(before, str)
        ]
    return pairs, asked


def _rows(
    pairs: Sequence[_Pair], facts: Any, why: str, settings: Settings
) -> Iterator[Check]:
    changes = np.stack([x.changes for x in pairs])
    has_answer = np.isfinite(changes).all(axis=1)
    is_changed = np.array([_is_changed(x, facts) for x in pairs])
    order = np.lexsort((changes.max(axis=1), is_changed))[::-1][:MAX_SHOWN]
    shown = [pairs[i] for i in order if changes[i].max() > 0]
    examples = tuple(
        f"{x.place}: {_text(x.old, facts)}, now {_text(x.new, facts)}" for x in shown
    )
    if missing := int((~has_answer).sum()):
        why += f"; {missing:,} the new model does not answer"
    if not (targets := facts.get("targets") or ()):
        changes = changes.max(axis=1, keepdims=True)
    if facts["task"] != "regression":
        share, limit = float(is_changed.mean()), settings.max_changed_answers
        row = limited_row(_CHANGED, share, limit, why)
        if not row.passed and len(pairs) < MIN_EXAMPLES:
            few = f"fewer than {MIN_EXAMPLES} requests decide nothing; {why}"
            row = replace(row, result="warn", why=few)
        yield replace(row, examples=examples)
        why, examples = "of a probability", ()
    else:
        why = f"in the unit of the target; {why}"
    names = [f" of {x!r}" for x in targets] or [""]
    largest = changes[has_answer].max(axis=0, initial=0.0)
    for name, change in zip(names, largest, strict=True):
        check = f"largest change{name}"
        yield Check(check=check, actual=float(change), why=why, examples=examples)


def _is_changed(pair: _Pair, facts: Any) -> bool:
    if isinstance(pair.new, str) or facts["task"] != "multi_label":
        return isinstance(pair.new, str) or pair.old.labels[0] != pair.new.labels[0]
    both = (pair.old.numbers >= THRESHOLD) != (pair.new.numbers >= THRESHOLD)
    return bool(both.any())


def _text(answer: Answer | str, facts: Any) -> str:
    """Returns an answer in words, such as ``7 (7 0.93, 1 0.05, 4 0.01)``."""
    if isinstance(answer, str):
        return f"no answer: {answer}"
    (numbers,) = answer.numbers
    if facts["task"] == "regression":
        return ", ".join(f"{x:.6g}" for x in numbers)
    # Of two classes there is the probability of the second.
    by_class = zip(numbers, facts["classes"][-len(numbers) :], strict=True)
    likely = sorted(by_class, reverse=True)[:_MAX_CLASSES]
    shown = ", ".join(f"{name} {x:.3g}" for x, name in likely)
    return f"{answer.labels[0]} ({shown})".lstrip()
