"""``models list``: damaged, unrecorded and retired versions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from runners.doctor.check import Check
from runners.doctor.models import check_serving
from runners.operations.models import (
    ListedModel,
    RetireRequest,
    list_models,
    retire_models,
)
from runners.operations.pipeline_request import PipelineRequest

pytestmark = pytest.mark.unit

DIGITS = PipelineRequest(name="digits")


def _states(listed: list[ListedModel]) -> dict[int, list[str]]:
    return {item.version.version: list(item.flaws) for item in listed}


def _plant(past: Any, version: int) -> Path:
    planted = past.workspace.serving / str(version)
    shutil.copytree(past.workspace.serving / "1", planted)
    return planted


def test_versions_are_listed_newest_first(past: Any) -> None:
    assert list_models(DIGITS) == []
    runs = [past.run(push=True), past.run(push=True)]
    listed = list_models(DIGITS)
    assert _states(listed) == {2: [], 1: []}
    assert [item.version.facts["pipeline_run_id"] for item in listed] == runs[::-1]


def test_a_changed_version_is_marked_as_damaged(past: Any) -> None:
    past.run(push=True)
    past.run(push=True)
    (past.workspace.serving / "2" / "saved_model.pb").write_text("other")
    _plant(past, 7)
    listed = list_models(DIGITS)
    assert _states(listed) == {7: ["unrecorded"], 2: ["damaged"], 1: []}
    assert (listed[0].damage or "").startswith("no record")
    assert (listed[1].damage or "").startswith("files with the digest")


def test_a_retired_model_is_marked(past: Any) -> None:
    past.run(push=True)
    past.run(push=True)
    retire_models(RetireRequest(name="digits", reference="v1", reason="bad labels"))
    listed = list_models(DIGITS)
    assert _states(listed) == {2: [], 1: ["retired"]}
    assert listed[1].to_dict()["retired"] == "bad labels"


def test_versions_are_listed_despite_damaged_metadata(past: Any) -> None:
    past.run(push=True)
    past.workspace.metadata_db.write_text("no database")
    warnings: list[str] = []
    assert _states(list_models(DIGITS, warnings.append)) == {1: []}
    assert len(warnings) == 1 and "retired" in warnings[0]


def _doctor(past: Any) -> Check:
    check = check_serving(past.workspace.root)
    assert check_serving(past.workspace.root.parent) == check
    return check


def test_the_doctor_checks_served_versions(past: Any) -> None:
    assert _doctor(past) == Check("serving", "ok", "none yet")
    past.run(push=True)
    past.run(push=True)
    assert _doctor(past) == Check("serving", "ok", "2 versions")
    (past.workspace.serving / "1" / "saved_model.pb").write_text("other")
    assert _doctor(past).state == "warning"
    planted = _plant(past, 7)
    found = _doctor(past)
    assert found.state == "problem"
    assert f"{planted} differs from what was pushed" in found.found
    assert "mv " in (found.hint or "")


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["cloud.root=gs://b/r"], "gs://b/r/digits/serving"),
        (["cloud.root=gs://b/r", "push.serving_dir=gs://b/s"], "gs://b/s"),
        (["cloud.root=gs://b/r", "push.serving_dir=here"], "gs://b/r/digits/serving"),
    ],
)
def test_models_of_a_service_are_read_where_it_pushes_them(
    overrides: list[str], expected: str
) -> None:
    request = PipelineRequest(name="digits", overrides=tuple(overrides))
    assert request.published_in(request.load_config()) == expected
