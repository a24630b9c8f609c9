"""Flips: examples that only one of two models predicts right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports import formats
from reports.read_run import RunData
from reports.tables import Column, Header, Table, numbers

_MAX_FEATURES = 20
# By whether the new and the old model are right.
FLIPPED = {"newly_wrong": (False, True), "newly_right": (True, False)}


@dataclass(frozen=True)
class Flips:
    """Two models compared example by example.

    Attributes:
      scope: which examples these are, with their number.
      newly_wrong: how many the old model predicts right, and the new one wrong.
      newly_right: how many the new model predicts right, and the old one wrong.
      both_wrong: how many both predict wrong.
      both_right: how many both predict right.
      examples: those of ``newly_wrong`` and ``newly_right`` that can be shown, as the
        document ``mistakes`` has them.
      models: what the new and the old model are called.
    """

    scope: str
    newly_wrong: int
    newly_right: int
    both_wrong: int
    both_right: int
    examples: Mapping[str, Sequence[Mapping[str, Any]]]
    models: tuple[str, str] = ("candidate", "baseline")

    def __str__(self) -> str:
        new, old = self.models
        text = (
            f"Of {self.scope}, the {new} is newly right on {self.newly_right:,} and "
            f"newly wrong on {self.newly_wrong:,}, compared with the {old}; both are "
            f"right on {self.both_right:,} and wrong on {self.both_wrong:,}."
        )
        if self.newly_right + self.newly_wrong:
            chance = formats.percent(mcnemar(self.newly_wrong, self.newly_right))
            text += f" A difference as large occurs by chance in {chance} of cases"
            text += " (McNemar's exact test)."
        return text

    def caption(self, name: str) -> str:
        """Returns a caption of the examples ``newly_wrong`` or ``newly_right``."""
        count, shown = getattr(self, name), len(self.examples[name])
        caption = f"{name.replace('_', ' ').capitalize()}: {count:,}"
        return caption + (f", {shown} of them shown" if shown < count else "")

    def table(self, name: str, index: int = 0) -> Table | None:
        """Returns these examples as rows; see ``example_table``."""
        new, old = (model.capitalize() for model in self.models)
        caption, examples = self.caption(name), self.examples[name]
        columns: dict[str, Column | str]
        columns = {"true": "True class", "predicted": new, "baseline": old}
        if any(item["probability"] is not None for item in examples):
            columns["probability"] = numbers("Probability", formats.percent)
        return example_table(f"{name}-{index}", caption, examples, columns)


def mcnemar(newly_wrong: int, newly_right: int) -> float:
    """Returns the two-sided p-value of McNemar's exact test.

    Between equally good models a flip is as likely in both directions, and the smaller
    count is binomial: https://doi.org/10.1186/1471-2288-13-91
    """
    flips, smaller = newly_wrong + newly_right, min(newly_wrong, newly_right)
    ways = total = 1
    for number in range(smaller):  # 20,000 flips take 33 ms.
        ways = ways * (flips - number) // (number + 1)
        total += ways
    return min(1.0, 2 * total / 2**flips)


def against_baseline(run: RunData) -> list[Flips | None]:
    """Returns the flips of each evaluation that had a baseline.

    None if the baseline has other classes.
    """
    compared = []
    for document in run.documents("mistakes"):
        if "flips" in document:
            scope = formats.plural(document["examples"], "example")
            scope = scope if document["complete"] else f"the first {scope}"
            flips = document["flips"]
            compared.append(flips and Flips(f"{scope} of {document['split']}", **flips))
    return compared


def flips_between(before: RunData, after: RunData) -> Flips | None:
    """Returns the flips of the examples that the candidates of both runs predict.

    None without such examples. Those can be shown that one of the runs shows.
    """
    old, new = _predicted(before), _predicted(after)
    right = {
        digest: (predicted == true, old[digest][1] == true)
        for digest, (true, predicted) in new.items()
        if digest in old
    }
    if not right:
        return None
    counts, shown = Counter(right.values()), {**_shown(before), **_shown(after)}
    examples = {
        name: [
            {**item, "predicted": new[key][1], "baseline": old[key][1]}
            for key, item in shown.items()
            if right.get(key) == models
        ]
        for name, models in FLIPPED.items()
    }
    return Flips(
        f"{formats.plural(len(right), 'example')} that both runs have predicted",
        newly_wrong=counts[False, True],
        newly_right=counts[True, False],
        both_wrong=counts[False, False],
        both_right=counts[True, True],
        examples=examples,
        models=("model after", "model before"),
    )


def _predicted(run: RunData) -> dict[str, tuple[str, str]]:
    """Returns the true and the predicted class of examples by their digest."""
    return {
        digest: (_names(document, true), _names(document, predicted))
        for document in run.documents("mistakes")
        if (found := document.get("predictions"))
        for digest, true, predicted in zip(
            found["digests"], found["true"], found["candidate"], strict=True
        )
    }


def _names(document: Mapping[str, Any], indices: int | list[int]) -> str:
    classes = indices if isinstance(indices, list) else [indices]
    return ", ".join(document["classes"][index] for index in classes)


def _shown(run: RunData) -> dict[str, dict[str, Any]]:
    """Returns the examples that a run shows by their digest, without probability."""
    shown = []
    for document in run.documents("mistakes"):
        shown += document["mistakes"]
        for examples in (document.get("flips") or {}).get("examples", {}).values():
            shown += examples
    return {item["digest"]: {**item, "probability": None} for item in shown}


def example_table(
    id: str,
    caption: str,
    examples: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Column | str],
) -> Table | None:
    """Returns examples of a document as rows; None without any, or with pictures.

    Args:
      id: of the table.
      caption: of the table.
      examples: those to show.
      columns: by the key of an example, before those of its features and its place.
    """
    if not examples or any(item["images"] for item in examples):
        return None
    names = sorted({name for item in examples for name in item["values"]})
    shown = names[:_MAX_FEATURES]
    if left_out := len(names) - len(shown):
        caption += f", without {formats.plural(left_out, 'more feature')}"
    header: Header = [*columns.values(), *shown, Column("Place", code=True)]
    rows = [
        [
            *(item[key] for key in columns),
            *(", ".join(map(_text, item["values"].get(x, ()))) for x in shown),
            f"{item['file']}, record {item['record']:,}",
        ]
        for item in examples
    ]
    return Table(id, caption, header, rows, limit=12)


def _text(value: Any) -> str:
    # A whole number may be an identifier.
    return str(value) if isinstance(value, int) else formats.number(value)
