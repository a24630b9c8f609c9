"""Serving directories that cannot be used, and ids of workspaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from serving.store_owner import Owner
from sluice.workspace import locate

pytestmark = pytest.mark.unit


def _plant(root: Path, model: Path, what: str) -> tuple[str, str]:
    """Puts something in the way; returns ``push.serving_dir`` and what must be said."""
    if what == "a device":
        return "/dev/null/x", "Not a directory"
    LocalModelStore(root / "models").publish(model, facts={}, owner=Owner("taxi"))
    return "models", "belongs to another pipeline"


@pytest.mark.parametrize("what", ["a device", "another pipeline"])
def test_an_unusable_serving_directory_is_refused_before_a_run(
    root, make_saved_model, sluice, what
):
    serving_dir, said = _plant(root, make_saved_model(), what)

    code, out, err = sluice(
        "run", "digits", "--json", "--set", f"push.serving_dir={serving_dir}"
    )

    assert code == 2, err
    assert said in err
    assert said in json.loads(out)["error"]["message"]
    assert "Traceback" not in err
    assert locate(root, "digits").run_ids() == []
    for verb in ("gc digits", "runs digits", "models list digits"):
        code, _, err = sluice(*verb.split())
        assert code in (0, 2), err
