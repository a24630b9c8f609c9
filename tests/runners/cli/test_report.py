"""``sluice report``: which run's page is drawn, where, and what an error names."""

from __future__ import annotations

import json

import pytest

from runners.operations.draw_pages import draw
from sluice.errors import UsageError

pytestmark = pytest.mark.unit


def test_the_last_run_is_the_default(written):
    first, last = written.fail(written.FIRST), written.fail(written.SECOND)
    record, page = draw("digits")
    assert (record.run_id, page) == (written.SECOND, last / "report.html")
    assert f"run {written.SECOND}" in page.read_text("utf-8")
    assert not (first / "report.html").exists()
    assert draw("digits", written.FIRST)[1] == first / "report.html"
    assert draw() == (record, page)


def test_the_verb(written, sluice):
    page = written.fail(written.FIRST) / "report.html"
    assert sluice("report", "digits") == (0, f"{page}\n", "")
    assert json.loads(sluice("report", "--json")[1]) == {
        "schema_version": 1,
        "pipeline": "digits",
        "run_id": written.FIRST,
        "status": "failed",
        "report": str(page),
    }
    code, _, err = sluice("report", "--run", "2026")
    assert code == 2 and "--run needs a NAME" in err


def test_without_a_run(written):
    with pytest.raises(UsageError, match="no pipeline has run yet"):
        draw()
