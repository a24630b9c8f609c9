"""The label's classes, by task, from the config and the schema."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit

ANY = ("evaluate.metrics=[ExampleCount]", "evaluate.thresholds=[]")


@pytest.mark.parametrize(
    ("label", "classes"),
    [
        ("{feature: genres, task: multi_label}", ("war", "crime", "drama")),
        (
            "{feature: genres, task: multi_label, classes: [drama, war, crime]}",
            ("drama", "war", "crime"),
        ),
        ("{feature: one_hot, task: multi_label}", (0, 1, 2)),
        ("{feature: one_hot}", (0, 1, 2)),
        ("{feature: one_hot, classes: [a, b, c]}", ("a", "b", "c")),
        ("{feature: hour, task: multi_label}", tuple(range(24))),
        ("{feature: seconds, task: regression}", None),
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
        (
            "{feature: three_ids, task: multi_label}",
            "does not say that the 3 values of the label 'three_ids' are 0 and 1",
        ),
        ("{feature: history}", "'history' has no fixed number of values per record"),
        (
            "{feature: fare, task: multi_label}",
            "of task multi_label must be INT or BYTES, not FLOAT",
        ),
        ("{feature: genres, task: multi_labels}", "label.task"),
    ],
)
def test_what_is_refused(refused, label, words):
    assert words in refused(f"label={label}", *ANY)


def test_class_weights_are_of_one_class(refused):
    message = refused(
        "label={feature: genres, task: multi_label}",
        *ANY,
        "train.class_weights=balanced",
    )
    assert "a multi_label has no class weights: set train.sample_weight" in message


def test_as_many_classes_as_no_memory_holds(refused, project):
    schema = project / "schemas" / "fares" / "schema.pbtxt"
    schema.write_text(schema.read_text().replace("size: 3 ", "size: 500000000 "))
    said = refused("label={feature: one_hot, task: multi_label}", *ANY)
    assert "500,000,000 classes are too many: at most 10,000" in said
