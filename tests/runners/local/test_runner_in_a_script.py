"""``LocalRunner`` in a script."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]


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
    record = LocalRunner().run(pipeline, run_id=name)
    parents = set()
    for node in record.nodes:
        (uri,) = node.outputs["out"]
        print(node.id, node.state, Path(uri, "data.txt").read_text())
        parents.add(Path(uri, "parent.txt").read_text())
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


def test_components_of_a_script_run(tmp_path):
    """They are in ``__main__``, which is another module in a node's process."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("TEXT = 'beside it'\n")
    # As TFX's templates have them; ours with these names must not be in the way.
    for package in ("pipeline", "components", "schemas", "sample_data"):
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
