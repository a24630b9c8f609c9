"""``sluice models rollback``: an earlier version is served again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys

import pytest

from components.baseline_model.blessed_models import (
    LOOK_UP,
    blessed_models,
    find_baseline,
    search_baseline,
)
from pipeline.config.load import load_config
from runners.operations.models import rollback
from serving.local_store import LocalModelStore
from serving.model_store import ModelStore

pytestmark = pytest.mark.unit
REASON = ("--reason", "too many alarms")


def _baseline(past):
    searched = search_baseline(blessed_models(past.graph().artifacts.values()))
    return next((item.model.uri for item, why in searched if why is None), None)


def _store(past) -> ModelStore:
    return LocalModelStore(past.workspace.serving)


def test_the_newest_other_version_is_served_again(past, sluice):
    first, _ = past.run(push=True), past.run(push=True)
    # Blessed, and not pushed: it would be the next baseline.
    past.run()
    good, bad = _store(past).versions()
    before = past.uri("Trainer", "model", 2)

    code, out, err = sluice("models", "rollback", "digits", *REASON, "--dry-run")
    assert (code, len(_store(past).versions())) == (0, 2), err
    assert (
        out.splitlines()[0] == "version 1 would be served again, instead of version 2"
    )
    assert before.exists() and _baseline(past) != good.facts["model_uri"]

    code, out, err = sluice("models", "rollback", "digits", *REASON)
    assert code == 0, err
    assert out.splitlines()[:2] == [
        "version 1 is served again, as version 3",
        "withdrawn: version 2",
    ]
    *_, withdrawn, served = _store(past).versions()
    assert (served.version, served.digest) == (3, good.digest)
    assert served.digest != bad.digest and served.is_intact()
    assert served.rollback == "version 1 again: too many alarms"
    assert (withdrawn.version, withdrawn.retired) == (2, "too many alarms")
    assert _baseline(past) == good.facts["model_uri"]
    # On a service, where there is no ML Metadata.
    assert find_baseline(_store(past).uri, LOOK_UP, 9) == (
        [good.facts["model_uri"]],
        [],
    )
    assert find_baseline(_store(past).uri, "2")[1] == [
        ("version 2", "retired: too many alarms")
    ]
    listed = sluice("models", "list", "digits")[1]
    assert "version 3 is version 1 again: too many alarms" in listed
    lineage = sluice("lineage", "digits", "v3", "--json")[1]
    assert [x["rollback"] for x in json.loads(lineage)["served"]] == [
        None,
        "version 1 again: too many alarms",
    ]
    assert first in lineage


def test_a_model_that_is_pushed_again_is_withdrawn_with_its_first_version(past, sluice):
    """Found: the next run pushed it from the cache once more."""
    past.run(push=True), past.run(push=True)
    old, other = _store(past).versions()
    _store(past).publish(old.uri, facts=old.facts)
    code, out, err = sluice("models", "rollback", "digits", *REASON)
    assert code == 0, err
    assert out.splitlines()[:2] == [
        "version 2 is served again, as version 4",
        "withdrawn: version 1, version 3",
    ]
    assert [x.retired for x in _store(past).versions()] == [
        *("too many alarms", None, "too many alarms", None)
    ]
    blessed = blessed_models(past.graph().artifacts.values())
    retired = {item.model.uri: item.retired for item in blessed}
    assert retired[old.facts["model_uri"]] == "too many alarms"
    assert _baseline(past) == other.facts["model_uri"]


def test_a_second_rollback_goes_further_back(past, sluice):
    for _ in range(3):
        past.run(push=True)
    assert sluice("models", "rollback", "digits", *REASON)[0] == 0
    code, out, _ = sluice("models", "rollback", "digits", *REASON)
    assert (code, out.splitlines()[0]) == (0, "version 1 is served again, as version 5")


@pytest.mark.parametrize(
    ("versions", "number", "words"),
    [
        (0, (), "no version to go back to"),
        (1, (), "no version to go back to"),
        (2, ("2",), "version 2 cannot be published again: it is the model that is"),
        (2, ("7",), "version 7 cannot be published again: there is no such version"),
        (4, ("2",), "version 2 cannot be published again: it is damaged: files with"),
        (4, ("3",), "version 3 cannot be published again: it is retired: bad labels"),
    ],
)
def test_what_cannot_be_served_again_is_said(past, sluice, versions, number, words):
    for _ in range(versions):
        past.run(push=True)
    if versions == 4:
        (past.workspace.serving / "2" / "saved_model.pb").write_text("other")
        sluice("models", "retire", "digits", "v3", "--reason", "bad labels")
    code, _, err = sluice("models", "rollback", "digits", *number, *REASON)
    assert (code, words in err) == (2, True), err
    assert len(_store(past).versions()) == versions


def test_without_a_number_flawed_versions_are_passed_over(past, sluice):
    for _ in range(4):
        past.run(push=True)
    (past.workspace.serving / "2" / "saved_model.pb").write_text("other")
    sluice("models", "retire", "digits", "v3", "--reason", "bad labels")
    out = sluice("models", "rollback", "digits", *REASON)[1]
    assert out.splitlines()[0] == "version 1 is served again, as version 5"
    assert _store(past).versions()[2].retired == "bad labels"


def _rollback_killed(config, step: int) -> bool:
    """Runs it in a process that is killed at a step; False if it ends before."""
    pid = os.fork()
    if pid == 0:
        steps = 0

        def kill(event: str, _: object) -> None:
            nonlocal steps
            if event in ("os.rename", "os.mkdir", "os.chmod", "shutil.copyfile"):
                steps += 1
                if steps == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        rollback(config, None, "bad")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.fault
def test_a_rollback_that_is_killed_at_any_step_can_be_made_again(past, sluice):
    for _ in range(3):
        past.run(push=True)
    config, root = load_config("digits"), past.workspace.root
    good = _store(past).versions()[1]
    shutil.copytree(root, root.parent / "before")
    step = 1
    while _rollback_killed(config, step):
        served = _store(past).versions()[-1]
        assert served.is_intact() and served.version in (3, 4)
        if served.version == 3:
            rollback(config, None, "bad")
        served = _store(past).versions()[-1]
        assert (served.digest, served.is_intact()) == (good.digest, True), step
        assert _store(past).versions()[2].retired == "bad"
        assert _baseline(past) == good.facts["model_uri"]
        shutil.rmtree(root)
        shutil.copytree(root.parent / "before", root)
        step += 1
    assert step > 8
