"""Projects whose runs are killed, and the ways to call ``sluice`` in them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.workspace import Workspace

if TYPE_CHECKING:
    from runners.local.processes.process_pool import ProcessPool

DEADLINE_S = 240.0
RECORDS = 120
SHARDS = 3
CONFIG = """
version: 1
name: digits
data:
  dir: data/digits
  splits: {train: "train-*", eval: "eval-*", test: "test-*"}
schema: schemas/digits/schema.pbtxt
label: {feature: label}
features:
  image: {kind: image, height: 8, width: 8, channels: 1}
model: my_models:build_model
train: {epochs: EPOCHS, batch_size: 64, learning_rate: 0.001, seed: 17}
evaluate:
  metrics:
    - {class: SparseCategoricalAccuracy, name: accuracy}
  thresholds:
    - {metric: accuracy, lower_bound: 0.01}
private: true
"""
_FOLDER = Path(__file__).parent
_MOMENTS = "FAULTS_MOMENTS"
# States of executions in ML Metadata.
_OPEN = (1, 2)
_COMPLETE = 3


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
    def states(self) -> dict[str, str]:
        return {node["id"]: node["state"] for node in self.document["nodes"]}


class Place:
    """A user's project with its workspace, and the commands that run in it.

    Attributes:
      project: the project's root.
      workspace: of its only pipeline, ``digits``.
    """

    def __init__(
        self,
        project: Path,
        process_pool: ProcessPool,
        fork_command: Callable[..., Any],
        check_run_folds: Callable[[Path], None],
    ) -> None:
        self.project = project
        self.workspace = Workspace(project / "workspaces" / "digits")
        self._process_pool = process_pool
        self._fork_command = fork_command
        self._check_run_folds = check_run_folds
        self._started: list[Any] = []

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables, "PYTHONPATH": str(own_root())}

    @property
    def variables(self) -> dict[str, str]:
        """Returns the environment variables that select the workspace."""
        folder = str(self.workspace.root.parent)
        return {"SLUICE_WORKSPACE": folder, "COLUMNS": "200"}

    def start(self, *arguments: str, **environment: str) -> Any:
        """Starts ``sluice`` in a process of its own, which has imported TFX."""
        environment = {**self.variables, **environment}
        process = self._fork_command(*arguments, cwd=self.project, **environment)
        self._started.append(process)
        return process

    def launch(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Starts ``sluice`` as a shell does, with nothing imported."""
        process = subprocess.Popen(
            [sys.executable, "-m", "runners.cli.main", *arguments],
            cwd=self.project,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def sluice(self, *arguments: str, **environment: str) -> Outcome:
        """Runs ``sluice`` as a shell does."""
        return self.end(self.launch(*arguments, **environment))

    def end(self, process: Any) -> Outcome:
        """Waits for the end of a process."""
        out, err = process.communicate(timeout=DEADLINE_S)
        for run_id in self.workspace.run_ids():
            self._check_run_folds(self.workspace.run_dir(run_id))
        return Outcome(process.returncode, out, err)

    def here(self, *arguments: str) -> Outcome:
        """Runs ``sluice`` in this process, its nodes in the zygote of all tests."""
        import runners.local.query_job
        from runners.cli.main import main
        from runners.local.engine import LocalEngine

        def lend(*_: Any, **__: Any) -> Any:
            return contextlib.nullcontext(self._process_pool)

        runs = arguments[0] in ("run", "resume")
        engine = LocalEngine(self._process_pool) if runs else None
        out, err, code = io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["sluice", *arguments])
            patch.setattr(sys, "path", list(sys.path))
            patch.setenv("SLUICE_WORKSPACE", str(self.workspace.root.parent))
            patch.setenv("COLUMNS", "200")
            patch.chdir(self.project)
            patch.setattr(runners.local.query_job, "ProcessPool", lend)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    main(list(arguments), engine=engine)
                except SystemExit as end:
                    code = int(end.code or 0)
        return Outcome(code, out.getvalue(), err.getvalue())

    def kill(self, node: str, moment: str) -> None:
        """Schedules the kill of a node at a moment; see ``deadly_moments``."""
        (Path(os.environ[_MOMENTS]) / node).write_text(moment)

    def kill_started(self) -> None:
        """Kills the processes that are still running."""
        for process in self._started:
            process.kill()
            process.communicate()

    @property
    def run_dir(self) -> Path:
        """Returns the folder of the newest run."""
        return self.workspace.run_dir(self.workspace.run_ids()[-1])

    def record(self) -> RunRecord:
        """Returns the record of the newest run."""
        return RunRecord.load(self.run_dir)

    def executions(self, *states: int) -> dict[str, int]:
        """Returns how many executions each node has, by default those complete."""
        query = (
            "SELECT c.name, count(*) FROM Execution e"
            " JOIN Association a ON a.execution_id = e.id"
            " JOIN Context c ON c.id = a.context_id"
            " JOIN Type t ON t.id = c.type_id"
            " WHERE t.name = 'node' AND e.last_known_state IN"
            f" ({', '.join(map(str, states or (_COMPLETE,)))}) GROUP BY c.name"
        )
        with contextlib.closing(sqlite3.connect(self.workspace.metadata_db)) as data:
            rows = data.execute(query).fetchall()
        return {name.removeprefix("digits."): count for name, count in rows}

    def shards(self) -> list[str]:
        """Returns the names of all files with examples that TFRecordGen made."""
        examples = self.workspace.artifacts / "TFRecordGen" / "examples"
        return sorted(path.name for path in examples.glob("*/Split-*/data_*"))

    def records_in(self, split: str) -> int:
        """Returns how many records a reader of the examples finds in a split."""
        (uri,) = self.record().node("TFRecordGen").outputs["examples"]
        files = (Path(uri) / f"Split-{split}").iterdir()
        return sum(1 for path in files for _ in tfrecord.read(path))

    def assert_sound(self, *, versions: list[int]) -> None:
        """Checks that nothing is half-made, open or left behind.

        Args:
          versions: those that the serving directory must have, and no others.
        """
        root = self.workspace.root
        names = os.listdir(root / "serving") if (root / "serving").exists() else []
        visible = sorted(name for name in names if not name.startswith("."))
        assert visible == [str(version) for version in versions]
        assert not [name for name in names if name.startswith(".staging")]
        for version in versions:
            assert (root / "serving" / str(version) / "saved_model.pb").is_file()
        assert self.executions(*_OPEN) == {}
        for run_id in self.workspace.run_ids():
            record = RunRecord.load(self.workspace.run_dir(run_id))
            assert record.status != "running"
        assert not self.workspace.is_running()
        assert not list((root / "artifacts").rglob("beam-temp-*"))


