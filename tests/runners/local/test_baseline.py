"""The baseline is the latest blessed model that is neither retired nor damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from components.baseline_model.blessed_models import RESTORED, RETIRED
from components.model_verdict.baseline_summary import BaselineSummary

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
        (self.models[text],) = run.nodes["Train"].outputs["model"]

    def files_of(self, text: str) -> Path:
        return Path(self.models[text]["uri"]) / "Format-Serving"

    def damage(self, text: str) -> None:
        (self.files_of(text) / "saved_model.pb").write_text("")

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

        from components.baseline_model.resolver_strategy import (
            LatestIntactBlessedModel,
        )

        trace = self.foreign.trace(run_id)
        train = self.own.Train(text="candidate")
        resolver = Resolver(
            strategy_class=LatestIntactBlessedModel,
            config={"restores": True},
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

    def told(self, used: str | None) -> BaselineSummary:
        """Returns what the model verdict says where a model is the baseline."""
        from components.model_verdict.driver import summarize_baseline

        ids = [self.models[used]["id"]] if used else []
        return summarize_baseline(self.foreign.store(), "foreign", [999], ids)


@pytest.fixture
def history(foreign, own) -> History:
    return History(foreign, own)


def test_a_damaged_baseline_is_skipped_or_restored(history: History) -> None:
    assert history.baseline("none") is None
    assert history.told(None) == BaselineSummary(pipeline="foreign")
    history.train("a", push=True)
    history.train("b")
    assert history.baseline("intact") == "b"
    assert history.told("b").skipped == ()

    # No version has these bytes: the next older model is used.
    history.damage("b")
    assert history.baseline("older") == "a"
    told = history.told("a")
    assert told.name == f"version 1 (artifact {history.models['a']['id']} of run run-a)"
    (newer,) = told.skipped
    assert newer.name == f"artifact {history.models['b']['id']} of run run-b"
    assert newer.why.startswith("damaged: held 2 files (2 bytes), now 2 files (1 byte")
    assert not newer.retired

    # Version 1 has these.
    shutil.rmtree(history.files_of("a").parent)
    assert history.baseline("restored") == "a"
    assert (history.files_of("a") / "saved_model.pb").read_text() == "a"
    assert sorted(path.name for path in history.files_of("a").parent.iterdir()) == [
        "Format-Serving"
    ]
    version = history.foreign.root / "serving" / "1"
    assert history.told("a").restored == str(version)

    # A version that is damaged too restores nothing.
    history.damage("a")
    (version / "saved_model.pb").write_text("?")
    assert history.baseline("lost") is None
    told = history.told(None)
    assert told.is_lost and len(told.skipped) == 2


def test_a_retired_baseline_is_skipped_even_if_it_is_intact(
    history: History,
) -> None:
    history.train("a")
    history.train("b", push=True)
    history.set("b", RETIRED, "wrong labels")
    assert history.baseline("older") == "a"
    (newer,) = history.told("a").skipped
    assert (newer.why, newer.retired) == ("retired: wrong labels", True)
    history.set("a", RETIRED, "so are these")
    assert history.baseline("none") is None
    assert not history.told(None).is_lost
    history.train("c")
    assert history.baseline("newer") == "c"
    assert history.told("c") == BaselineSummary(
        pipeline="foreign",
        name=f"artifact {history.models['c']['id']} of run run-c",
    )


def test_explain_restores_nothing(history: History) -> None:
    from ml_metadata.proto import metadata_store_pb2
    from tfx.types import standard_artifacts

    from components.baseline_model.resolver_strategy import LatestIntactBlessedModel

    history.train("a", push=True)
    history.damage("a")
    store = history.foreign.store()
    inputs: dict[str, list[Any]] = {}
    for key, kind in (("model", "Model"), ("model_blessing", "ModelBlessing")):
        inputs[key] = []
        for proto in store.get_artifacts_by_type(kind):
            assert proto.state == metadata_store_pb2.Artifact.LIVE
            artifact = getattr(standard_artifacts, kind)()
            artifact.set_mlmd_artifact(proto)
            inputs[key].append(artifact)
    found = LatestIntactBlessedModel(restores=False).resolve_artifacts(store, inputs)
    assert [item.id for item in found["model"]] == [history.models["a"]["id"]]
    assert (history.files_of("a") / "saved_model.pb").read_text() == ""
    assert RESTORED not in found["model"][0].mlmd_artifact.custom_properties
