"""What a page says: its tables row by row, its text and its elements."""

from __future__ import annotations

from html.parser import HTMLParser


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
            header, *rows = ([" ".join(x.split()) for x in row] for row in self._rows)
            self.tables[self._table] = [
                dict(zip(header, row, strict=True)) for row in rows
            ]