@dataclass
class KilledNodes:
    """A pipeline whose nodes were killed until it was complete and its model pushed.

    Attributes:
      place: where.
      outcomes: of each command, by what happened during it.
      shards: the files with examples after it.
      versions: the served versions after it.
    """

    place: Place
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    shards: dict[str, list[str]] = field(default_factory=dict)
    versions: dict[str, list[str]] = field(default_factory=dict)

    def run(self, what: str, *arguments: str) -> None:
        self.outcomes[what] = self.place.here(*arguments, "--json")
        self.shards[what] = self.place.shards()
        serving = self.place.workspace.serving
        self.versions[what] = [path.name for path in serving.glob("[0-9]*")]


@pytest.fixture(scope="session")
def make_place(
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    process_pool: ProcessPool,
    fork_command: Callable[..., Any],
    check_run_folds: Callable[[Path], None],
) -> Iterator[Callable[..., Place]]:
    """Makes projects with a custom model and a threshold that it reaches."""
    places: list[Place] = []

    def make(name: str, epochs: int = 2) -> Place:
        root = tmp_path_factory.mktemp(name)
        (root / "configs").mkdir()
        config = CONFIG.replace("EPOCHS", str(epochs))
        (root / "configs" / "digits.yaml").write_text(config)
        shutil.copytree(project / "schemas", root / "schemas")
        data = root / "data" / "digits"
        data.mkdir(parents=True)
        for split in ("train", "eval", "test"):
            shard = next((project / "data" / "digits").glob(f"{split}-00000-*"))
            records = list(tfrecord.read(shard))[:RECORDS]
            for number in range(SHARDS):
                part = records[number::SHARDS]
                tfrecord.write(data / f"{split}-{number}.tfrecord", part)
        shutil.copy(_FOLDER / "user_models.py", root / "my_models.py")
        places.append(Place(root, process_pool, fork_command, check_run_folds))
        return places[-1]

    yield make
    for place in places:
        place.kill_started()


@pytest.fixture(scope="session")
def killed_nodes(make_place: Callable[..., Place]) -> KilledNodes:
    """One pipeline whose nodes were killed one after another, then completed."""
    place = make_place("nodes")
    done = KilledNodes(place)
    code = place.project / "my_models.py"
    correct = code.read_text()
    code.write_text(correct.replace("    layers =", "    _crash()\n    layers ="))
    place.kill("TFRecordGen", "at the start")
    done.run("at the start", "run", "digits")
    place.kill("TFRecordGen", "between shards")
    done.run("between shards", "resume", "digits")
    place.kill("TFRecordGen", "before publication")
    done.run("before publication", "resume", "digits")
    done.run("segfault", "resume", "digits")
    (place.project / "exit").touch()
    done.run("exit", "resume", "digits")
    code.write_text(correct)
    done.run("corrected", "resume", "digits")
    place.kill("Pusher", "before publication")
    done.run("after the push", "run", "digits")
    done.run("complete", "resume", "digits")
    done.run("again", "run", "digits")
    shutil.copytree(place.workspace.root, place.project / "pristine")
    return done


@pytest.fixture
def served(killed_nodes: KilledNodes) -> Place:
    """The same pipeline, complete, with version 1 pushed, for a test to damage."""
    place = killed_nodes.place
    shutil.rmtree(place.workspace.root)
    shutil.copytree(place.project / "pristine", place.workspace.root)
    return place


@pytest.fixture(scope="session")
def mounting() -> list[str]:
    """The command prefix that may mount file systems, in a namespace of its own."""
    for options in ("-m", "-Urm"):
        command = ["unshare", options, "mount", "-t", "tmpfs", "none", "/mnt"]
        with contextlib.suppress(FileNotFoundError):
            if subprocess.run(command, capture_output=True).returncode == 0:
                return ["unshare", options]
    pytest.skip("mounting is not permitted here, not even in a user namespace")
