"""Which files of the data exist in each round: new spans arrive between rounds."""

from __future__ import annotations

import os
from pathlib import Path

from components.tfrecord_gen.spans.window import Window


def files_by_round(window: Window, rounds: int) -> list[list[str]]:
    """Returns the files that have arrived by each round, as paths below the base.

    The newest spans arrive last, one per round; where there are fewer spans than
    rounds, the first rounds have the oldest one. Files that are in no span are there
    from the beginning, unless all data beside them arrives later, as for a marker of a
    complete span.

    Args:
      window: of all spans of the data, in a local directory.
      rounds: how many.
    """
    base = Path(window.base)
    numbers = sorted({span.number for span in window.spans})
    span_of = {window.relative(file): file.span for file in window.files}
    spans_in: dict[str, set[int]] = {}
    for name, span in span_of.items():
        if span is not None:
            spans_in.setdefault(os.path.dirname(name), set()).add(span)
    everything = sorted(
        item.relative_to(base).as_posix() for item in base.rglob("*") if item.is_file()
    )
    found = []
    for left in range(rounds - 1, -1, -1):
        there = set(numbers[: max(1, len(numbers) - left)])

        def has_arrived(name: str, there: set[int] = there) -> bool:
            if name in span_of:
                return span_of[name] is None or span_of[name] in there
            beside = spans_in.get(os.path.dirname(name))
            return not beside or bool(beside & there)

        found.append([name for name in everything if has_arrived(name)])
    return found


def link_files(base: Path, names: list[str], target: Path) -> None:
    """Makes a folder with some files of another one, without copying them."""
    for name in names:
        link = target / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            try:
                os.link(base / name, link)
            except OSError:  # Another file system, or one without links.
                link.symlink_to((base / name).resolve())
