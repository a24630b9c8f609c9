"""A training as the chief of a cluster describes it for the workers, in a JSON file.

The chief is the Trainer of a run. A worker calls the same function with the same
arguments, and needs nothing else of TFX. All paths must be those of the chief.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sluice.errors import NodeError
from sluice.node_environment import node_environment, tell
from sluice.storage import atomic
from sluice.storage.storage import storage_for

_ARGUMENTS = (
    "train_files",
    "eval_files",
    "transform_graph_path",
    "base_model",
    "hyperparameters",
    "custom_config",
    "model_run_dir",
    "serving_model_dir",
)


@contextmanager
def shared_training(fn_args: Any) -> Iterator[None]:
    """Describes the training for the workers inside the block."""
    told = node_environment()
    assert told.training_file is not None
    path = Path(told.training_file)
    described = {name: getattr(fn_args, name) for name in _ARGUMENTS}
    atomic.write_json(path, {**described, "checkpoint_dir": told.checkpoint_dir})
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def train_as_worker(training_file: str) -> None:
    """Takes part in a training, as the task that ``TF_CONFIG`` names, until its end.

    Raises:
      NodeError: the paths of the chief are not on this machine, or see ``distribute``.
    """
    # TensorFlow, of which the callers have no need.
    from pipeline.training.run_fn import run_fn

    described = json.loads(Path(training_file).read_bytes())
    graph = described["transform_graph_path"]
    if not storage_for(graph).exists(graph):
        text = "what the chief trains on is not there: its workspace must be shared"
        raise NodeError(text, where=graph)
    tell(checkpoint_dir=described.pop("checkpoint_dir"), training_file=training_file)
    run_fn(SimpleNamespace(**described))
