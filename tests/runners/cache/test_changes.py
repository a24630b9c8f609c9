"""What ``sluice explain`` says of two executions of a node."""

from __future__ import annotations

import json

import pytest

from components.model_verdict.judge import BaselineSummary, SkippedModel
from runners.cache.changes import input_changes, package_changes, property_changes
from sluice.mlmd_items import Artifact
from sluice.node_kinds import ABOUT_BASELINE

pytestmark = pytest.mark.unit

MISSING = SkippedModel(name="artifact 7", why="missing", retired=False)
FIRST = BaselineSummary(pipeline="taxi", name="version 1")
PUSHED = FIRST.model_copy(update={"skipped": (MISSING,)})


def _code(**parts):
    return {"fingerprint": json.dumps({"code": {}, "packages": {}, **parts})}


def _about(summary):
    return {ABOUT_BASELINE: summary.model_dump_json()}


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ({"a": 1}, {"a": 1, "__schema__a__": "x"}, []),
        (
            _code(code={"app.a": "1", "app.b": "1"}),
            _code(code={"app.b": "2", "app.c": "1"}),
            [
                "code app.a: is gone",
                "code app.b: content changed",
                "code app.c: is new",
            ],
        ),
        (_code(files={"a": "1"}), _code(files={"a": "2"}), ["file a: content changed"]),
        (
            {"custom_config": '{"train": {"epochs": 30, "rate": 1}, "layers": [1]}'},
            {"custom_config": '{"train": {"epochs": 12, "rate": 1.0}, "layers": [2]}'},
            [
                "property layers: [1] -> [2]",
                "property train.epochs: 30 -> 12",
                "property train.rate: 1 -> 1.0",
            ],
        ),
        (
            {"splits": '["train"]', "span": 1},
            {"span": 2, "text": "a"},
            [
                "property span: 1 -> 2",
                'property splits: ["train"] -> not set',
                "property text: not set -> a",
            ],
        ),
        (
            _about(FIRST),
            _about(PUSHED),
            [
                "property baseline: version 1 -> version 1; artifact 7 is missing",
            ],
        ),
    ],
)
def test_changes_of_properties(before, now, lines):
    assert list(property_changes(before, now)) == lines


def test_long_values_are_cut_to_where_they_differ():
    values = [{"text": "a" * 500 + end} for end in ("bcd", "xyz" * 100)]
    (line,) = property_changes(*values)
    assert line.startswith("property text: ...aaaaaaaaaaaaaaaaaaaabcd -> ...aaaa")
    assert len(line) < 200


def test_changes_of_packages():
    before, now = _code(packages={"tfx": "1"}), _code(packages={"tfx": "2", "x": "3"})
    lines = ["package tfx: 1 -> 2", "package x: not set -> 3"]
    assert list(package_changes(before, now)) == lines


def _model(number):
    return Artifact(number, "Model", f"/artifacts/Trainer/model/{number}")


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [
        ([9], [12], "input model: another artifact of Trainer"),
        ([9], [2, 9], "input model: 1 artifacts -> 2"),
        ([9], [], "input model: is gone"),
        ([], [9], "input model: is new"),
    ],
)
def test_changes_of_inputs(before, now, line):
    inputs = [{"model": [_model(number) for number in ids]} for ids in (before, now)]
    assert list(input_changes(*inputs)) == [line]
    assert list(input_changes(inputs[0], inputs[0])) == []
