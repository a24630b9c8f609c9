"""Pipelines that a script builds and runs by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tf


DEADLINE_S = 120.0


SCRIPT = """
import sys
from pathlib import Path

from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples

import beside


@component
def Make(out: OutputArtifact[Examples], text: Parameter[str]):
    Path(out.uri, "data.txt").write_text(text + beside.TEXT)


if __name__ == "__main__":
    from runners.local.local_runner import LocalRunner

    root = sys.argv[1]
    path = root + "/metadata.db"
    pipeline = Pipeline(
        pipeline_name="script",
        pipeline_root=root,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(path),
        components=[Make(text="from a script"), Make(text="again").with_id("Again")],
    )
    result = LocalRunner().run(pipeline)
    for node in result.nodes:
        (artifact,) = node.outputs["out"]
        print(node.node, node.state, Path(artifact["uri"], "data.txt").read_text())
"""


def test_a_module_started_by_its_name_is_main_in_a_node_too(tmp_path: Path) -> None:
    """``python -m package.module``, which may import its neighbours relatively."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "beside.py").write_text("TEXT = 'from beside'\n")
    (package / "module.py").write_text("from .beside import TEXT\n")
    program = (
        "import sys\n"
        "from runners.local.surroundings import Surroundings\n"
        f"path = {str(package / 'module.py')!r}\n"
        f"Surroundings(None, ({str(tmp_path)!r},), path, 'package.module').enter()\n"
        "print(sys.modules['__main__'].TEXT)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("from beside\n", 0), done.stderr


def test_components_of_a_script_run(tmp_path: Path) -> None:
    """They are in ``__main__``, which is another module in a node's process."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("TEXT = ', and a module beside it'\n")
    root = tmp_path / "root"
    root.mkdir()
    # A script of somebody else does not set what ours sets.
    environment = {**os.environ}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(root)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=5 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "Again ran again, and a module beside it",
        "Make ran from a script, and a module beside it",
    ]
    (run_dir,) = (root / "runs").iterdir()
    assert {path.name for path in (run_dir / "logs").iterdir()} >= {
        "Make.log",
        "Again.log",
    }


def test_a_script_that_runs_its_pipeline_on_import_is_told(
    foreign, own, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runners.local.processes.job import INSIDE_JOB

    monkeypatch.setenv(INSIDE_JOB, "1")
    run = foreign.run([own.Make(trace=foreign.trace("Make"))])
    assert 'if __name__ == "__main__":' in str(run.error)
    assert own.notes(foreign.trace("Make")) == []
