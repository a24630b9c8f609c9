"""The page of two runs compared, in a real browser."""

import pytest

from reports.compare import compare
from reports.diff_page import diff_markdown, render_diff
from reports.read_run import read_run
from tests.reports import test_hostile_record as hostile

pytestmark = pytest.mark.browser

SECTIONS = ("Summary", "Runs", "Metrics", "Features", "Config", "Schema", "Packages")


@pytest.fixture
def draw(write_run, tmp_path):
    """Compares a run with one whose record and documents are changed."""

    def draw(change):
        runs = write_run(tmp_path / "a"), write_run(tmp_path / "b", change=change)
        page = tmp_path / "diff.html"
        with read_run(runs[0]) as before, read_run(runs[1]) as after:
            found = compare(before, after)
            assert not (before.notices or after.notices)
        page.write_text(render_diff(found))
        assert diff_markdown(found)
        return page

    return draw


def _other_values(value, key=""):
    if isinstance(value, dict):
        return {name: _other_values(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_other_values(item) for item in value]
    if key == "train" and isinstance(value, int):
        return value + 1
    if key == "tfx":
        return "1.21.0"
    return value * 1.25 if isinstance(value, float) else value


def test_sections_widths_and_colours(draw, report_pages):
    report_pages.check(draw(_other_values), (*SECTIONS, "Examples", "Gates", "Times"))


@pytest.mark.parametrize(
    "change", [hostile.with_hostile_texts, hostile.with_hostile_numbers]
)
def test_hostile_values(draw, report_pages, change):
    with report_pages.open(draw(change)) as opened:
        assert "compared with" in opened.title()
        assert opened.locator("script").count() == 1
        report_pages.check_widths(opened)
