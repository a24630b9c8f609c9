"""Fixtures of all tests: the environment, a project with data, runs in this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.compat import prepare_environment
from sluice.project import own_root
from sluice.run_record import RunRecord

# Before any test can import TensorFlow.
prepare_environment()

RunInProcess = Callable[..., RunRecord]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project root of its own: configs, schemas, and both sample data sets."""
    from sample_data import catalog

    root = tmp_path_factory.mktemp("project")
    for folder in ("configs", "schemas"):
        shutil.copytree(own_root() / folder, root / folder)
    (root / "schemas" / "__init__.py").unlink()
    (root / "schemas" / "loader.py").unlink()
    for name in catalog.names():
        catalog.make(name, root / "data" / name)
    return root


@pytest.fixture(scope="session")
def run_in_process() -> RunInProcess:
    """Runs a config as the child process does, but in this one, and records it."""

    def run_config(config, workspace):
        from pipeline.create_pipeline import create_pipeline
        from pipeline.places import local_places
        from pipeline.validate_config import validate_config
        from runners.local.record_run import RecordRun
        from runners.local.run import run
        from sluice.workspace import new_run_id, utc_now

        workspace.prepare()
        run_id = new_run_id()
        run_dir = workspace.run_dir(run_id)
        run_dir.mkdir()
        record = RunRecord(run_id, config.name, utc_now(), "test")
        recorder = RecordRun(record, run_dir, config.serving_dir or workspace.serving)
        config = validate_config(config).config
        pipeline = create_pipeline(config, local_places(config, workspace))
        run(pipeline, run_id, recorder.apply, run_dir=run_dir)
        recorder.apply({"event": "finished"})
        recorder.close()
        return record

    return run_config
