"""The baseline is the latest blessed model that is neither retired nor missing."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from components.baseline_model.blessed_models import RETIRED
from components.model_verdict.judge import BaselineSummary

pytestmark = pytest.mark.tf


class History:
    """Models a, b, c of one pipeline, each blessed; the pushed ones are versions."""

    def __init__(self, foreign: Any, own: Any) -> None:
        self.foreign = foreign
        self.own = own
        self.models: dict[str, Any] = {}

    def train(self, text: str, *, push: bool = False) -> None:
        """Runs Train > Bless, and our Pusher where it is asked for."""
        from tfx.proto import pusher_pb2

        from components.pusher.component import Pusher

        train = self.own.Train(text=text)
        bless = self.own.Bless(model=train.outputs["model"], good=1)
        nodes = [train, bless]
        if push:
            filesystem = pusher_pb2.PushDestination.Filesystem(
                base_directory=str(self.foreign.root / "serving")
            )
            nodes.append(
                Pusher(
                    model=train.outputs["model"],
                    model_blessing=bless.outputs["blessing"],
                    push_destination=pusher_pb2.PushDestination(filesystem=filesystem),
                )
            )
        run = self.foreign.run(nodes, run_id=f"run-{text}")
        assert run.error is None
        uri = str(run.uri("Train", "model"))
        self.models[text] = {"id": run.artifact("Train", "model").id, "uri": uri}

    def lose(self, text: str) -> None:
        shutil.rmtree(self.models[text]["uri"])

    def set(self, text: str, name: str, value: str) -> None:
        """Sets a custom property of a model."""
        store = self.foreign.store()
        (artifact,) = store.get_artifacts_by_id([self.models[text]["id"]])
        artifact.custom_properties[name].string_value = value
        store.put_artifacts([artifact])

    def baseline(self, run_id: str) -> str | None:
        """Returns the model that a run resolves and reads as its baseline."""
        from tfx.dsl.components.common.resolver import Resolver
        from tfx.types import Channel, standard_artifacts

        from components.baseline_model.component import (
            LatestUsableBlessedModel,
        )

        trace = self.foreign.trace(run_id)
        train = self.own.Train(text="candidate")
        resolver = Resolver(
            strategy_class=LatestUsableBlessedModel,
            model=Channel(type=standard_artifacts.Model),
            model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        ).with_id("Latest")
        compare = self.own.Compare(
            trace=trace,
            latest=train.outputs["model"],
            baseline=resolver.outputs["model"],
        )
        run = self.foreign.run([train, resolver, compare], run_id=run_id)
        assert run.error is None
        (note,) = self.foreign.notes(run_id)
        ids = {item["id"]: text for text, item in self.models.items()}
        return ids.get(note["baseline"])

    def told(self, used: str | None, of: str | None = None) -> BaselineSummary:
        """Returns what the model verdict says where a model is the baseline.

        ``of`` is the candidate; None for a new model.
        """
        from components.model_verdict.component import summarize_baseline

        ids = [self.models[used]["id"]] if used else []
        candidate = [self.models[of]["id"]] if of else [999]
        return summarize_baseline(self.foreign.store(), "foreign", candidate, ids)


@pytest.fixture
def history(foreign, own) -> History:
    return History(foreign, own)


def test_a_missing_baseline_is_skipped(history):
    assert history.baseline("none") is None
    assert history.told(None) == BaselineSummary(pipeline="foreign")
    history.train("a", push=True)
    history.train("b")
    assert history.baseline("whole") == "b"
    assert history.told("b").skipped == ()

    history.lose("b")
    assert history.baseline("older") == "a"
    told = history.told("a")
    assert told.name == f"version 1 (artifact {history.models['a']['id']} of run run-a)"
    (newer,) = told.skipped
    assert newer.name == f"artifact {history.models['b']['id']} of run run-b"
    assert newer.why == f"missing: nothing is at {history.models['b']['uri']}"
    assert not newer.retired

    history.lose("a")
    assert history.baseline("lost") is None
    told = history.told(None)
    assert told.is_lost and len(told.skipped) == 2


def test_a_retired_baseline_is_skipped_even_if_it_is_intact(history):
    history.train("a")
    history.train("b", push=True)
    history.set("b", RETIRED, "wrong labels")
    assert history.baseline("older") == "a"
    (newer,) = history.told("a").skipped
    assert (newer.why, newer.retired) == ("retired: wrong labels", True)
    history.set("a", RETIRED, "so are these")
    assert history.baseline("none") is None
    assert not history.told(None).is_lost
    assert history.told(None).retired == "", "of another candidate"
    assert history.told(None, "b").retired == (
        f"version 1 (artifact {history.models['b']['id']} of run run-b) was retired: "
        "wrong labels"
    )
    history.train("c")
    assert history.baseline("newer") == "c"
    assert history.told("c") == BaselineSummary(
        pipeline="foreign",
        name=f"artifact {history.models['c']['id']} of run run-c",
    )
