"""The differences between two cache keys, as ``sluice explain`` lists them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from components.model_verdict.baseline_summary import BaselineSummary, SkippedModel
from runners.cache.history import changes
from runners.cache.key import ABOUT_BASELINE, InputArtifact, NodeFacts, key_parts

pytestmark = pytest.mark.unit

NODE = NodeFacts("taxi", "Step", "app.steps.Step", executor={"class": "app.steps.Do"})
MODEL = InputArtifact(9, "/artifacts/Trainer/model/9")


def _parts(root: Path, node: NodeFacts = NODE, **properties: object) -> dict:
    return key_parts(replace(node, properties=properties), [root])


def _judge(model: InputArtifact, *baseline: InputArtifact) -> NodeFacts:
    return replace(NODE, inputs={"model": [model], "baseline_model": list(baseline)})


def test_changes_are_listed_by_part(root: Path) -> None:
    before = _parts(
        root,
        replace(_judge(MODEL), outputs={"out": [{"type": "A", "properties": {}}]}),
        custom_config=json.dumps({"train": {"epochs": 30, "rate": 1}, "layers": [1]}),
        splits='["train"]',
    )
    now = _parts(
        root,
        replace(
            _judge(InputArtifact(12, "/artifacts/Trainer/model/12")),
            outputs={"out": [{"type": "A", "properties": {"span": 2}}]},
            executor={"class": "app.driver.Do"},
        ),
        custom_config=json.dumps({"train": {"epochs": 12, "rate": 1.0}, "layers": [2]}),
        schema_file=str(root / "schema.pbtxt"),
    )
    now["packages"] = {**before["packages"], "tfx": "9.9"}
    old = before["packages"]["tfx"]
    assert changes(before, now) == [
        "node executor.class: app.steps.Do -> app.driver.Do",
        "code: app.driver is new",
        "code: app.maths is no longer used",
        "code: app.steps is no longer used",
        "file schema.pbtxt: is new",
        "property layers: [1] -> [2]",
        "property train.epochs: 30 -> 12",
        "property train.rate: 1 -> 1.0",
        "property schema_file: not set -> schema.pbtxt",
        'property splits: ["train"] -> not set',
        "input model: another artifact (Trainer ran again)",
        "output out[0].properties: {} -> not set",
        "output out[0].properties.span: not set -> 2",
        f"package tfx: {old} -> 9.9",
    ]
    assert changes(before, before) == []


def test_new_and_missing_inputs_are_listed(root: Path) -> None:
    old = InputArtifact(2, "/artifacts/Trainer/model/2")
    value = InputArtifact(30, "/artifacts/Count/number/30/value")
    nodes = [
        _judge(MODEL, old),
        _judge(old, MODEL),
        _judge(MODEL),
        replace(NODE, inputs={"model": [MODEL, old]}),
        replace(NODE, inputs={"number": [InputArtifact(20, "/x")]}),
        replace(NODE, inputs={"number": [value]}),
    ]
    parts = [_parts(root, node) for node in nodes]
    told = [changes(*pair) for pair in pairwise(parts)]
    assert told == [
        [
            "input baseline_model: another artifact (Trainer ran again)",
            "input model: an earlier artifact of Trainer",
        ],
        [
            "input baseline_model: none, or the model itself",
            "input model: another artifact (Trainer ran again)",
        ],
        ["input model: 1 artifacts -> 2"],
        ["input model: is gone", "input number: is new"],
        ["input number: another artifact (Count ran again)"],
    ]


def test_changes_of_the_baseline_are_described(root: Path) -> None:
    damaged = SkippedModel("artifact 7 of run b", "damaged: 1 file", retired=False)
    retired = SkippedModel("artifact 7 of run b", "retired: old", retired=True)
    first = BaselineSummary("taxi", "artifact 2 of run a")
    pushed = BaselineSummary("taxi", "version 1 (artifact 2 of run a)")
    stands_in = replace(pushed, restored="/serving/1", skipped=(damaged,))
    decided = replace(pushed, skipped=(retired,))
    lost = BaselineSummary("taxi", skipped=(damaged,))
    old = InputArtifact(2, "/artifacts/Trainer/model/2")

    def parts(about: BaselineSummary, *baseline: InputArtifact) -> dict:
        return _parts(
            root, _judge(MODEL, *baseline), **{ABOUT_BASELINE: about.to_json()}
        )

    steps = [
        parts(first, old),
        parts(pushed, old),
        parts(stands_in, old),
        parts(decided, old),
        parts(BaselineSummary("taxi", is_candidate=True), MODEL),
        parts(lost),
        parts(first, old),
    ]
    assert [changes(*pair) for pair in pairwise(steps)] == [
        ["baseline: artifact 2 of run a -> version 1 (artifact 2 of run a)"],
        [
            "baseline: restored from /serving/1",
            "baseline: artifact 7 of run b is damaged: 1 file",
        ],
        ["baseline: artifact 7 of run b is retired: old"],
        ["input baseline_model: none, or the model itself"],
        ["baseline: artifact 7 of run b is damaged: 1 file"],
        [
            "baseline: artifact 7 of run b is no longer skipped",
            "input baseline_model: is new",
        ],
    ]


def test_long_values_are_cut_to_where_they_differ(root: Path) -> None:
    values = ["a" * 500 + end for end in ("bcd", "xyz" * 100)]
    before, now = (_parts(root, text=value) for value in values)
    (line,) = changes(before, now)
    assert line.startswith("property text: ...aaaaaaaaaaaaaaaaaaaabcd -> ...aaaa")
    assert line.endswith("xyz" * 13 + "x...")
    assert len(line) < 180
