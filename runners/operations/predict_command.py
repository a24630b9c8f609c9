"""Builds the ``sluice predict`` command for the model that a run has pushed."""

from __future__ import annotations

from pathlib import Path

from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from runners.engine import Observer
from runners.operations.pipeline_request import next_command
from sluice.record.run_record import RunRecord
from sluice.storage.storage import is_remote


def suggest_predict(
    record: RunRecord,
    config: Config,
    name: str,
    workspace_dir: str | None,
    window: Window,
    observer: Observer,
) -> None:
    """Tells an observer how to ask the model of a run, if it is served."""
    if not any(push.uri for push in record.pushes):
        return
    if command := predict_command(config, name, window, workspace_dir):
        observer.on_command("predict", command)


def predict_command(
    config: Config, name: str, window: Window, workspace_dir: str | None = None
) -> str | None:
    """Returns a command that asks the pushed model, None where the data is gone.

    Args:
      config: of the pipeline.
      name: as it was given.
      window: the data of the run.
      workspace_dir: as it was given.
    """
    if is_remote(window.base):
        return None
    # Of the split that is judged, where files are of one split.
    judged = "test" if "test" in config.data.split_names else "eval"
    of_split = [file for file in window.files if file.split in (judged, None)]
    example = Path(of_split[-1].path if of_split[-1].span else of_split[0].path)
    if not example.exists():
        return None
    if Path.cwd() in example.parents:
        example = example.relative_to(Path.cwd())
    words = ["predict", name, str(example), "--limit", "5"]
    for override in config.origin.overrides:
        if override.startswith("push."):
            words += ["--set", override]
    return next_command(*words, workspace_dir=workspace_dir)
