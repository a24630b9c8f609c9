"""Operation: predicts with a pushed model, loaded only if it is undamaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runners.operations.pipeline_request import PipelineRequest
from serving.model_store import ModelStore, ModelVersion
from sluice.errors import ServingError, UsageError

if TYPE_CHECKING:
    from serving.predictor import Prediction


@dataclass(frozen=True, kw_only=True)
class PredictRequest(PipelineRequest):
    """What is asked of which version.

    Attributes:
      files: TFRecords of tf.Example, images, or JSON lines of raw features; ``-`` for
        JSON lines on standard input.
      limit: stop after this many predictions.
      version: of the model; None for the newest.
      trust: load a version that is not what was pushed; a model can run any code.
    """

    files: tuple[str, ...]
    limit: int | None = None
    version: int | None = None
    trust: bool = False


def predict(request: PredictRequest) -> Iterator[Prediction]:
    """Loads the model; returns its predictions one after the other.

    Raises:
      UsageError: the config is wrong, or there is no such version.
      ServingError: the version is not what was pushed, or cannot be loaded.
    """
    config = request.load_config()
    store = ModelStore(request.serving_dir_of(config))
    versions = {item.version: item for item in store.versions()}
    if not versions:
        raise UsageError(
            f"no version of {request.name} has been pushed yet",
            where=store.root,
            hint=request.next_command("run", request.name),
        )
    if request.version is not None and request.version not in versions:
        raise UsageError(
            f"there is no version {request.version}",
            where=store.root,
            expected=", ".join(map(str, sorted(versions))),
        )
    chosen = versions[max(versions) if request.version is None else request.version]
    if not request.trust:
        _check_pushed(chosen)
    # Native libraries print errors about absent GPUs at import; failures still raise.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from serving.predictor import Predictor

    return Predictor(chosen.path).predict_files(
        list(request.files),
        limit=request.limit,
        max_row_bytes=config.examples.max_record_bytes,
    )


def _check_pushed(chosen: ModelVersion) -> None:
    """Refuses a version that the store has not recorded, or that has changed since."""
    if difference := chosen.difference():
        raise ServingError(
            f"Version {chosen.version} is not what was pushed, so it was not loaded.",
            where=chosen.path,
            expected=f"files with the digest {chosen.digest}"
            if chosen.digest
            else "a version that Sluice has pushed",
            actual=difference,
            hint="choose another with --version, or push again; --trust loads this "
            "one, "
            "and whatever code is in it runs",
        )
