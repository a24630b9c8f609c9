"""The page of two runs compared, in a real browser."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.compare import compare
from reports.diff_page import diff_markdown, render_diff
from reports.read_run import read_run

pytestmark = pytest.mark.browser

SECTIONS = (
    *("Summary", "Runs", "Gates", "Metrics", "Config", "Schema", "Packages"),
    *("Examples", "Features", "Time"),
)


@pytest.fixture
def draw(write_run: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Compares a run with one whose record and documents are changed."""

    def draw(change: Callable[[Any], Any]) -> Path:
        folders = [
            write_run(tmp_path / "before"),
            write_run(tmp_path / "after", change=change),
        ]
        page = tmp_path / "diff.html"
        with read_run(folders[0]) as before, read_run(folders[1]) as after:
            found = compare(before, after)
            assert not (before.notices or after.notices)
        page.write_text(render_diff(found))
        assert diff_markdown(found)
        return page

    return draw


def _other_values(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _other_values(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_other_values(item) for item in value]
    if key in ("epochs", "records"):
        return value + 1
    if key == "tfx":
        return "1.21.0"
    return value * 1.25 if isinstance(value, float) else value


def test_sections_widths_and_colours(draw, report_pages):
    report_pages.check(draw(_other_values), SECTIONS)


@pytest.mark.parametrize("what", ["texts", "numbers"])
def test_hostile_values(draw, report_pages, what, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    hostile = importlib.import_module("test_hostile_record")
    page = draw(getattr(hostile, f"with_hostile_{what}"))
    with report_pages.open(page) as opened:
        assert "compared with" in opened.title()
        assert opened.locator("script").count() == 1
        report_pages.check_widths(opened)
