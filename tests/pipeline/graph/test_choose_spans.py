"""The spans and files of a run, chosen before TFX is imported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data
from sluice.errors import ExitCode, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit


def _document(directory: Path, train: str) -> dict[str, object]:
    return {
        "version": 1,
        "name": "fares",
        "data": {"dir": str(directory), "splits": {"train": train, "eval": "eval-*"}},
        "label": {"feature": "big_tip"},
        "model": "dense",
        "evaluate": {"metrics": ["AUC"]},
    }


def _config(directory: Path, train: str = "train-*") -> Config:
    return Config.model_validate(_document(directory, train))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("train-0", "train-1", "eval-0"):
        (folder / name).write_text("x")
    return folder


def test_the_files_of_each_split(data):
    (data / "train-2").symlink_to(data / "train-0")
    window = choose_data(_config(data))
    assert [(file.split, Path(file.path)) for file in window.files] == [
        ("train", data / "train-0"),
        ("train", data / "train-1"),
        ("train", data / "train-2"),
        ("eval", data / "eval-0"),
    ]


@pytest.mark.parametrize("pattern", ["train-*", "train-2"])
def test_a_dangling_symlink_is_named(data, pattern):
    (data / "train-2").symlink_to("/nowhere/train-2")
    with pytest.raises(UsageError, match="a broken link") as caught:
        choose_data(_config(data, pattern))
    assert f"{data}/train-2 (data.splits.train" in str(caught.value)
    assert "a link to /nowhere/train-2" in str(caught.value)


def test_a_directory_is_named(data):
    (data / "train-2").mkdir()
    with pytest.raises(UsageError, match="matches a directory[\\s\\S]*train-2/\\*"):
        choose_data(_config(data))


def test_missing_and_wrong_places(data):
    with pytest.raises(UsageError, match="does not exist"):
        choose_data(_config(data / "none"))
    with pytest.raises(UsageError, match="the data directory is a file"):
        choose_data(_config(data / "train-0"))
    with pytest.raises(UsageError, match="no file matches[\\s\\S]*eval-0"):
        choose_data(_config(data, "nothing-*"))


_CHECK = """
import sys
from pipeline.graph.choose_spans import choose_data
from pipeline.config.config import Config
from sluice.errors import UsageError

try:
    choose_data(Config.model_validate_json(sys.argv[1]))
except UsageError as error:
    print(int(error.exit_code), error)
"""


def _check_without_rights(directory: Path) -> str:
    """Checks in a process that file modes bind, also where this is root."""
    text = json.dumps(_document(directory, "train-*"))
    command = [sys.executable, "-c", _CHECK, text]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root ignores file modes, and there is no setpriv")
        dropped = "--bounding-set=-dac_override,-dac_read_search"
        command = ["setpriv", dropped, "--", *command]
    done = subprocess.run(command, cwd=own_root(), capture_output=True, text=True)
    if "setpriv:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_that_may_not_be_read_is_named(data):
    (data / "train-1").chmod(0)
    said = _check_without_rights(data)
    assert said.startswith(
        f"{int(ExitCode.USAGE)} the pattern 'train-*' matches a file"
    )
    assert "cannot be read" in said
    assert f"{data}/train-1" in said


def test_files_in_skipped_folders_are_ignored(data):
    for folder in ("a", "_staging", ".cache"):
        (data / folder).mkdir()
    (data / "a" / "train-7").touch()
    (data / "_staging" / "train-0").mkdir()
    (data / ".cache" / "train-0").symlink_to(data / "nowhere")

    window = choose_data(_config(data, "*/train-*"))

    assert [Path(file.path).name for file in window.files if file.split == "train"] == [
        "train-7"
    ]
