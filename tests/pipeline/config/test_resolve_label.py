"""The label's classes, by task, from the config and the schema."""

from __future__ import annotations

import pytest

from pipeline.graph.arguments import ingestion_of
from sluice.splits import SERVING

pytestmark = pytest.mark.unit

_PAID, _GENRES = ("Credit Card", "Cash"), ("war", "crime")
ANY = (
    *("evaluate.metrics=[ExampleCount]", "evaluate.thresholds=[]"),
    *("features=null", "features={company: {kind: hashed, buckets: 16}}"),
)
OF_TWO = "{%s, task: regression, targets: [price, days]}"
OF_THREE = "label={feature: one_hot, task: regression, targets: [price, days, km]}"


@pytest.mark.parametrize(
    ("label", "classes"),
    [
        ("{feature: genres, task: multi_label}", ("war", "crime", "drama")),
        ("{feature: one_hot, task: multi_label}", (0, 1, 2)),
        ("{feature: one_hot}", (0, 1, 2)),
        ("{feature: one_hot, classes: [a, b, c]}", ("a", "b", "c")),
        ("{feature: hour, classes: [4, 20, 8]}", (4, 20, 8)),
        ("{feature: fare, classes: [0, 1]}", (0, 1)),
        ("{feature: payment_type, classes: [Credit Card, Cash]}", _PAID),
        (
            "{feature: payment_type, classes: [Cash, Credit Card], positive: Cash}",
            _PAID,
        ),
        ("{feature: fare, classes: [0, 1], positive: 0, threshold: 0.2}", (1, 0)),
    ],
)
def test_classes(validate, label, classes):
    assert validate(f"label={label}", *ANY).config.label.classes == classes


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("{feature: genres}", "to predict all of them: task: multi_label"),
        ("{feature: tags, task: multi_label}", "does not list the classes of 'tags'"),
        ("{feature: one_hot, classes: [a, b]}", "2 classes, and 3 values per record"),
        ("{feature: three_ids, task: multi_label}", "'three_ids' are 0 and 1"),
        ("{feature: history}", "'history' has no fixed number of values per record"),
        ("{feature: fare, task: multi_label}", "must be INT or BYTES, not FLOAT"),
        ("{feature: fare}", "task: regression; or list classes: classes: [0, 1]"),
        ("{feature: hour, classes: [10, 20, 40]}", "schema's domain: 0, 1, 2"),
        ("{feature: fare, classes: [1, 20000001]}", "change 20000001, or the domain"),
        ("{feature: fare, classes: [1, 2], positive: 3}", "there is no class 3"),
        (
            "{feature: payment_type, classes: [Credit Card, Cash], positive: Csh}",
            "did you mean 'Cash'",
        ),
        ("{feature: hour, positive: 1}", "}, label.positive"),
        ("{feature: hour, threshold: {maximize: f1}}", "}}, label.threshold"),
        ("{feature: fare, classes: [0, 1], threshold: 1.0}", "less than 1"),
        (
            "{feature: fare, classes: [0, 1], threshold: {maximize: f1, "
            "recall_at_least: 0.9}}",
            "one of maximize, recall_at_least and precision_at_least",
        ),
        ("{feature: one_hot, task: regression}", "[one_hot_0, one_hot_1, one_hot_2]"),
        (OF_TWO % "feature: one_hot", "2 targets, and 3 values per record"),
        (OF_TWO % "feature: fare", "2 targets, and 1 values per record"),
        ("{feature: one_hot, targets: [a, b, c]}", "only a regression has targets"),
        ("{feature: one_hot, task: regression, targets: [a, b, a]}", "each once"),
    ],
)
def test_what_is_refused(refused, label, words):
    assert words in refused(f"label={label}", *ANY)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("MeanSquaredError", "one 'mean_squared_error' of all targets is that of the"),
        ("{class: MeanSquaredError, target: day}", "did you mean 'days'?"),
        ("{class: R2Score, target: all}", "is of one target: 'price'"),
    ],
)
def test_a_metric_of_several_targets_names_one(validate, refused, metric, words):
    given = [*ANY, f"evaluate.metrics=[{metric}, ExampleCount]"]
    assert words in refused(OF_THREE, *given)
    of_price = "evaluate.metrics=[ExampleCount, {class: R2Score, target: price}]"
    metrics = validate(OF_THREE, *ANY, of_price).config.evaluate.metrics
    assert [item.name for item in metrics] == ["example_count", "price_r2_score"]


@pytest.mark.parametrize(
    ("label", "values", "is_one_hot"),
    [
        ("{feature: genres, task: multi_label}", None, None),
        ("{feature: seconds, task: regression}", None, None),
        ("{feature: fare, classes: [0, 1]}", (0, 1), False),
        ("{feature: genres, task: multi_label, classes: [war, crime]}", _GENRES, False),
        ("{feature: one_hot}", (0, 1), True),
        ("{feature: one_hot, task: multi_label}", (0, 1), False),
    ],
)
def test_the_ingestion_checks_what_the_schema_cannot(
    validate, label, values, is_one_hot
):
    config = validate(f"label={label}", *ANY).config
    found = ingestion_of(config).label
    assert (found and (found.values, found.is_one_hot)) == (
        values and (values, is_one_hot)
    )
    assert ingestion_of(config, SERVING).label is None
    types = ingestion_of(config, SERVING).types
    assert (types["fare"], types["tags"]) == ("float_list", "bytes_list")
    assert "nested" not in types


def test_an_empty_string_is_no_class(project, refused):
    path = project / "schemas" / "fares" / "schema.pbtxt"
    path.write_text(path.read_text().replace('value: "Cash"', 'value: ""'))
    assert "no class" in refused("label={feature: payment_type}", *ANY)
