"""The page of a run with 2,000 features and 5,000 slices is bounded."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator

from reports.run_page import write_report

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

FEATURES, SLICES = 2_000, 5_000
MAX_BYTES = 20_000_000


def shown(box: Locator) -> int:
    return box.locator("tbody tr:not([hidden])").count()


def test_a_large_page_is_bounded(write_run, tmp_path, report_pages):
    run_dir = write_run(tmp_path, features=FEATURES, slices=SLICES)
    report = Path(write_report(run_dir))
    assert report.stat().st_size < MAX_BYTES

    with report_pages.open(report) as page:
        drawn = page.locator("#data figure.card:visible").count()
        assert 0 < drawn < 50

        for name, total in (("feature 1999", FEATURES), ("slice-4999", SLICES)):
            box = page.locator(".table:visible").filter(has_text=name).last
            assert box.locator("tbody tr").count() == total
            assert 0 < shown(box) <= 100
            box.locator("thead button").first.click()
            assert 0 < shown(box) <= 100
            box.get_by_role("searchbox").fill(name)
            assert shown(box) == 1
            box.get_by_role("searchbox").fill("")
            box.get_by_role("button", name=f"Show all {total:,} rows").click()
            assert shown(box) == total
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
