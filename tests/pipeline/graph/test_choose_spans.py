"""The files of a run, chosen before TFX is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_spans
from sluice.errors import UsageError

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


def test_missing_and_wrong_places(tmp_path):
    (tmp_path / "file").touch()
    for name in ("none", "file"):
        with pytest.raises(UsageError, match="does not exist, or is a file"):
            choose_spans(_config(tmp_path / name))
    with pytest.raises(UsageError, match="no file matches[\\s\\S]*- file"):
        choose_spans(_config(tmp_path))
