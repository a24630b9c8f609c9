"""When earlier outputs may stand for a new execution."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runners.local.node_cache import inputs_of_key, still_served
from serving.model_store import ModelStore

pytestmark = pytest.mark.unit


@dataclass
class Artifact:
    id: int = 0
    properties: dict = field(default_factory=dict)

    def get_int_custom_property(self, name: str) -> int:
        return self.properties.get(name, 0)

    def get_string_custom_property(self, name: str) -> str:
        return self.properties.get(name, "")


MODEL = Artifact(1)


@pytest.mark.parametrize("baseline", [[], [Artifact(1)]])
def test_no_baseline_and_the_candidate_itself_are_the_same(baseline: list) -> None:
    inputs = {"model": [MODEL], "baseline_model": baseline}
    assert inputs_of_key(inputs) == {"model": [MODEL]}


def test_another_baseline_counts() -> None:
    inputs = {"model": [MODEL], "baseline_model": [Artifact(2)]}
    assert inputs_of_key(inputs) == inputs


def test_nodes_without_a_baseline_are_left_alone() -> None:
    assert inputs_of_key({"examples": [MODEL]}) == {"examples": [MODEL]}


def _saved_model(folder: Path, content: str) -> Path:
    folder.mkdir()
    (folder / "saved_model.pb").write_text(content)
    return folder


def _pushed(path: Path) -> Artifact:
    return Artifact(3, {"pushed": 1, "pushed_destination": str(path)})


def test_a_push_counts_while_it_is_the_newest_and_intact(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "serving")
    first = store.publish(_saved_model(tmp_path / "a", "a"), facts={}).path
    assert still_served(_pushed(first))
    second = store.publish(_saved_model(tmp_path / "b", "b"), facts={}).path
    assert not still_served(_pushed(first))
    assert still_served(_pushed(second))
    (second / "saved_model.pb").write_text("damaged")
    assert not still_served(_pushed(second))


def test_a_push_that_is_gone_does_not_count(tmp_path: Path) -> None:
    assert not still_served(_pushed(tmp_path / "serving" / "1"))


def test_a_model_that_was_never_pushed_stays_so() -> None:
    assert still_served(Artifact(3, {"pushed": 0}))
