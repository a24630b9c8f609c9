"""Operation: predicts with a pushed model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config.config import Config
from runners.operations.find_run import config_words, published_in
from serving.model_store import ModelVersion, store_at
from serving.remote_model import RemoteModel, connect
from sluice.compat import hidden_native_logs
from sluice.errors import ServingError, UsageError
from sluice.storage.local_copy import local_copy
from sluice.workspace import next_command

if TYPE_CHECKING:
    from serving.predictor import Prediction, Predictor


def predict(
    config: Config,
    files: Sequence[str],
    *,
    limit: int | None = None,
    version: int | None = None,
    trust: bool = False,
    id_feature: str | None = None,
    url: str | None = None,
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
      url: of a server that has the pipeline's model under the pipeline's name; None to
        load it in this process.

    Raises:
      UsageError: there is no such version.
      ServingError: the version differs from what was pushed, or cannot be loaded.
      RemoteError: the server does not answer.
    """
    chosen, remote = _choose(config, version, url)
    with _model_dir(chosen, trust, remote) as folder:
        yield from _load(folder, remote).predict_files(
            files,
            limit=limit,
            max_row_bytes=config.examples.max_record_bytes,
            id_feature=id_feature,
        )


def _load(folder: str | Path, remote: RemoteModel | None) -> Predictor:
    # Native libraries print errors about GPUs; failures still raise. While it is
    # imported, TensorFlow 2.21 does not respect the variable.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with hidden_native_logs():
        from serving.predictor import Predictor

        return Predictor(folder, remote)


def _choose(
    config: Config, version: int | None, url: str | None
) -> tuple[ModelVersion, RemoteModel | None]:
    """Returns a version, the newest without a number, and its server, if any."""
    store = store_at(published_in(config))
    versions = {item.version: item for item in store.versions()}
    if not versions:
        raise UsageError(
            f"no version of {config.name} has been pushed yet",
            where=store.uri,
            hint=next_command("run", *config_words(config)),
        )
    remote = connect(url, config.name, version) if url else None
    number = remote.version if remote else version
    chosen = versions.get(max(versions) if number is None else number)
    if chosen is None:
        raise UsageError(
            f"there is no version {number}, but {', '.join(map(str, versions))}",
            where=store.uri,
        )
    return chosen, remote


@contextmanager
def _model_dir(
    version: ModelVersion, trust: bool, remote: RemoteModel | None
) -> Iterator[str | Path]:
    """Yields the folder of a version, which is intact unless a server has loaded it."""
    if remote:
        yield version.uri
        return
    with local_copy(version.uri) as local_dir:
        difference = replace(version, uri=str(local_dir)).difference()
        if difference and not trust:
            raise ServingError(
                f"version {version.version} is not what was pushed, and was not "
                f"loaded: {difference}",
                where=version.uri,
                hint="choose another with --version, or push again; --trust loads it "
                "all the same, and runs the code in it",
            )
        yield local_dir
