"""Fixtures of all tests: the environment, a project with data, and ways to run it."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runners.local import processes
from sluice.compat import prepare_environment
from sluice.errors import SluiceError
from sluice.project import own_root
from sluice.record.run_record import RunOptions, RunRecord
from sluice.workspace import workspaces_in
from tests.kit import wait
from tests.kit.forked_command import ForkedCommand

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from pipeline.config.config import Config
    from sluice.workspace import Workspace

# Before any test can import TensorFlow.
prepare_environment()

# In the background of a script an interrupt is ignored, and whatever is started from
# there inherits that; the tests of interrupts send real ones.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where modules take long: these begin first, so that the processes end together.
LONG = ("tests/e2e", "tests/faults", "tests/pipeline/training", "tests/components")
KILLS = "tests.kit.kill_before_publication"
RunConfig = Callable[..., RunRecord]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives whole modules to the processes: the long ones first."""
    from xdist.scheduler import LoadFileScheduling

    class LongFirst(LoadFileScheduling):
        def _assign_work_unit(self, node: Any) -> None:
            modules = [x for x in self.workqueue if x.startswith(LONG)]
            if modules:
                self.workqueue.move_to_end(modules[0], last=False)
            super()._assign_work_unit(node)

    return LongFirst(config, log) if config.getoption("dist") == "loadfile" else None


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
def wait_for() -> Callable[..., Any]:
    """``wait.wait_for``."""
    return wait.wait_for


@pytest.fixture(scope="session")
def is_gone() -> Callable[[int], bool]:
    """``wait.is_gone``."""
    return wait.is_gone


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
    """Opens and checks reports in the browser."""
    from tests.kit.pages import ReportPages

    return ReportPages(browser)


@pytest.fixture(scope="session")
def tfjs_environment() -> Path:
    """The environment of TF.js' converter; skips where there is no network for it."""
    from pipeline.training.exports.tfjs import LOCK, cache_dir, make_environment

    try:
        return make_environment(own_root() / LOCK, cache_dir())
    except SluiceError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The server that forks nodes and commands, having imported TFX once.

    Its nodes can be killed; see ``tests.kit.kill_before_publication``.
    """
    orders = str(tmp_path_factory.mktemp("killed_nodes"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KILLED_NODES", orders)
        patch.setattr(processes, "PRELOAD", (*processes.PRELOAD, KILLS))
        # One that a test has started before has not imported what kills nodes.
        forkserver._forkserver._stop()  # type: ignore[attr-defined]
        processes.start_server(components=True)
        yield


@pytest.fixture(scope="session")
def fork_command(
    server: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., ForkedCommand]:
    """Starts ``sluice``, having imported TFX: ``(*arguments, cwd, **variables)``."""
    folder, numbers = tmp_path_factory.mktemp("commands"), itertools.count()

    def fork(*arguments: str, cwd: Path, **environment: str) -> ForkedCommand:
        own = folder / str(next(numbers))
        return ForkedCommand(own, arguments, cwd, environment)

    return fork


@pytest.fixture(scope="session")
def run_config(server: None) -> RunConfig:
    """Runs a config as the command line does, without its output."""

    def run_config(
        config: Config, workspace: Workspace, wait: bool = False, **options: Any
    ) -> RunRecord:
        from runners.operations.run import run

        with workspaces_in(str(workspace.root.parent)):
            given = RunOptions(**{"workers": 2, **options})
            return run(config, given, command="test", wait=wait)

    return run_config
