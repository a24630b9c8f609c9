"""``sluice report``: which run's page is drawn, where, and what an error names."""

from __future__ import annotations

import json

import pytest

from runners.operations.draw_pages import draw, draw_all
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
    for arguments in (["--all"], ["--run", "2026"]):
        code, _, err = sluice("report", *arguments)
        assert code == 2 and "need a NAME" in err


def test_all_runs(written):
    with pytest.raises(UsageError, match="no pipeline has run yet"):
        draw()
    run_dir = written.fail(written.FIRST)
    draw("digits")
    _, page = draw_all("digits")
    assert page == run_dir.parents[1] / "index.html"
    assert f'href="runs/{written.FIRST}/report.html"' in page.read_text("utf-8")
