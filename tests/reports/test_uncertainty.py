"""How sure a metric is: intervals of shares, and TFMA's own."""

import pytest

from reports.metric_changes import metrics_by_slice
from reports.uncertainty import wilson
from tests.kit import protos

pytestmark = pytest.mark.unit

CONFIG = {
    "evaluate": {
        "metrics": [
            {"class": "SparseCategoricalAccuracy", "name": "right"},
            {"class": "AUC", "name": "precision_recall"},
        ]
    }
}


# R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics
# in Medicine 17 (1998), table I, method 3.
@pytest.mark.parametrize(
    ("successes", "total", "expected"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilsons_interval_is_the_published_one(successes, total, expected):
    assert wilson(successes, total) == pytest.approx(expected, abs=5e-5)


def _found(metrics, config=CONFIG, **where):
    part = protos.slice_metrics(metrics, **where)
    (found,) = metrics_by_slice(protos.evaluation(part), config).values()
    estimates = {name: item.estimate for name, item in found.items()}
    return {name: (x.errors, x.total) for name, x in estimates.items() if x}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("right", 0.9300000071525574, (7, 100)),
        ("recall", 0.75, (10, 40)),
        ("specificity", 0.75, (15, 60)),
        ("auc", 0.93, None),
        ("loss", 0.5, None),
        ("precision_recall", 0.5, None),
        # The examples are weighted.
        ("accuracy", 0.93456, None),
    ],
)
def test_shares_are_of_the_examples_that_they_count(name, value, expected):
    counted = {"example_count": 100.0, "examples_per_class": [60, 40]}
    found = _found({name: value, **counted})
    assert found.get(name) == expected


def test_weighted_shares_are_of_the_effective_examples():
    """An interval of 100 would say more than 20 can; that of a class is not known."""
    counted = {"example_count": 100.0, "examples_per_class": [60, 40]}
    counted |= {"effective_example_count": 20.0, "right": 0.9, "recall": 0.75}
    assert _found(counted) == {"right": (2, 20)}
