"""A project whose runs are killed, and the ways to call ``sluice`` in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from sample_data.tf_example import encode
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.workspace import Workspace
from tests.kit.wait import DEADLINE_S, is_gone, wait_for

CONFIG = """
version: 1
name: clicks
data: {dir: data, splits: {train: "train*", eval: "eval*"}}
label: {feature: label}
features: {x: {kind: numeric}}
model: user_code:build_model
train: {epochs: 3, batch_size: 8}
evaluate: {metrics: [BinaryAccuracy]}
nodes:
  Slow: {component: "user_code:Slow", inputs: {examples: TFRecordGen.examples}}
  After: {component: "user_code:After", inputs: {data: Slow.out}}
private: true
"""
_FEATURE = """
feature {
  name: "%s" type: %s
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } } %s
}
"""
SCHEMA = _FEATURE % ("x", "FLOAT", "") + _FEATURE % (
    "label",
    "INT",
    "int_domain { min: 0 max: 1 is_categorical: true }",
)


@dataclass(frozen=True)
class Outcome:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Returns what ``--json`` printed."""
        return json.loads(self.out)

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        return {node["id"]: node for node in self.document["nodes"]}


class Place:
    """A user's project with its workspace, and the commands that run in it."""

    def __init__(self, project: Path, fork_command: Callable[..., Any]) -> None:
        self.project = project
        self.workspace = Workspace(project / "workspace" / "clicks")
        self._fork_command = fork_command
        self._started: list[Any] = []

    def start(self, *arguments: str) -> Any:
        """Starts ``sluice`` in a process that has imported TFX."""
        process = self._fork_command(*arguments, cwd=self.project, COLUMNS="200")
        self._started.append(process)
        return process

    def launch(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts ``sluice`` as a shell does, with nothing imported."""
        process = subprocess.Popen(
            [sys.executable, "-m", "runners.cli.main", *arguments],
            cwd=self.project,
            env={**os.environ, "PYTHONPATH": str(own_root()), "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def end(self, process: Any) -> Outcome:
        """Waits for the end of a process."""
        out, err = process.communicate(timeout=DEADLINE_S)
        return Outcome(process.returncode, out, err)

    def sluice(self, *arguments: str) -> Outcome:
        return self.end(self.start(*arguments))

    def act(self, what: str) -> None:
        """Sets what the node ``Slow`` does next."""
        (self.project / "act").write_text(what)

    def hold(self, process: Any) -> list[int]:
        """Waits until a node holds; returns the processes below the runner."""
        held = self.project / "held"
        wait_for(lambda: held.exists() or process.poll() is not None, "the node")
        assert process.poll() is None, self.end(process)
        return [child.pid for child in psutil.Process(process.pid).children(True)]

    def let_go(self) -> None:
        for name in ("hold Slow", "hold training", "held"):
            (self.project / name).unlink(missing_ok=True)

    def is_quiet(self, pids: list[int]) -> bool:
        """Whether nothing is left of a run: no process, no lock."""
        wait_for(lambda: all(map(is_gone, pids)), "the end of all processes")
        wait_for(lambda: not self.workspace.is_running(), "a free lock")
        return True

    def record(self) -> RunRecord:
        """Returns the record of the newest run."""
        return RunRecord.load(self.workspace.run_dir(self.workspace.run_ids()[-1]))

    def kill_started(self) -> None:
        """Kills the processes that are still running."""
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture(scope="session")
def make_place(
    fork_command: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Place]]:
    """Makes projects of a small table."""
    places: list[Place] = []

    def make(config: str = "") -> Place:
        root = tmp_path_factory.mktemp("clicks")
        for folder in ("configs", "schemas/clicks", "data"):
            (root / folder).mkdir(parents=True)
        (root / "configs" / "clicks.yaml").write_text(CONFIG + config)
        (root / "schemas" / "clicks" / "schema.pbtxt").write_text(SCHEMA)
        for number, split in enumerate(("train", "eval")):
            values = range(40 * number, 40 * number + 40)
            records = [encode({"x": [n / 7], "label": [n % 2]}) for n in values]
            tfrecord.write(root / "data" / f"{split}-0", records)
        shutil.copy(Path(__file__).with_name("user_code.py"), root)
        places.append(Place(root, fork_command))
        return places[-1]

    yield make
    for place in places:
        place.kill_started()


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    return make_place()


@pytest.fixture(scope="session")
def mounting() -> list[str]:
    """The command prefix that may mount file systems, in a namespace of its own."""
    for options in ("-m", "-Urm"):
        command = ["unshare", options, "mount", "-t", "tmpfs", "none", "/mnt"]
        with contextlib.suppress(FileNotFoundError):
            if subprocess.run(command, capture_output=True).returncode == 0:
                return ["unshare", options]
    pytest.skip("mounting is not permitted here, not even in a user namespace")
