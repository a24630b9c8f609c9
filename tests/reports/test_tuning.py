"""The trials of a search on the page: parallel coordinates and a table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reports.read_run import read_run
from reports.run_page import render_run
from tests.kit.runs import a_record, write_run

pytestmark = pytest.mark.unit


def a_trial(number: int, rate: float, units: list[int], objective: float | None) -> Any:
    done = objective is not None
    return {
        "number": number,
        "status": "completed" if done else "failed",
        "objective": objective,
        "epochs": 3 if done else None,
        "duration_s": 2.5 if done else None,
        "error": None if done else "the loss is <NaN>",
        "values": {"train.learning_rate": rate, "model_params.units": units},
    }


SEARCH = {
    "algorithm": "random",
    "objective": "val_auc",
    "direction": "max",
    "space": {
        "train.learning_rate": {"min": 0.001, "max": 0.1, "log": True},
        "model_params.units": [[4], [8, 4], [16]],
    },
    "trials": [
        a_trial(2, 0.01, [8, 4], 0.75),
        a_trial(1, 0.001, [4], 0.5),
        a_trial(3, 0.1, [16], None),
    ],
}


@pytest.fixture
def page(tmp_path) -> str:
    run_dir = write_run(tmp_path, a_record(), {"trials": SEARCH})
    with read_run(run_dir) as run:
        html = render_run(run)
        assert not run.notices
    return html


def _points(page: str, trial: int) -> list[tuple[float, float]]:
    found = re.search(rf'd="M([^"]+)"><title>trial {trial}:', page)
    assert found
    return [(float(x), float(y)) for x, y in (p.split() for p in found[1].split("L"))]


def test_each_trial_is_a_line_through_its_values(page):
    first, best, failed = (_points(page, number) for number in (1, 2, 3))
    assert (len(first), len(best), len(failed)) == (3, 3, 2), "a failed one ends early"
    rates, units, values = zip(first, best, [*failed, (0.0, 0.0)], strict=True)
    for column in (rates, units):
        low, middle, high = (y for _, y in column)
        # Factors of ten are as far apart, and so are categories.
        assert low > middle > high
        assert low - middle == pytest.approx(middle - high, abs=0.2)
    assert values[0][1] > values[1][1], "more is better, and higher"
    assert "log scale" in page and ">[8, 4]</text>" in page
    best_line = r'<g class="s0"><path class="line" d="[^"]+"><title>(.*?):'
    (marked,) = re.findall(best_line, page)
    assert marked == "trial 2"


def test_the_table_begins_with_the_best_and_says_why_one_failed(page):
    rows = re.findall(r"<tr.*?</tr>", page, re.DOTALL)
    texts = [" ".join(re.sub("<[^>]+>", " ", row).split()) for row in rows]
    shown = [text for text in texts if re.search(r"\[(8, 4|4|16)\]", text)]
    assert [text.split()[0] for text in shown] == ["2", "1", "3"]
    assert "best" in shown[0] and "the loss is &lt;NaN&gt;" in shown[2]
    assert "Trial 2 has the largest" in page
