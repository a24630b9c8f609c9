"""The text of a page as a user reads it, for golden files."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_BLOCKS = {
    *("h1", "h2", "h3", "h4", "p", "div", "li", "dt", "section", "nav", "main"),
    *("figure", "figcaption", "details", "summary", "table", "caption", "tr", "pre"),
}
_UNSHOWN = {"script", "style", "head", "button", "label"}
_WITHOUT_END = {"meta", "link", "input", "br", "img", "hr"}


def check_golden(path: Path, text: str) -> None:
    """Compares a text with its golden file, or writes it (``UPDATE_GOLDEN=1``)."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"UPDATE_GOLDEN=1 writes {path.name} anew"


def page_text(html: str) -> str:
    """Returns a line per block of a page; cells are separated by a bar.

    A chart is its name, its description and what its parts say to a pointer.
    """
    reader = _Reader()
    reader.feed(html)
    return "\n".join(filter(None, (" ".join(x.split()) for x in reader.lines))) + "\n"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self._path: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        values = dict(attrs)
        if (tag in _BLOCKS or tag == "svg") and not {"td", "th"} & {*self._path}:
            self.lines.append("")
        elif tag in ("dd", "small", "span", "p", "div"):
            self.lines[-1] += ": " if tag == "dd" else " "
        if tag in ("h1", "h2", "h3"):
            self.lines[-1] = "#" * int(tag[1]) + " "
        elif tag in ("td", "th") and self.lines[-1].strip():
            self.lines[-1] += " | "
        elif tag == "img":
            self.lines[-1] += f" [image: {values.get('alt')}] "
        elif tag == "svg" and values.get("aria-label"):
            self.lines[-1] += f"[chart: {values['aria-label']}] "
        if tag == "td" and values.get("title"):
            self.lines[-1] += f"({values['title']}) "
        if tag not in _WITHOUT_END:
            self._path.append(tag)

    def handle_data(self, data: str) -> None:
        is_drawn = "svg" in self._path and self._path[-1] not in ("desc", "title")
        if not is_drawn and not _UNSHOWN & {*self._path}:
            text = data.replace("\n", ", ") if "svg" in self._path else data
            self.lines[-1] += f"{text}; " if "svg" in self._path else text

    def handle_endtag(self, tag: str) -> None:
        while self._path and self._path.pop() != tag:
            pass
        if (tag in _BLOCKS - {"dt"} or tag == "svg") and not {"td", "th"} & {
            *self._path
        }:
            self.lines.append("")
