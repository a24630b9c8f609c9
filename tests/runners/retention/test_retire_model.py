"""``sluice models retire``, and lost baselines in gc."""

from __future__ import annotations

import shutil

import pytest

from components.baseline_model.blessed_models import blessed_models, search_baseline
from serving.local_store import LocalModelStore

pytestmark = pytest.mark.unit


def _model(past, run_id):
    return past.made_by(run_id, "Trainer.model")


def _baseline(past):
    """Returns where the model is that the next run is compared with; empty for none."""
    found = search_baseline(blessed_models(past.graph().artifacts.values()))
    return next((item.model.uri for item, why in found if why is None), "")


def test_a_served_version_can_be_retired(past, sluice):
    older = past.run()
    newer = past.run(push=True)
    assert _baseline(past) == str(_model(past, newer))
    code, out, _ = sluice("models", "retire", "digits", "v1", "--reason", "bad labels")
    assert code == 0
    assert out.splitlines()[0].startswith("retired: version 1 (artifact ")
    assert out.splitlines()[0].endswith(f" of run {newer})")
    assert f"of run {older}" in out.splitlines()[1]
    assert _baseline(past) == str(_model(past, older))
    (version,) = LocalModelStore(past.workspace.serving).versions()
    assert (version.version, version.retired) == (1, "bad labels")
    assert version.is_intact(), "it is still served"
    assert "stays served until another version is pushed" in out


@pytest.mark.parametrize(
    ("blessed", "arguments", "words"),
    [
        (True, ["--reason", "x"], "VERSION|artifact:ID"),
        (True, ["v9", "--reason", "x"], "there is no artifact or version 'v9'"),
        (True, ["v1"], "--reason"),
        (False, ["Trainer.model", "--reason", "x"], "is not a blessed model"),
    ],
)
def test_an_invalid_request_to_retire_exits_with_2(
    past, sluice, blessed, arguments, words
):
    past.run(push=blessed, blessed=blessed)
    code, _, err = sluice("models", "retire", "digits", *arguments)
    assert (code, words in err) == (2, True), err
    assert bool(_baseline(past)) is blessed


def test_gc_keeps_the_older_baseline_of_a_lost_one(past):
    older, newer = past.run(status="blocked"), past.run(status="blocked")
    shutil.rmtree(_model(past, newer))
    for _ in range(2):
        past.run(blessed=False, status="blocked")
    garbage = past.collect()
    assert not {older, newer} & set(garbage.kept_runs)
    assert _model(past, older).is_dir()
    assert _baseline(past) == str(_model(past, older))


def test_gc_keeps_no_retired_model(past, sluice):
    retired = past.run(status="blocked")
    sluice("models", "retire", "digits", "--reason", "x", "Trainer.model")
    for _ in range(2):
        past.run(blessed=False, status="blocked")
    past.collect()
    assert not _model(past, retired).exists()
