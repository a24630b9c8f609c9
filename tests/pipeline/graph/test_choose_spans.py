"""The files of a run, chosen before TFX is imported."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_spans
from serving.local_store import LocalModelStore
from sluice.errors import UsageError
from sluice.workspace import locate

pytestmark = pytest.mark.unit


def _config(directory, **data):
    splits = {"train": "train-*", "eval": "eval-*"}
    return Config.model_validate(
        {
            "version": 1,
            "name": "fares",
            "data": {"dir": str(directory), "splits": splits, **data},
            "label": {"feature": "big_tip"},
            "model": "dense",
            "evaluate": {"metrics": ["AUC"]},
        }
    )


def test_the_files_of_each_split_and_of_serving(tmp_path):
    for name in ("train-0", "train-1", "eval-0", "requests-0"):
        (tmp_path / name).write_text("x")
    (tmp_path / "train-2").symlink_to(tmp_path / "train-0")
    windows = choose_spans(_config(tmp_path, serving="requests-*")).windows
    assert {
        name: [(file.split, Path(file.path).name) for file in window.files]
        for name, window in windows.items()
    } == {
        "data": [
            ("train", "train-0"),
            ("train", "train-1"),
            ("train", "train-2"),
            ("eval", "eval-0"),
        ],
        "serving": [("serving", "requests-0")],
    }


def test_requests_before_the_push_are_not_compared(tmp_path, monkeypatch):
    """Found: those of the whole day of the push were."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    data = tmp_path / "data"
    data.mkdir(), (tmp_path / "model").mkdir()
    (data / "train-0").touch(), (data / "eval-0").touch()
    (tmp_path / "model" / "saved_model.pb").write_bytes(b"model")
    config = _config(data, serving="requests")
    workspace = locate(config.root, config.name)
    store = LocalModelStore(workspace.serving)
    store.publish(tmp_path / "model", facts={})
    pushed_at = store.versions()[-1].published_at or ""
    at = datetime.fromisoformat(pushed_at).timestamp()
    folder = workspace.requests / f"{pushed_at:.10}"
    folder.mkdir(parents=True)
    for name, modified_s in (("before", at - 60), ("after", at + 60)):
        path = folder / f"{name}.tfrecord.gz"
        path.write_bytes(b"logs")
        os.utime(path, (modified_s, modified_s))
    files = choose_spans(config).windows["serving"].files
    assert [Path(file.path).name for file in files] == ["after.tfrecord.gz"]


def test_missing_and_wrong_places(tmp_path):
    (tmp_path / "file").touch()
    for name in ("none", "file"):
        with pytest.raises(UsageError, match="does not exist, or is a file"):
            choose_spans(_config(tmp_path / name))
    with pytest.raises(UsageError, match="no file matches[\\s\\S]*- file"):
        choose_spans(_config(tmp_path))
