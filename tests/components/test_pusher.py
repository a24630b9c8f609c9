"""Pusher: arguments of TFX's Pusher, and blessings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import RetiredModelError, UsageError

pytestmark = pytest.mark.tf

Push = Callable[..., Any]


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    root = tmp_path / "model" / "Format-Serving"
    root.mkdir(parents=True)
    (root / "saved_model.pb").write_bytes(b"graph")
    return root.parent


@pytest.fixture
def push(tmp_path: Path, model_dir: Path) -> Push:
    """Runs the executor on a model and on blessings: 1, 0, or None for no artifact."""
    from tfx.types import standard_artifacts

    from components.pusher.executor import Executor

    def push(
        destination: dict | None = None,
        model_uri: str = str(model_dir),
        retired: str = "",
        **blessings: int | None,
    ) -> Any:
        model = standard_artifacts.Model()
        model.uri = model_uri
        model.set_string_custom_property("sluice_retired", retired)
        inputs: dict[str, list[Any]] = {"model": [model]}
        for key, blessed in blessings.items():
            kind = "ModelBlessing" if key == "model_blessing" else "InfraBlessing"
            artifact = getattr(standard_artifacts, kind)()
            artifact.set_int_custom_property("blessed", blessed or 0)
            inputs[key] = [] if blessed is None else [artifact]
        pushed = standard_artifacts.PushedModel()
        where = {"filesystem": {"base_directory": str(tmp_path / "serving")}}
        properties = {"push_destination": json.dumps(destination or where)}
        Executor().Do(inputs, {"pushed_model": [pushed]}, properties)
        return pushed

    return push


@pytest.mark.parametrize(
    "blessings", [{"model_blessing": 1, "infra_blessing": 1}, {}], ids=str
)
def test_a_model_with_all_connected_blessings_is_pushed(push, tmp_path, blessings):
    pushed = push(**blessings)

    (version,) = LocalModelStore(tmp_path / "serving").versions()
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("state") == "pushed"
    assert pushed.get_string_custom_property("pushed_destination") == version.uri


@pytest.mark.parametrize(
    "blessings",
    [
        {"model_blessing": 0},
        {"model_blessing": 1, "infra_blessing": 0},
        {"model_blessing": 1, "infra_blessing": None},
        {"model_blessing": 0, "infra_blessing": 1},
        {"model_blessing": None, "infra_blessing": 1},
    ],
    ids=str,
)
def test_a_missing_or_negative_blessing_blocks_the_push(push, tmp_path, blessings):
    """TFX's Pusher pushes where a blessing that it names has not come."""
    pushed = push(**blessings)

    assert pushed.get_int_custom_property("pushed") == 0
    assert pushed.get_string_custom_property("state") == "blocked"
    assert not (tmp_path / "serving").exists()


def test_a_model_that_was_retired_after_its_blessing_is_not_pushed(push, tmp_path):
    """It is so when the run is resumed."""
    with pytest.raises(RetiredModelError, match=r"retired \(bad labels\)") as raised:
        push(retired="bad labels", model_blessing=1)
    assert raised.value.exit_code == 4
    assert not (tmp_path / "serving").exists()


@pytest.mark.parametrize(
    "destination",
    [
        {"filesystem": {}},
        {"filesystem": {"base_directory": "s", "versioning": "UNIX_TIMESTAMP"}},
    ],
    ids=["no directory", "versions by the clock"],
)
def test_an_unsupported_destination_is_rejected(push, destination):
    with pytest.raises(UsageError, match="(?s)not supported.*base_directory"):
        push(destination, model_blessing=1)
