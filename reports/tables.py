"""Tables of the pages: sorted, filtered and copied in the browser.

``macros.html.j2`` has the macro ``table``, which renders a ``Table``. Without
JavaScript it is a plain table with all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from reports import formats
from sluice.record.states import Tone

Outcome = Literal["same", "better", "worse", "differs"]


@dataclass(frozen=True)
class Mark:
    """A state, shown as an icon and a word; never by colour alone."""

    tone: Tone
    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class Delta:
    """A change of a metric in a column of numbers: signed, ``better`` or ``worse``.

    Attributes:
      value: new minus old; sorted by it.
      outcome: see ``MetricChange``.
      decimals: of the numbers that are compared; None for those of itself.
    """

    value: float
    outcome: Outcome
    decimals: int | None = None

    @property
    def tone(self) -> Tone:
        tones: dict[str, Tone] = {"better": "good", "worse": "bad"}
        return tones.get(self.outcome, "quiet")

    def __str__(self) -> str:
        text = formats.signed(self.value, self.decimals)
        return text if self.tone == "quiet" else f"{text} {self.outcome}"


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
      label: the header.
      format: of its numbers: they are aligned to the right, and sorted by value. None
        for a column of text.
      code: whether its text is code, such as a path.
      bar: whether a bar below each number compares it with the largest.
    """

    label: str
    format: Callable[[Any], str] | None = None
    code: bool = False
    bar: bool = False

    def text(self, value: Any) -> str:
        """Returns a cell of the column as plain text."""
        if value is None:
            return formats.MISSING
        return self.format(value) if self.format else str(value)


# The header of a table; a string is the label of a column of text.
Header = list[Column | str]


def numbers(
    label: str, format: Callable[[Any], str] = formats.number, *, bar: bool = False
) -> Column:
    """Returns a column of numbers."""
    return Column(label, format, bar=bar)


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
      id: of its element, unique on the page.
      caption: what it shows.
      header: its columns.
      rows: cells: text, a number, None, a ``Mark``, a ``Delta``, or ``Markup``.
      limit: the rows shown before "show more".
    """

    id: str
    caption: str
    header: Sequence[Column | str]
    rows: Sequence[Sequence[Any]]
    limit: int = 50

    @cached_property
    def columns(self) -> list[Column]:
        """The header with a ``Column`` for each string."""
        return [Column(x) if isinstance(x, str) else x for x in self.header]

    def largest(self, index: int) -> float:
        """Returns the largest number of a column; 0 if it has none."""
        values = [row[index] for row in self.rows]
        return max((v for v in values if isinstance(v, int | float)), default=0)
