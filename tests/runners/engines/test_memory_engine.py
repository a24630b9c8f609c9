"""Operations, record and terminal need nothing of the local engine."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from runners.cli.main import main
from runners.engine import Engine, Observer
from runners.operations.run import RunRequest, run
from sluice.project import own_root
from sluice.record.events import Event
from sluice.record.run_record import RunRecord
from sluice.workspace import locate

pytestmark = pytest.mark.unit


def _memory_engine(**options: Any) -> Engine:
    path = Path(__file__).with_name("memory_engine.py")
    spec = importlib.util.spec_from_file_location("memory_engine", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MemoryEngine(**options)


class Seen(Observer):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.progress: list[str] = []

    def on_event(self, event: Event, record: RunRecord) -> None:
        self.events.append(event.event)

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        self.progress.append(node)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the digits config, in a Python without TFX and processes."""
    (tmp_path / "configs").mkdir()
    shutil.copy(own_root() / "configs" / "digits.yaml", tmp_path / "configs")
    schema = Path("schemas", "digits", "schema.pbtxt")
    (tmp_path / schema).parent.mkdir(parents=True)
    shutil.copy(own_root() / schema, tmp_path / schema)
    (tmp_path / "data" / "digits").mkdir(parents=True)
    for split in ("train", "eval", "test"):
        (tmp_path / "data" / "digits" / f"{split}-0.tfrecord").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    for name in ("tfx", "tensorflow", "ml_metadata"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("subprocess.Popen", None)
    return tmp_path


def test_an_operation_returns_the_record_of_any_engine(root: Path) -> None:
    engine, seen = _memory_engine(), Seen()
    record = run(RunRequest(name="digits", forced=("Trainer",)), seen, engine)
    assert (record.status, record.exit_code) == ("succeeded", 0)
    assert [node.state for node in record.nodes] == ["ran"] * 3
    assert seen.events[:2] == ["run_started", "graph"]
    assert seen.events[-1] == "finished"
    assert seen.progress == ["Read", "Train", "Push"]
    (plan,) = engine.plans  # type: ignore[attr-defined]
    assert plan.forced == ("Trainer",)
    assert plan.project_root == root
    assert RunRecord.load(plan.run_dir) == record
    assert not locate(root, "digits").is_running()


def test_the_terminal_draws_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "digits", "--json"], engine=_memory_engine(fails="Train"))
    assert ended.value.code == 7
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["status"] == "failed"
    lines = shown.err.splitlines()
    for line in ("Read works", "Train is broken", "stopped by Train", "resume: "):
        assert any(line in text for text in lines), shown.err
