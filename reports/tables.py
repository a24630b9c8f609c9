"""Tables of the pages: sorted, filtered and copied in the browser.

``macros.html.j2`` has the macro ``table``, which renders a ``Table``. Without
JavaScript it is a plain table with all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reports import formats

Tone = Literal["good", "info", "active", "quiet", "warn", "bad"]


@dataclass(frozen=True)
class Mark:
    """A state, shown as an icon and a word; never by colour alone."""

    tone: Tone
    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
      label: the header.
      unit: of its numbers, shown in the header.
      format: of its numbers: they are aligned to the right, and sorted by value. None
        for a column of text.
      code: whether its text is code, such as a path.
      bar: whether a bar below each number compares it with the largest.
    """

    label: str
    unit: str = ""
    format: Callable[[Any], str] | None = None
    code: bool = False
    bar: bool = False

    def text(self, value: Any) -> str:
        """Returns a cell of the column as plain text."""
        if value is None:
            return formats.MISSING
        return self.format(value) if self.format else str(value)


def numbers(
    label: str,
    unit: str = "",
    format: Callable[[Any], str] = formats.number,
    *,
    bar: bool = False,
) -> Column:
    """Returns a column of numbers."""
    return Column(label, unit, format, bar=bar)


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
      id: of its element, unique on the page.
      caption: what it shows.
      columns: its header.
      rows: cells: text, a number, None, a ``Mark``, or ``Markup``.
      limit: the rows shown before "show more".
    """

    id: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    limit: int = 50

    def largest(self, index: int) -> float:
        """Returns the largest number of a column; 0 if it has none."""
        values = [row[index] for row in self.rows]
        return max((v for v in values if isinstance(v, int | float)), default=0)
