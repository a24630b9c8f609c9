"""Fixtures of all tests: the environment, a project with data, and what runs it."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluice.compat import prepare_environment
from sluice.project import own_root
from sluice.record.events import Event, RunStarted
from sluice.record.fold import fold
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import RECORD_FILE, RunRecord

if TYPE_CHECKING:
    from pipeline.config.config import Config
    from runners.local.processes.process_pool import ProcessPool
    from sluice.workspace import Workspace

# Before any test can import TensorFlow.
prepare_environment()

# In the background of a script an interrupt is ignored, and whatever is started from
# there inherits that; the tests of interrupts send real ones.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

RunConfig = Callable[..., RunRecord]
DEADLINE_S = 240.0


@pytest.fixture(scope="session")
def run_started() -> RunStarted:
    """The first event of a run of which nothing special was asked."""
    return RunStarted(
        at="2026-01-01T00:00:00.000000+00:00",
        run_id="20260101T000000Z-aaaa",
        pipeline="p",
        command="sluice run p",
        destination="/serving",
        config={},
        workers=1,
        use_cache=True,
        forced=(),
        from_nodes=(),
        to_nodes=(),
        accept_data=None,
        resume_command="sluice resume p",
    )


@pytest.fixture(scope="session")
def check_run_folds() -> Callable[[Path], None]:
    """Asserts that the record of a run is the fold of its journal, once it has ended.

    While it runs, the progress of its nodes stands in the record alone.
    """

    def check(run_dir: Path) -> None:
        record = json.loads((run_dir / RECORD_FILE).read_text())
        events = Journal(run_dir).events()
        # Without its beginning, the run's folder was deleted meanwhile.
        begun = any(isinstance(event, RunStarted) for event in events)
        if begun and record["status"] != "running":
            folded = fold(events).to_dict()
            assert json.loads(json.dumps(folded)) == record

    return check


@pytest.fixture(scope="session", autouse=True)
def _ended_runs_fold(check_run_folds: Callable[[Path], None]) -> Iterator[None]:
    """Checks every run that a test ends in this process."""
    apply = Recorder.apply

    def checked(self: Recorder, event: Event) -> None:
        apply(self, event)
        check_run_folds(self.run_dir)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "apply", checked)
        yield


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project root of its own: configs, schemas, and both sample data sets."""
    from sample_data import catalog

    root = tmp_path_factory.mktemp("project")
    shutil.copytree(own_root() / "configs", root / "configs")
    for schema in (own_root() / "schemas").glob("*/schema.pbtxt"):
        shutil.copytree(schema.parent, root / "schemas" / schema.parent.name)
    for name in catalog.names():
        catalog.make(name, root / "data" / name)
    return root


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], Any], str], Any]:
    """Waits until something is true and returns it."""

    def wait_for(condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.02)
        pytest.fail(f"waited in vain for {what}")

    return wait_for


@pytest.fixture(scope="session")
def is_gone() -> Callable[[int], bool]:
    """Whether a process has ended, be it that nobody has reaped it yet."""

    def is_gone(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"

    return is_gone


@pytest.fixture(scope="session")
def process_pool(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessPool]:
    """A zygote that has imported TFX, for all tests that run nodes."""
    from runners.local.processes.process_pool import ProcessPool

    log = tmp_path_factory.mktemp("process_pool") / "start.log"
    with ProcessPool(log, cwd=project) as started:
        yield started


@pytest.fixture(scope="session")
def run_config(process_pool: ProcessPool) -> RunConfig:
    """Runs a config as the command line does, but without its text."""

    def run_config(config: Config, workspace: Workspace, **options: Any) -> RunRecord:
        from runners.local.engine import LocalEngine
        from runners.operations.run import RunRequest, run

        request = RunRequest(
            name=str(config.root / config.origin.file),
            profile=config.origin.profile,
            overrides=config.origin.overrides,
            workspace_dir=str(workspace.root.parent),
            command="test",
            **{"workers": 2, **options},
        )
        return run(request, engine=LocalEngine(process_pool))

    return run_config
