"""Operation: predicts with a pushed model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.config.config import Config
from runners.operations.find_run import config_words, published_in
from serving.model_store import store_at
from sluice.compat import hidden_native_logs
from sluice.errors import ServingError, UsageError
from sluice.storage.local_copy import local_copy
from sluice.workspace import next_command

if TYPE_CHECKING:
    from serving.predictor import Prediction


def predict(
    config: Config,
    files: Sequence[str],
    *,
    limit: int | None = None,
    version: int | None = None,
    trust: bool = False,
    id_feature: str | None = None,
) -> Iterator[Prediction]:
    """Loads the model and yields its predictions.

    Args:
      config: of the pipeline.
      files: TFRecords of tf.Example, images, or JSON lines of raw features; ``-`` for
        JSON lines on standard input.
      limit: stop after this many predictions.
      version: of the model; None for the newest.
      trust: load a version that differs from what was pushed; a model can run any code.
      id_feature: whose value each prediction gets as its ``id``.

    Raises:
      UsageError: there is no such version.
      ServingError: the version differs from what was pushed, or cannot be loaded.
    """
    store = store_at(published_in(config))
    versions = {item.version: item for item in store.versions()}
    if not versions:
        raise UsageError(
            f"no version of {config.name} has been pushed yet",
            where=store.uri,
            hint=next_command("run", *config_words(config)),
        )
    chosen = versions.get(max(versions) if version is None else version)
    if chosen is None:
        raise UsageError(
            f"there is no version {version}, but {', '.join(map(str, versions))}",
            where=store.uri,
        )
    with local_copy(chosen.uri) as local_dir:
        difference = replace(chosen, uri=str(local_dir)).difference()
        if difference and not trust:
            raise ServingError(
                f"version {chosen.version} is not what was pushed, and was not "
                f"loaded: {difference}",
                where=chosen.uri,
                hint="choose another with --version, or push again; --trust loads it "
                "all the same, and runs the code in it",
            )
        # Native libraries print errors about GPUs; failures still raise. While it is
        # imported, TensorFlow 2.21 does not respect the variable.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        with hidden_native_logs():
            from serving.predictor import Predictor

            predictor = Predictor(local_dir)
        yield from predictor.predict_files(
            list(files),
            limit=limit,
            max_row_bytes=config.examples.max_record_bytes,
            id_feature=id_feature,
        )
