"""Fixtures of all tests: the environment, a project with data, and ways to run it."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import shutil
import signal
import subprocess
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
    from playwright.sync_api import Browser

    from pipeline.config.config import Config
    from runners.local.processes.process_pool import ProcessPool
    from sluice.workspace import Workspace

# Before any test can import TensorFlow.
prepare_environment()

# In the background of a script an interrupt is ignored, and whatever is started from
# there inherits that; the tests of interrupts send real ones.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules that share what takes long to make: one process of `make test` runs them all.
SHARING = {
    "killed_nodes": (
        "tests/faults/test_clock.py",
        "tests/faults/test_damaged_metadata.py",
        "tests/faults/test_damaged_models.py",
        "tests/faults/test_damaged_records.py",
        "tests/faults/test_killed_nodes.py",
        "tests/faults/test_lock_of_a_dead_owner.py",
    )
}
# What takes longest begins first, so that no process ends alone with it. Unit tests,
# most of the modules, fill up the end.
LONGEST_FIRST = (
    "killed_nodes",
    "tests/e2e/",
    "tests/faults/",
    "tests/pipeline/training/",
    "tests/runners/local/",
    "tests/runners/ui/test_browser.py",
    "tests/components/test_",
    "tests/cloud/",
    "tests/setup/",
)

RunConfig = Callable[..., RunRecord]
DEADLINE_S = 240.0


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Returns a scheduler that assigns test modules to processes, longest first."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    group_of = {module: name for name, all_ in SHARING.items() for module in all_}

    def length(scope: str) -> int:
        places = enumerate(LONGEST_FIRST)
        found = [-index for index, prefix in places if scope.startswith(prefix)]
        return max(found, default=-len(LONGEST_FIRST))

    class LongestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = super()._split_scope(nodeid)
            return group_of.get(module, module)

        def _assign_work_unit(self, node: Any) -> None:
            # The first of those as long has the most tests.
            self.workqueue.move_to_end(max(self.workqueue, key=length), last=False)
            super()._assign_work_unit(node)

    return LongestFirst(config, log)


@pytest.fixture
def make_saved_model(tmp_path: Path) -> Callable[..., Path]:
    """Makes directories that look like a SavedModel; no TensorFlow can load them."""

    def make(name: str = "model", content: bytes = b"weights") -> Path:
        root = tmp_path / name
        (root / "variables").mkdir(parents=True)
        (root / "assets").mkdir()
        (root / "saved_model.pb").write_bytes(b"graph")
        (root / "variables" / "variables.index").write_bytes(b"index")
        (root / "variables" / "variables.data-00000-of-00001").write_bytes(content)
        return root

    return make


@pytest.fixture(scope="session")
def run_started() -> RunStarted:
    """The first event of a run without options."""
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

    While it runs, only the record has the progress of its nodes.
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
    """A project root of its own: configs, schemas, and the data sets of packages."""
    from sample_data import catalog

    root = tmp_path_factory.mktemp("project")
    shutil.copytree(own_root() / "configs", root / "configs")
    for schema in (own_root() / "schemas").glob("*/schema.pbtxt"):
        shutil.copytree(schema.parent, root / "schemas" / schema.parent.name)
    for name in ("digits", "taxi"):
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
    """Whether a process has ended, reaped or not."""

    def is_gone(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"

    return is_gone


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped, or fails in CI."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium")
    if executable is None:
        missing = "chromium is not installed; try: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with sync_playwright() as playwright:
        # A sandbox needs user namespaces, which containers may lack.
        started = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def report_pages(browser: Browser) -> Any:
    """Opens and checks reports in the browser: ``page_checks.ReportPages``."""
    pytest.register_assert_rewrite("page_checks")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        return importlib.import_module("page_checks").ReportPages(browser)


@pytest.fixture(scope="session")
def process_pool(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessPool]:
    """A zygote that has imported TFX, for all tests that run nodes or commands.

    Its nodes can be killed at exact moments; see ``deadly_moments``.
    """
    from pipeline.graph.node_registry import modules_to_preload
    from runners.local.processes.process_pool import PRELOADED, ProcessPool

    log = tmp_path_factory.mktemp("process_pool") / "start.log"
    moments = tmp_path_factory.mktemp("moments")
    preloaded = Path(__file__).parent / "preloaded"
    modules = [*PRELOADED, *modules_to_preload()]
    modules += [path.stem for path in sorted(preloaded.glob("*.py"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAULTS_MOMENTS", str(moments))
        with pytest.MonkeyPatch.context() as path:
            path.setenv("PYTHONPATH", f"{own_root()}:{preloaded}")
            started = ProcessPool(log, cwd=project, modules=modules)
        with started:
            yield started


class ForkedCommand:
    """A ``sluice`` in a fork of the zygote; used as ``subprocess.Popen`` is.

    Attributes:
      pid: of the runner.
      returncode: None while it runs.
    """

    def __init__(
        self,
        process_pool: ProcessPool,
        folder: Path,
        arguments: tuple[str, ...],
        cwd: Path,
        environment: dict[str, str],
    ) -> None:
        from runners.local.processes.job import Job

        folder.mkdir(parents=True)
        self.returncode: int | None = None
        self._process_pool = process_pool
        self._name = f"command-{folder.name}"
        self._files = folder / "out", folder / "err"
        job = Job(
            "forked_command:main",
            {
                "arguments": list(arguments),
                "cwd": str(cwd),
                "out": str(self._files[0]),
                "err": str(self._files[1]),
                "environment": environment,
            },
            str(folder / "log"),
        )
        process_pool.start(self._name, job)
        deadline = time.monotonic() + DEADLINE_S
        while (pid := process_pool.pid_of(self._name)) is None:
            self._take_messages(0.1)
            assert time.monotonic() < deadline, "no process was forked"
        self.pid = pid

    def poll(self) -> int | None:
        """Returns the exit status once it has ended."""
        if self.returncode is None:
            self._take_messages(0.0)
        return self.returncode

    def wait(self, timeout: float = DEADLINE_S) -> int:
        """Waits for its end.

        Raises:
          subprocess.TimeoutExpired: it has not ended in ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self._name, timeout)
            self._take_messages(0.05)
        return self.returncode

    def communicate(self, timeout: float = DEADLINE_S) -> tuple[str, str]:
        """Waits for its end and returns what it has printed."""
        self.wait(timeout)
        out, err = (path.read_text() if path.exists() else "" for path in self._files)
        return out, err

    def completed(self) -> subprocess.CompletedProcess[str]:
        """Waits for its end and returns all of it, as ``subprocess.run`` does."""
        out, err = self.communicate()
        assert self.returncode is not None
        return subprocess.CompletedProcess(self._name, self.returncode, out, err)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it unless it has ended."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)

    def _take_messages(self, timeout_s: float) -> None:
        for message in self._process_pool.messages(timeout_s):
            if "ended" in message:
                _ENDED[message["ended"]] = message["status"]
        self.returncode = _ENDED.get(self._name)


