"""The pages of two runs compared, and of all runs, in a real browser."""

import pytest

from reports.compare import compare
from reports.diff_page import diff_markdown, render_diff
from reports.index_page import render_index
from reports.read_run import RunData, read_run
from sluice.record.run_record import RunRecord
from tests.reports import test_hostile_record as hostile

pytestmark = pytest.mark.browser

# Node times are the last.
SECTIONS = (
    *("Summary", "Metrics", "Curves", "Distributions", "Features", "Config"),
    *("Schema", "Packages", "Examples", "Gates", "Times"),
)


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


def test_sections_and_widths(draw, report_pages):
    with report_pages.open(draw(_other_values)) as page:
        report_pages.check_layout(page, SECTIONS)


@pytest.mark.parametrize(
    "change", [hostile.with_hostile_texts, hostile.with_hostile_numbers]
)
def test_hostile_values(draw, report_pages, change):
    with report_pages.open(draw(change)) as opened:
        assert "compared with" in opened.title()
        assert opened.locator("script").count() == 1
        report_pages.check_widths(opened)


def test_boxes_choose_the_losses_that_are_drawn(write_run, tmp_path, report_pages):
    folders = [
        write_run(tmp_path / "a"),
        write_run(tmp_path / "b", change=_other_values),
    ]
    runs = [RunData(folder, RunRecord.load(folder)) for folder in folders]
    runs[1].record.run_id = "other"
    page = tmp_path / "index.html"
    page.write_text(render_index("taxi", runs))
    with report_pages.open(page, java_script_enabled=False) as opened:
        line = opened.locator(".overlay .chart .s1")
        assert line.is_visible()
        opened.locator(".overlay input").nth(1).uncheck()
        assert not line.is_visible()
        assert opened.locator(".overlay .chart .s0").is_visible()
        report_pages.check_widths(opened)
