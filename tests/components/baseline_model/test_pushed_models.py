"""The baseline of cloud services: looked up by a task in the model store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from components.baseline_model.blessed_models import (
    LOOK_UP,
    NO_BASELINE,
    find_baseline,
    pin_baseline,
)
from serving.model_store import store_at


def _push(tmp_path: Path, name: str) -> str:
    """Publishes a model and returns the URI of the trained one."""
    model = tmp_path / "models" / name
    serving = model / "Format-Serving"
    serving.mkdir(parents=True)
    (serving / "saved_model.pb").write_text(name)
    store = store_at(tmp_path / "serving")
    store.publish(serving, facts={"model_uri": str(model)})
    return str(model)


@pytest.mark.unit
def test_the_model_that_was_pushed_last_is_the_baseline(tmp_path):
    serving = str(tmp_path / "serving")
    assert pin_baseline(serving) == NO_BASELINE
    assert find_baseline(serving, LOOK_UP) == ([], [])
    first, second = _push(tmp_path, "first"), _push(tmp_path, "second")
    assert pin_baseline(serving) == "2"
    assert find_baseline(serving, LOOK_UP) == ([second], [])
    assert find_baseline(serving, LOOK_UP, 5) == ([second, first], [])
    # A pinned run does not see a later push.
    assert find_baseline(serving, "1") == ([first], [])
    assert find_baseline(serving, NO_BASELINE) == ([], [])


@pytest.mark.unit
def test_a_missing_model_is_skipped_and_named(tmp_path):
    """Found: TFX's resolver selects it, and the Evaluator fails at loading it."""
    serving = str(tmp_path / "serving")
    first, second = _push(tmp_path, "first"), _push(tmp_path, "second")
    shutil.rmtree(second)
    found, skipped = find_baseline(serving, LOOK_UP)
    assert found == [first]
    assert skipped == [("version 2", f"missing: nothing is at {second}")]
    shutil.rmtree(first)
    found, skipped = find_baseline(serving, "2")
    assert not found and [name for name, _ in skipped] == ["version 2", "version 1"]
