"""Two runs compared, as Markdown and as a page, whatever the runs have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reports.compare import Comparison, MetricChange, NodeTime, RowChange, compare
from reports.diff_page import diff_markdown, render_diff
from reports.diff_tables import diff_tables
from reports.feature_changes import FeatureChange
from reports.read_run import RunData
from reports.run_values import Change
from reports.tables import Mark

pytestmark = pytest.mark.unit

HOSTILE = "<script>alert(1)</script> | `x` [a](b) @team \u202e\n# h"


@pytest.fixture
def same(run_with: Callable[..., RunData]) -> Comparison:
    """A run compared with itself."""
    run = run_with()
    return compare(run, run)


def test_values_are_no_markup(same):
    feature = FeatureChange(HOSTILE, HOSTILE, 1.0, (Change(HOSTILE, HOSTILE, "b"),))
    config = (Change(HOSTILE, "a", HOSTILE),)
    found = replace(same, features=(feature,), config=config)
    page = render_diff(found)
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    markdown = diff_markdown(found)
    assert "<script>" not in markdown and "\u202e" not in markdown
    row = next(line for line in markdown.splitlines() if line.startswith("| <code>"))
    assert row.startswith(
        "| <code>&lt;script&gt;alert(1)&lt;/script&gt; \\| \\`x\\` \\[a\\](b) @team"
    )


def test_tables_without_rows_are_left_out(same):
    tables = diff_tables(same, all_metrics=False)
    assert [table.id for table in tables] == ["runs", "time"]
    assert "Nothing that has an effect on the model differs." in diff_markdown(same)


def test_cells_of_each_table(same):
    row = {"result": "pass", "limit": ">= 0.9", "value": 0.95, "why": ""}
    failed = {**row, "result": "FAIL", "value": 0.8, "why": "too low"}
    found = replace(
        same,
        gates=(
            RowChange("model", "auc", "overall", row, failed),
            RowChange("model", "new", "overall", None, {**row, "limit": None}),
            RowChange("model", "base", "overall", {**row, "value": "v" * 40}, None),
            RowChange("data", "label", "train", {**row, "value": "0 to 9"}, None),
        ),
        metrics=(
            MetricChange("overall", "auc", 0.95, 0.8, "higher"),
            MetricChange("overall", "loss", 0.5, None, "lower"),
        ),
        times=(
            NodeTime("A", "ran", 3.0, "not_reached", None),
            NodeTime("B", "ran", 16.84, "ran", 16.76),
        ),
    )
    rows = {table.id: table.rows for table in diff_tables(found)}
    good, bad = Mark("good", "pass"), Mark("bad", "fail")
    assert rows["gates"] == [
        ("model", "auc", "overall", ">= 0.9", 0.95, good, 0.8, bad, "too low"),
        ("model", "new", "overall", "", None, None, 0.95, good, ""),
        (
            *("model", "base", "overall", ">= 0.9"),
            *(None, good, None, None, f"{'v' * 40} -> none"),
        ),
        ("data", "label", "train", ">= 0.9", "0 to 9", good, None, None, ""),
    ]
    change, mark = rows["metrics"][0][4:]
    assert change == pytest.approx(-0.15) and mark == Mark("bad", "worse")
    assert rows["metrics"][1][2:] == (0.5, None, None, Mark("quiet", "differs"))
    unreached = Mark("quiet", "not reached")
    done = Mark("good", "done")
    assert rows["time"] == [
        ("A", 3.0, done, None, unreached, None),
        ("B", 16.84, done, 16.76, done, 0.0),
    ]


def test_markdown_has_at_most_50_rows_per_table(same):
    config = tuple(Change(f"key{number}", 1, 2) for number in range(60))
    markdown = diff_markdown(replace(same, config=config))
    assert "| key49 | 1 | 2 |" in markdown and "key50" not in markdown
    assert "\nand 10 more\n" in markdown
