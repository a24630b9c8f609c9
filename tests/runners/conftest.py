"""Runs small foreign TFX pipelines, and writes projects."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runners.engine import Observer
from sample_data.tf_example import encode
from sluice.errors import SluiceError
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from tests.kit.runs import WrittenRuns


class ForeignRun(Observer):
    """What became of a run.

    Attributes:
      run_dir: of the run.
      ends: the nodes that ended, in that order.
      error: what ``LocalRunner.run`` raised.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.ends: list[str] = []
        self.error: SluiceError | None = None

    def on_node(self, record, node):
        if node.state != "running":
            self.ends.append(node.id)

    @property
    def record(self) -> RunRecord:
        return RunRecord.load(self.run_dir)

    @property
    def states(self) -> dict[str, str]:
        return {node.id: node.state for node in self.record.nodes}

    @property
    def reasons(self) -> dict[str, str | None]:
        return {node.id: node.reason for node in self.record.nodes}

    def message(self, node: str) -> str:
        """Returns what is said of a node that has failed."""
        error = self.record.node(node).error
        assert error is not None
        return error.message

    def log(self, node: str) -> str:
        return (self.run_dir / "logs" / f"{node}.log").read_text(errors="replace")

    def uri(self, node: str, key: str = "out") -> Path:
        """Returns where the only output of a node is."""
        (uri,) = self.record.node(node).outputs[key]
        return Path(uri)


class ForeignPipelines:
    """A pipeline's root, its metadata, and what runs it.

    Attributes:
      root: holds all of it.
      metadata_db: ML Metadata's file.
      own: the module with the components.
    """

    def __init__(self, root: Path, own: ModuleType) -> None:
        self.root = root
        self.metadata_db = root / "metadata.db"
        self.own = own

    def trace(self, name: str) -> str:
        """Returns what a node gets as ``trace``."""
        return str(self.root / name)

    def notes(self, name: str) -> list[dict[str, Any]]:
        """Returns what nodes have written there."""
        return self.own.notes(self.trace(name))

    def build(self, nodes: Sequence[Any], *, cache: bool = False) -> Any:
        """Returns a pipeline of TFX."""
        from tfx.orchestration import metadata
        from tfx.orchestration.pipeline import Pipeline

        connection = metadata.sqlite_metadata_connection_config(str(self.metadata_db))
        return Pipeline(
            pipeline_name="foreign",
            pipeline_root=str(self.root / "root"),
            metadata_connection_config=connection,
            components=list(nodes),
            enable_cache=cache,
        )

    def run(
        self,
        nodes: Sequence[Any],
        *,
        run_id: str = "one",
        cache: bool = False,
        workers: int = 2,
    ) -> ForeignRun:
        """Runs nodes as one pipeline and returns what happened, also if it failed."""
        from runners.local.local_runner import LocalRunner

        run = ForeignRun(self.root / "runs" / run_id)
        pipeline = self.build(nodes, cache=cache)
        try:
            LocalRunner(workers=workers).run(pipeline, run_id=run_id, observer=run)
        except SluiceError as error:
            run.error = error
        return run

    def store(self) -> Any:
        """Returns the ML Metadata store."""
        from ml_metadata.metadata_store import metadata_store
        from tfx.orchestration import metadata

        path = str(self.metadata_db)
        return metadata_store.MetadataStore(
            metadata.sqlite_metadata_connection_config(path)
        )

    def execution_states(self) -> dict[str, int]:
        """Returns how many executions ML Metadata has in each state."""
        found: dict[str, int] = {}
        for execution in self.store().get_executions():
            name = execution.State.Name(execution.last_known_state)
            found[name] = found.get(name, 0) + 1
        return found


@pytest.fixture(scope="module")
def own() -> Iterator[ModuleType]:
    """The module with somebody else's components, found as a script finds its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield importlib.import_module("foreign_components")


@pytest.fixture(scope="module")
def make_foreign(tmp_path_factory, server, own) -> Callable[[], ForeignPipelines]:
    """Makes places for pipelines of somebody else, each with a database of its own."""

    def make() -> ForeignPipelines:
        return ForeignPipelines(tmp_path_factory.mktemp("foreign"), own)

    return make


@pytest.fixture
def foreign(make_foreign: Callable[[], ForeignPipelines]) -> ForeignPipelines:
    """A place for pipelines of somebody else."""
    return make_foreign()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, which is not a project yet."""
    folder = tmp_path / "a fresh place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def write_table() -> Callable[..., None]:
    """Writes records with a label ``clicked`` and two features, and given columns."""

    def write_table(path: Path, first: int, count: int = 60, **more: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        records: Iterator[Any] = (
            {
                "clicked": [n % 2],
                "x": [(n * 37 % 101) / 7],
                "colour": [(b"red", b"green", b"blue")[n * 37 % 101 % 3]],
                **{name: [column(n)] for name, column in more.items()},
            }
            for n in range(first, first + count)
        )
        tfrecord.write(path, map(encode, records))

    return write_table


@pytest.fixture
def clicks(here: Path, write_table: Callable[..., None]) -> Path:
    """The data of a project ``clicks``: a file for each of three splits."""
    folder = here / "data" / "the clicks"
    for number, split in enumerate(("train", "validation", "test")):
        write_table(folder / f"{split} of today.tfrecord.gz", 60 * number)
    (folder / "manifest.json").write_text("{}")
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with both sample configs and digits files; the current directory."""
    for name in ("digits", "taxi"):
        for path in (f"configs/{name}.yaml", f"schemas/{name}/schema.pbtxt"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(own_root() / path, tmp_path / path)
    data = tmp_path / "data" / "digits"
    data.mkdir(parents=True)
    for split in ("train", "eval", "test"):
        (data / f"{split}-0.tfrecord").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    return tmp_path


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project with the digits config, no run yet; the current directory is in it."""
    (tmp_path / "configs").mkdir()
    text = (own_root() / "configs" / "digits.yaml").read_text()
    (tmp_path / "configs" / "digits.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    from tests.kit.past_runs import Past

    return Past(tmp_path)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project in which digits can be said to have run; the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    return WrittenRuns(tmp_path)


@pytest.fixture
def sluice(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Calls the command line in this process; returns exit code, stdout and stderr."""
    from runners.cli.main import main

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call
