"""Files of spans, and what is selected of them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.window import Span, Window

SPLITS: dict[str | None, str] = {
    "train": "span-{SPAN}/train-*",
    "eval": "span-{SPAN}/eval-*",
}
ALWAYS = CompleteWhen()


def touch(base: Path, *names: str, age_s: float = 0) -> None:
    for name in names:
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)


def select(
    base: Path | str,
    patterns: dict[str | None, str] | None = None,
    window: int = 1,
    complete_when: CompleteWhen = ALWAYS,
    now_s: float | None = None,
    only: Sequence[Span] | None = None,
) -> Window:
    now_s = time.time() if now_s is None else now_s
    return select_spans(
        str(base), patterns or SPLITS, window, complete_when, now_s, only
    )


def chosen(window: Window) -> list[str]:
    return [f"{file.split} {window.relative(file)}" for file in window.files]
