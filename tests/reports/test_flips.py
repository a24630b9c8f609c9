"""Two models compared example by example, on the page of a run and between two runs."""

from typing import Any

import pytest
from scipy.stats import binomtest

from reports.compare import compare
from reports.diff_page import render_diff
from reports.flips import FLIPPED, flips_between, mcnemar
from tests.kit import protos
from tests.kit.read_page import Page
from tests.kit.runs import SECOND
from tests.reports.generated_run import PNG

pytestmark = pytest.mark.unit

CLASSES = ["cat", "dog"]
IMAGE = {"feature": "image", "width": 8, "height": 8, "format": "PNG", "data": PNG}


def test_mcnemars_test_is_the_exact_one():
    # Data and result of Bentur et al. in https://doi.org/10.1186/1471-2288-13-91
    assert mcnemar(1, 7) == mcnemar(7, 1) == pytest.approx(0.0703, abs=5e-5)
    for wrong, right in ((6, 16), (41, 30), (0, 256), (4_700, 5_000)):
        exact = binomtest(wrong, wrong + right).pvalue
        assert mcnemar(wrong, right) == pytest.approx(exact, rel=1e-9)
    assert mcnemar(0, 0) == mcnemar(7, 7) == mcnemar(9_000, 9_000) == 1.0


def _example(digest, true, predicted, *, images=(), **values):
    place = {"split": "test", "file": "data-0", "record": 3, "digest": digest}
    classes = {"true": true, "predicted": predicted, "baseline": "cat"}
    shares = {"probability": 0.75, "true_probability": 0.25}
    values = {name: [value] for name, value in values.items()}
    return {**place, **classes, **shares, "images": [*images], "values": values}


def _documents(true, candidate, *shown, **changes):
    """Returns documents with the classes of records by their digest: their number."""
    digests = [str(number) for number in range(len(true))]
    predictions = {"digests": digests, "true": true, "candidate": candidate}
    mistakes = {"split": "test", "classes": CLASSES, "examples": len(true), "wrong": 1}
    mistakes |= {"complete": True, "mistakes": [*shown], "predictions": predictions}
    metrics = protos.evaluation(protos.slice_metrics({"accuracy": 0.9}))
    return {"metrics": metrics, "mistakes": {**mistakes, **changes}}


def _flips(**examples):
    counts = {"newly_wrong": 9, "newly_right": 4, "both_wrong": 7, "both_right": 280}
    return {**counts, "examples": {**dict.fromkeys(FLIPPED, ()), **examples}}


def test_other_classes_and_no_baseline(run_with, page_of):
    page = page_of(run_with(_documents([0], [1], flips=None)))
    assert "The baseline has other classes: no example is compared." in page.text
    page = page_of(run_with(_documents([0], [1]), run_id=SECOND))
    assert "Example by example" not in page.text


def test_flips_between_two_runs_are_of_the_common_records(run_with):
    #                    before   after
    # 0 cat              dog      cat     newly right
    # 1 cat              cat      dog     newly wrong, and not shown
    # 2 dog              dog      cat     newly wrong
    # 3 dog              dog      dog     both right
    # 4 cat              dog      dog     both wrong
    # 5 cat, after only           dog
    before = run_with(
        _documents([0, 0, 1, 1, 0], [1, 0, 1, 1, 1], _example("0", "cat", "dog"))
    )
    known = _example("2", "dog", "cat", fare=7)
    after = run_with(
        _documents(
            *([0, 0, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1]),
            *(_example("4", "cat", "dog"), _example("5", "cat", "dog")),
            flips=_flips(newly_wrong=[known]),
            classes=[*CLASSES, "bird"],
        ),
        run_id=SECOND,
    )
    found: Any = flips_between(before, after)
    assert found.scope == "5 examples that both runs have predicted"
    counts = found.newly_right, found.newly_wrong, found.both_right, found.both_wrong
    assert counts == (1, 2, 1, 1)
    (right,), (wrong,) = (
        found.examples[name] for name in ("newly_right", "newly_wrong")
    )
    assert (right["predicted"], right["baseline"]) == ("cat", "dog")
    assert (wrong["predicted"], wrong["baseline"]) == ("cat", "dog")
    table = found.table("newly_wrong")
    assert table.caption == "Newly wrong: 2, 1 of them shown"
    assert [column.label for column in table.columns] == [
        *("True class", "Model after", "Model before", "fare", "Place")
    ]
    assert table.rows == [["dog", "cat", "dog", "7", "data-0, record 3"]]
    difference = compare(before, after)
    assert difference.to_dict()["flips"]["newly_wrong"] == 2
    page = Page(render_diff(difference))
    assert str(found) in page.text and page.tables["newly_wrong-0"][0]["fare"] == "7"


@pytest.mark.parametrize(
    "changes",
    [
        {"predictions": None},
        {"predictions": {"digests": ["other"], "true": [0], "candidate": [0]}},
    ],
    ids=["withheld", "other records"],
)
def test_runs_that_cannot_be_compared_have_no_flips(run_with, taxi, changes):
    one = run_with(_documents([0, 1], [0, 1]))
    other = run_with(_documents([0, 1], [1, 1], **changes), run_id=SECOND)
    assert flips_between(one, other) is None
    assert flips_between(other, one) is None
    assert flips_between(one, taxi()) is None, "a document of an older version"
