"""The most confident wrong predictions, as pictures or as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports import formats
from reports.read_run import RunData
from reports.sections.images import Picture, picture
from reports.tables import Column, Header, Table, numbers

_MAX_FEATURES = 20


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction on an image."""

    picture: Picture
    true: str
    predicted: str
    probability: str


@dataclass(frozen=True)
class MistakesView:
    """What is shown: pictures of images, else a table of rows.

    Attributes:
      summary: how many of how many predictions were wrong.
      bound: how much of the split was predicted; empty if all of it.
      is_private: whether the config forbids examples.
      withheld: names of sensitive features.
    """

    summary: str
    bound: str
    pictures: list[Mistake]
    table: Table | None
    is_private: bool
    withheld: list[str]


def build(run: RunData) -> list[MistakesView]:
    """Returns a view for each evaluation."""
    return [_view(i, item) for i, item in enumerate(run.documents("mistakes"))]


def _view(index: int, artifact: dict[str, Any]) -> MistakesView:
    examples, wrong = artifact["examples"], artifact["wrong"]
    found, privacy = artifact["mistakes"], artifact["privacy"]
    share = f" ({formats.percent(wrong / examples)})" if examples else ""
    bound = f"Only the first {examples:,} examples were predicted for this."
    pictures = [
        Mistake(
            picture=picture({**mistake, **image}, f"class {mistake['true']}"),
            true=str(mistake["true"]),
            predicted=str(mistake["predicted"]),
            probability=formats.percent(mistake["probability"]),
        )
        for mistake in found
        for image in mistake["images"][:1]
    ]
    return MistakesView(
        summary=f"{wrong:,} of {formats.plural(examples, 'prediction')} on "
        f"{artifact['split']} were wrong{share}.",
        bound="" if artifact["complete"] else bound,
        pictures=pictures,
        table=_table(index, found) if found and not pictures else None,
        is_private=privacy["private"],
        withheld=privacy["sensitive"],
    )


def _table(index: int, found: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for item in found for name in item["values"]))
    shown = names[:_MAX_FEATURES]
    columns: Header = ["True class", "Predicted"]
    for name in ("Probability", "Of the true class"):
        columns.append(numbers(name, "%", formats.in_percent))
    columns += [*shown, Column("Place", code=True)]
    rows = [
        [
            str(item["true"]),
            str(item["predicted"]),
            item["probability"],
            item["true_probability"],
            *(_value(item["values"].get(name)) for name in shown),
            f"{item['file']}, record {item['record']:,}",
        ]
        for item in found
    ]
    left_out = len(names) - len(shown)
    caption = "The most confident mistakes"
    if left_out:
        caption += f", without {formats.plural(left_out, 'more feature')}"
    return Table(f"mistakes-{index}", caption, columns, rows, limit=12)


def _value(value: list[Any] | None) -> str | None:
    return ", ".join(map(formats.number, value)) if value else None
