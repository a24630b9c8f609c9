"""Whether a push still counts as cached: its version is the newest and undamaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runners.cache.node_cache import still_served
from serving.local_store import LocalModelStore

pytestmark = pytest.mark.unit


@dataclass
class Artifact:
    """A PushedModel as far as ``still_served`` looks at it."""

    properties: dict = field(default_factory=dict)

    def get_int_custom_property(self, name: str) -> int:
        return self.properties.get(name, 0)

    def get_string_custom_property(self, name: str) -> str:
        return self.properties.get(name, "")


Publish = Callable[[str], Any]


@pytest.fixture
def publish(tmp_path: Path) -> Publish:
    def publish(content: str) -> Any:
        folder = tmp_path / f"model-{content}"
        folder.mkdir()
        (folder / "saved_model.pb").write_text(content)
        return LocalModelStore(tmp_path / "serving").publish(folder, facts={})

    return publish


def _pushed(path: Path | str, digest: str = "") -> Artifact:
    return Artifact({"pushed": 1, "pushed_destination": str(path), "digest": digest})


def test_a_push_counts_while_it_is_the_newest_and_intact(publish: Publish) -> None:
    first = publish("a").uri
    assert still_served(_pushed(first))
    second = publish("b").uri
    assert not still_served(_pushed(first))
    assert still_served(_pushed(second))
    Path(second, "saved_model.pb").write_text("damaged")
    assert not still_served(_pushed(second))


def test_a_push_that_is_gone_does_not_count(tmp_path: Path, publish: Publish) -> None:
    assert not still_served(_pushed(tmp_path / "serving" / "1"))
    (tmp_path / "file").write_text("")
    assert not still_served(_pushed(tmp_path / "file" / "1"))


def test_another_model_under_the_same_number_does_not_count(
    tmp_path: Path, publish: Publish
) -> None:
    first = publish("a")
    shutil.rmtree(tmp_path / "serving")
    second = publish("b")
    assert second.uri == first.uri
    assert still_served(_pushed(second.uri, second.digest))
    assert not still_served(_pushed(first.uri, first.digest))


@pytest.mark.parametrize("change", ["no record", "a link"])
def test_a_version_that_predict_refuses_does_not_count(
    tmp_path: Path, publish: Publish, change: str
) -> None:
    pushed = publish("a")
    if change == "no record":
        (tmp_path / "serving" / ".versions" / "1.json").unlink()
    else:
        moved = Path(pushed.uri).rename(tmp_path / "elsewhere")
        Path(pushed.uri).symlink_to(moved)
    assert not still_served(_pushed(pushed.uri, pushed.digest))


def test_a_version_of_another_pusher_counts_while_it_is_the_newest(
    tmp_path: Path,
) -> None:
    version = tmp_path / "serving" / "1700000000"
    version.mkdir(parents=True)
    assert still_served(_pushed(version))


@pytest.mark.parametrize("place", ["bq://project.data.model", "projects/1/models/2"])
def test_a_push_to_a_service_counts(place: str) -> None:
    assert still_served(Artifact({"pushed": 1, "pushed_destination": place}))


def test_a_model_that_was_not_pushed_counts() -> None:
    assert still_served(Artifact({"pushed": 0}))
