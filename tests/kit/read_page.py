"""What a page says: its tables row by row, its text and its elements."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from reports.formats import MISSING
from sluice.tfrecords import tf_example_pb2, tfrecord

# Half a point, in percent, and the rounding of the page; what the bars lack is summed
# up in the bar of all others.
_TOLERANCE, _OF_OTHERS = 0.6, 1.0
_OTHERS = "all others"


class Page(HTMLParser):
    """A page of the reports.

    Attributes:
      tables: by id, the rows as the texts of their cells by the label of the column.
      elements: tag and attributes of each element.
      inline: the text of the script and of the style sheet.
      text: all other text, with single spaces.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[dict[str, str]]] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline = {"script": "", "style": ""}
        self.text = ""
        self._path: list[str] = []
        self._rows: list[list[str]] = []
        self._table = ""
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.elements.append((tag, dict(attrs)))
        self._path.append(tag)
        if tag == "table":
            name = dict(attrs).get("aria-labelledby") or ""
            self._table, self._rows = name.removesuffix("-caption"), []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._path and self._path[-1] in self.inline:
            self.inline[self._path[-1]] += data
        elif not {"svg", "title"} & {*self._path}:
            self.text += f"{data} "
            if {"td", "th"} & {*self._path} and self._rows and self._rows[-1]:
                self._rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        # Elements without an end, such as <meta>, are left on the way.
        while self._path and self._path.pop() != tag:
            pass
        if tag == "table" and self._table:
            self._rows = [[" ".join(x.split()) for x in row] for row in self._rows]
            header, *rows = self._rows
            self.tables[self._table] = [
                dict(zip(header, row, strict=True)) for row in rows
            ]


def wrong_bars(page: str, data: Path) -> tuple[int, list[Any]]:
    """Compares the bars of a page with counts over the records.

    Args:
      page: its HTML.
      data: the folder of the TFRecords, whose files are named after their split.

    Returns:
      How many bars there are, and those more than half a point off: feature, data
      set, bar, share drawn and share counted, in percent.
    """
    values: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for path in sorted(data.glob("*-of-*")):
        for record in tfrecord.read(path):
            message: Any = tf_example_pb2.Example.FromString(record)
            for name, feature in message.features.feature.items():
                if kind := feature.WhichOneof("kind"):
                    found = getattr(feature, kind).value
                    values[name, path.name.split("-")[0]] += found
    count, wrong = 0, []
    for name, bars in _charts(page):
        for number, (head, split, drawn) in enumerate(bars):
            known = values.get((name, split), [])
            allowed = _OF_OTHERS if head == _OTHERS else _TOLERANCE
            named = {bar[0] for bar in bars}
            counted = 100 * _count(known, head, named, is_first=number < 3)
            if known:
                count += 1
                if abs(drawn - counted / len(known)) > allowed:
                    wrong.append((name, split, head, drawn, counted / len(known)))
    return count, wrong


def _charts(page: str) -> Iterator[tuple[str, list[tuple[str, str, float]]]]:
    """Yields feature and bars, per data set, of each chart of values."""
    chart = r'<svg[^>]*aria-label="Values of ([^"]*)"(.*?)</svg>'
    for name, body in re.findall(chart, page, re.DOTALL):
        bars = []
        for hint in re.findall(r"<title>(.*?)</title>", body, re.DOTALL):
            head, *lines = unescape(hint).split("\n")
            for line in lines:
                data_set, _, share = line.rpartition(": ")
                share = share.replace(" %", "").replace(MISSING, "0").strip("<>")
                bars.append((head, data_set, float(share)))
        yield name, bars


def _count(values: Sequence[Any], head: str, named: set[str], *, is_first: bool) -> int:
    """Returns how many values are in a bar; its lower edge is in the bar before."""
    if head == _OTHERS:
        texts = (x.decode() if isinstance(x, bytes) else str(x) for x in values)
        return sum(text not in named for text in texts)
    if values and isinstance(values[0], bytes):
        return sum(value.decode() == head for value in values)
    low, _, high = (x.replace(",", "") for x in head.partition(" to "))
    first, last = float(low), float(high or low)
    is_in = is_first or not high or (bool(values) and isinstance(values[0], int))
    return sum(first < x <= last or (is_in and x == first) for x in values)
