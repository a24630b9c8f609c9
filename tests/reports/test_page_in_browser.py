"""The page of a run in a real browser: tables, thresholds, colours, the keyboard."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from reports.run_page import write_report

pytestmark = pytest.mark.browser

SLICES = 60


@pytest.fixture(scope="module")
def report(write_run, tmp_path_factory):
    run_dir = write_run(tmp_path_factory.mktemp("runs"), slices=SLICES)
    return Path(write_report(run_dir))


def slices_of(page: Page) -> Locator:
    """Returns the box of the table with a row for each slice."""
    return page.locator("#model .table").filter(has_text="slice-59")


def cells(box: Locator, column: str) -> list[str]:
    """Returns the visible cells of a column."""
    index = box.locator("thead th").all_inner_texts().index(column) + 1
    found = box.locator(f"tbody tr:not([hidden]) > :nth-child({index})")
    return [text.strip() for text in found.all_inner_texts()]


def test_all_sections_in_all_widths_and_colours(report, report_pages):
    report_pages.check(report)


def test_a_table_is_sorted_by_mouse_and_keyboard(report, report_pages):
    with report_pages.open(report) as page:
        box = slices_of(page)
        header = box.get_by_role("columnheader", name="Change").first
        sorted_by = box.get_by_role("columnheader", name="Slice")
        button = sorted_by.get_by_role("button")
        button.click()
        names = cells(box, "Slice")
        assert names[:3] == [f"where: slice-{number}" for number in range(3)]
        # Numbers in names are compared as numbers: slice-10 follows slice-9.
        assert names[9:11] == ["where: slice-9", "where: slice-10"]
        button.press("Enter")
        assert cells(box, "Slice")[0] == "where: slice-59"
        assert sorted_by.get_attribute("aria-sort") == "descending"
        expect(button).to_have_accessible_name("Slice")
        header.get_by_role("button").press("Space")
        assert header.get_attribute("aria-sort") == "descending"
        assert sorted_by.get_attribute("aria-sort") is None


def test_the_threshold_explorer(report, report_pages):
    with report_pages.open(report) as page:
        slider = page.get_by_role("slider")
        spoken = slider.get_attribute("aria-valuetext")
        assert spoken and spoken.startswith("0.50: precision 0.7")

        def shown(part: str = "span") -> dict[str, str]:
            places = page.locator(".explorer [data-show]").all()
            return {
                str(x.get_attribute("data-show")): x.locator(part).first.inner_text()
                for x in places
            }

        # Bucket i has 100 - i negatives and i + 1 positives.
        middle = shown()
        assert middle["tp"] == f"{sum(range(51, 101)):,}"
        assert middle["fp"] == f"{sum(range(1, 51)):,}"
        precision = sum(range(51, 101)) / (sum(range(51, 101)) + sum(range(1, 51)))
        assert middle["precision"] == f"{precision:.3f}"
        slider.press("Home")
        outputs = page.locator(".explorer output")
        assert outputs.all_inner_texts() == ["0.00", "0.00"]
        assert shown()["recall"] == "1.000"
        # Each of 5,050 positives is found, 1,275 more than at 0.5.
        assert shown("small")["tp"] == "+1,275 against 0.5"
        assert shown("small + small")["tp"] == "baseline 5,050"
        slider.press("End")
        assert shown()["tp"] == "0" and shown()["recall"] == "0.000"


def test_the_keyboard_reaches_the_content_and_the_sections(report, report_pages):
    with report_pages.open(report, reduced_motion="reduce") as page:
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="To the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        assert page.url.endswith("#content")
        page.get_by_role("link", name="Serving").press("Enter")
        expect(page.get_by_role("heading", name="Serving")).to_be_in_viewport()
        expect(page.locator("nav.sections a[aria-current]")).to_have_text("Serving")
        summary = page.locator("#run summary").first
        box = page.locator("#run details").first
        is_open = box.get_attribute("open") is not None
        summary.press("Enter")
        assert (box.get_attribute("open") is not None) != is_open


def test_without_javascript_everything_can_be_read(report, report_pages):
    with report_pages.open(report, java_script_enabled=False) as page:
        box = slices_of(page)
        assert len(cells(box, "Slice")) == SLICES
        assert page.locator("button >> visible=true").count() == 0
        assert page.locator("input >> visible=true").count() == 0