# Exit statuses of forked commands; each may be told while another one is waited for.
_ENDED: dict[str, int] = {}


@pytest.fixture(scope="session")
def fork_command(
    process_pool: ProcessPool, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., ForkedCommand]:
    """Starts ``sluice`` without the import of TFX: ``(*arguments, cwd, **variables)``.

    No run may be active in the test's own process when it ends: that run would consume
    the message of its end.
    """
    folder, numbers = tmp_path_factory.mktemp("commands"), itertools.count()

    def fork(*arguments: str, cwd: Path, **environment: str) -> ForkedCommand:
        own = folder / str(next(numbers))
        return ForkedCommand(process_pool, own, arguments, cwd, environment)

    return fork


@pytest.fixture(scope="session")
def run_config(process_pool: ProcessPool) -> RunConfig:
    """Runs a config as the command line does, without its output."""

    def run_config(config: Config, workspace: Workspace, **options: Any) -> RunRecord:
        from runners.local.engine import LocalEngine
        from runners.operations.run import RunRequest, run

        profile = config.origin.profile
        request = RunRequest(
            name=str(config.root / config.origin.file),
            profile=Path(profile).stem if profile else None,
            overrides=config.origin.overrides,
            workspace_dir=str(workspace.root.parent),
            command="test",
            **{"workers": 2, **options},
        )
        return run(request, engine=LocalEngine(process_pool))

    return run_config
