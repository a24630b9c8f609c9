"""``sluice models retire``, and damaged baselines in doctor and gc."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.doctor.check import Check
from runners.doctor.models import check_baselines
from runners.retention.retire_model import find_baseline_name, find_blessed_models

pytestmark = pytest.mark.unit

Sluice = Callable[..., tuple[int, str, str]]


def _model(past: Any, run_id: str) -> Path:
    return past.made_by(run_id, "Trainer.model")


def _damage(past: Any, run_id: str) -> None:
    (_model(past, run_id) / "Format-Serving" / "saved_model.pb").write_text("")


def _baseline(past: Any) -> str | None:
    """Returns the name of the model that the next run is compared with."""
    return find_baseline_name(past.graph())


def _check(past: Any) -> Check:
    check = check_baselines(past.workspace.root)
    assert check_baselines(past.workspace.root.parent) == check
    return check


def test_an_intact_version_can_be_retired(past: Any, sluice: Sluice) -> None:
    older = past.run()
    newer = past.run(push=True)
    assert (_baseline(past) or "").startswith("version 1 (artifact ")
    before = past.workspace.serving / "1"
    code, out, _ = sluice("models", "retire", "digits", "v1", "--reason", "bad labels")
    assert code == 0
    assert out.splitlines()[0].startswith("retired: version 1 (artifact ")
    assert out.splitlines()[0].endswith(f" of run {newer})")
    assert f"of run {older}" in out.splitlines()[1]
    assert f"of run {older}" in (_baseline(past) or "")
    assert before.is_dir()
    copy = past.workspace.root / "state" / "metadata.copy.db"
    assert b"bad labels" in copy.read_bytes()


def test_retiring_as_json(past: Any, sluice: Sluice) -> None:
    run_id = past.run()
    (model,) = find_blessed_models(past.graph())
    reference = f"artifact:{model.model.id}"
    arguments = ("models", "retire", "digits", reference, "--reason", "why", "--json")
    code, out, _ = sluice(*arguments)
    assert code == 0
    assert json.loads(out) == {
        "schema_version": 1,
        "pipeline": "digits",
        "reason": "why",
        "retired": [
            {
                "artifact": model.model.id,
                "uri": str(_model(past, run_id)),
                "name": f"artifact {model.model.id} of run {run_id}",
            }
        ],
        "baseline": None,
    }


def test_damaged_retires_all_damaged_models(past: Any, sluice: Sluice) -> None:
    intact, truncated, removed = past.run(), past.run(), past.run()
    _damage(past, truncated)
    shutil.rmtree(_model(past, removed))
    arguments = ("models", "retire", "digits", "--damaged", "--reason", "disk failure")
    code, out, _ = sluice(*arguments, "--json")
    document = json.loads(out)
    assert code == 0
    assert [Path(item["uri"]) for item in document["retired"]] == [
        _model(past, removed),
        _model(past, truncated),
    ]
    assert document["baseline"].endswith(f"of run {intact}")
    code, out, _ = sluice(*arguments)
    assert (code, "nothing was retired" in out) == (0, True)


def test_damaged_leaves_models_that_can_be_restored(past: Any, sluice: Sluice) -> None:
    served = past.run(push=True)
    _damage(past, served)
    arguments = ("models", "retire", "digits", "--damaged", "--reason", "disk failure")
    code, out, _ = sluice(*arguments)
    assert (code, "nothing was retired" in out) == (0, True), out
    assert served in out.splitlines()[1]
    assert "restores" in (_check(past).hint or "")
    _damage(past, past.run())
    code, out, _ = sluice(*arguments, "--json")
    (retired,) = json.loads(out)["retired"]
    assert served not in retired["name"]
    shutil.rmtree(past.workspace.serving / "1")
    code, out, _ = sluice(*arguments, "--json")
    (retired,) = json.loads(out)["retired"]
    assert served in retired["name"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reason", "x"], "one of VERSION, artifact:ID and --damaged"),
        (["v1", "--damaged", "--reason", "x"], "one of VERSION, artifact:ID and"),
        (["v9", "--reason", "x"], "there is no version 9\n  expected: versions: 1"),
        (["artifact:1", "--reason", "x"], "artifact 1 is not a blessed model"),
        (["v1", "--reason", " "], "a reason is needed"),
        (["v1"], "--reason"),
    ],
)
def test_an_invalid_request_to_retire_exits_with_2(
    past: Any, sluice: Sluice, arguments: list[str], words: str
) -> None:
    past.run(push=True)
    code, _, err = sluice("models", "retire", "digits", *arguments)
    assert (code, words in err) == (2, True), err
    assert _baseline(past) is not None


def test_a_pipeline_without_blessed_models_exits_with_2(
    past: Any, sluice: Sluice
) -> None:
    past.run(blessed=False)
    code, _, err = sluice("models", "retire", "digits", "--damaged", "--reason", "x")
    assert (code, "no model of digits has been blessed yet" in err) == (2, True)


def test_retiring_during_a_run_exits_with_6(past: Any, sluice: Sluice) -> None:
    past.run(push=True)
    with past.workspace.exclusive("sluice run digits"):
        code, _, err = sluice("models", "retire", "digits", "v1", "--reason", "x")
    assert (code, "sluice run digits" in err) == (6, True)


def test_the_doctor_reports_a_damaged_baseline(past: Any) -> None:
    empty = _check(past)
    assert (empty.state, empty.found) == ("ok", "digits: none yet")
    only = past.run()
    assert _check(past).state == "ok"
    _damage(past, only)
    lost = _check(past)
    assert lost.state == "problem"
    assert str(_model(past, only)) in lost.found and "damaged: held " in lost.found
    assert "sluice models retire digits --damaged" in (lost.hint or "")

    past.run(push=True)
    newest = past.run()
    assert _check(past).state == "ok"
    shutil.rmtree(_model(past, newest))
    stands_in = _check(past)
    assert stands_in.state == "warning"
    assert "nothing is there" in stands_in.found
    assert "version 1 (artifact " in (stands_in.hint or "")

    _damage(past, past.run(push=True))
    restorable = _check(past)
    assert restorable.state == "warning"
    version = past.workspace.serving / "2"
    assert restorable.hint == f"the next run restores it from {version}"


def test_the_doctor_reports_every_damaged_pipeline(past: Any) -> None:
    _damage(past, past.run())
    root = past.workspace.root
    shutil.copytree(root, root.with_name("taxi"))
    past.run(push=True)
    shutil.copytree(root, root.with_name("census"))
    _damage(past, past.run())
    check = check_baselines(root.parent)
    assert check.state == "problem"
    assert check.found.startswith("digits: ") and "; taxi: " in check.found
    assert "census" not in check.found
    for name in ("digits", "taxi"):
        assert f"sluice models retire {name} --damaged" in (check.hint or "")


def test_the_doctor_ignores_retired_models(past: Any, sluice: Sluice) -> None:
    _damage(past, past.run())
    sluice("models", "retire", "digits", "--damaged", "--reason", "gone")
    assert _check(past).state == "ok"


def test_gc_keeps_the_older_baseline_of_a_damaged_one(past: Any) -> None:
    older, newer = past.run(status="blocked"), past.run(status="blocked")
    _damage(past, newer)
    for _ in range(2):
        past.run(blessed=False, status="blocked")
    garbage = past.collect()
    assert not {older, newer} & set(garbage.kept_runs)
    assert _model(past, older).is_dir() and _model(past, newer).is_dir()
    assert (_baseline(past) or "").endswith(f"of run {older}")


def test_gc_keeps_no_retired_model(past: Any, sluice: Sluice) -> None:
    retired = past.run(status="blocked")
    sluice("models", "retire", "digits", "--reason", "x", "Trainer.model")
    for _ in range(2):
        past.run(blessed=False, status="blocked")
    past.collect()
    assert not _model(past, retired).exists()
