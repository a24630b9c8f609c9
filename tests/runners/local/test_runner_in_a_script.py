"""``LocalRunner`` in a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tf


DEADLINE_S = 120.0


SCRIPT = """
import os
import sys
from pathlib import Path

import tensorflow as tf

from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples

import beside
import components
import reports
import sample_data
import schemas
from pipeline.config import TEXT

from runners.local import LocalRunner

ROOT = Path(sys.argv[1])


class OutOfPatience(Exception):
    pass


@component
def Make(out: OutputArtifact[Examples], text: Parameter[str]):
    keras = "legacy" if tf.keras.__name__.startswith("tf_keras") else "3"
    words = [text, beside.TEXT, TEXT, ROOT.name, f"Keras {keras}"]
    Path(out.uri, "data.txt").write_text(", ".join(words))
    Path(out.uri, "parent.txt").write_text(str(os.getppid()))


@component
def Refuse():
    raise OutOfPatience("not today")


def run(name, *nodes):
    path = str(ROOT / "metadata.db")
    pipeline = Pipeline(
        pipeline_name="script",
        pipeline_root=str(ROOT / "root"),
        metadata_connection_config=metadata.sqlite_metadata_connection_config(path),
        components=[*nodes],
    )
    result = LocalRunner().run(pipeline, run_id=name)
    parents = set()
    for node in result.nodes:
        (artifact,) = node.outputs["out"]
        print(node.node, node.state, Path(artifact["uri"], "data.txt").read_text())
        parents.add(Path(artifact["uri"], "parent.txt").read_text())
    return parents


if __name__ == "__main__":
    run("forked", Make(text="forked"), Make(text="again").with_id("Again"))
    tf.constant(1)  # Opens the devices, and no process can be forked from here on.
    first = run("spawned", Make(text="spawned"))
    second = run("once more", Make(text="once more"))
    print("imported once:", first == second)
    try:
        run("refused", Refuse())
    except Exception as error:
        cause = error.__cause__
        print(type(error).__name__, type(cause) is OutOfPatience, cause)
        print("raise OutOfPatience" in str(cause.__cause__))
    again = run("spawned", Make(text="spawned"))
    print("went on:", again == first)
"""


def test_a_module_started_by_name_is_main_in_nodes_too(tmp_path: Path) -> None:
    """``python -m package.module``, which may import its neighbours relatively."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "beside.py").write_text("TEXT = 'from beside'\n")
    (package / "module.py").write_text("from .beside import TEXT\n")
    program = (
        "import sys\n"
        "from runners.local.job_environment import JobEnvironment\n"
        f"path = {str(package / 'module.py')!r}\n"
        f"JobEnvironment(None, ({str(tmp_path)!r},), path, 'package.module').enter()\n"
        "print(sys.modules['__main__'].TEXT)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("from beside\n", 0), done.stderr


def test_components_of_a_script_run(tmp_path: Path) -> None:
    """They are in ``__main__``, which is another module in a node's process."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("TEXT = 'beside it'\n")
    # As TFX's templates have them; ours with these names must not be in the way.
    for package in ("pipeline", "components", "schemas", "reports", "sample_data"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "pipeline" / "config.py").write_text("TEXT = 'its own config'\n")
    root = tmp_path / "place"
    root.mkdir()
    # A script of somebody else sets what ours does not.
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "0"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(root)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=5 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    # Also with a package of the user's that hides ours.
    assert "forked" in (root / "runs" / "forked" / "report.html").read_text("utf-8")
    first, second, *rest = done.stdout.splitlines()
    assert sorted([first, second]) == [
        "Again ran again, beside it, its own config, place, Keras 3",
        "Make ran forked, beside it, its own config, place, Keras 3",
    ]
    assert rest == [
        "Make ran spawned, beside it, its own config, place, Keras 3",
        "Make ran once more, beside it, its own config, place, Keras 3",
        "imported once: True",
        "NodeError True not today",
        "True",
        "Make ran spawned, beside it, its own config, place, Keras 3",
        "went on: True",
    ]
    assert {path.name for path in (root / "runs" / "forked" / "logs").iterdir()} >= {
        "Make.log",
        "Again.log",
    }


def test_a_script_that_runs_its_pipeline_on_import_is_an_error(
    foreign, own, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runners.local.processes.job import INSIDE_JOB

    monkeypatch.setenv(INSIDE_JOB, "1")
    run = foreign.run([own.Make(trace=foreign.trace("Make"))])
    assert 'if __name__ == "__main__":' in str(run.error)
    assert own.notes(foreign.trace("Make")) == []
