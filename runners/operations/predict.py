"""Operation: predicts with a pushed model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from pipeline.config.config import Config
from runners.operations.find_run import config_words, published_in
from serving.model_store import ModelVersion, store_at
from serving.prediction_files import write_logs, write_predictions
from serving.prediction_rows import STDIN
from serving.predictor import Logged, Prediction, Predictor
from serving.remote_model import RemoteModel, connect
from sluice.compat import hidden_native_logs
from sluice.errors import ServingError, UsageError
from sluice.forked_calls import run_forked
from sluice.machine_resources import usable_cores
from sluice.storage import atomic
from sluice.storage.local_copy import local_copy
from sluice.workspace import next_command


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
      files: TFRecords of tf.Example, Parquet, CSV, images, or JSON lines of raw
        features; ``-`` for JSON lines on standard input.
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


def predict_to_folder(
    config: Config,
    files: Sequence[str],
    folder: Path,
    *,
    version: int | None = None,
    trust: bool = False,
    id_feature: str | None = None,
    url: str | None = None,
    as_logs: bool = False,
    on_done: Callable[[], object] = lambda: None,
) -> list[Path]:
    """Predicts each file into ``FOLDER/<its name>.jsonl``, several at once.

    ``as_logs`` writes ``PredictionLog``s, without ``sensitive`` features, into
    ``<its name>.logs.tfrecord.gz``: what ``data.serving`` reads.

    A file whose predictions are there, and newer than it, is passed over: a call that
    was interrupted can be made again. All predictions are of one version, of which
    ``FOLDER/model.json`` tells.

    The other arguments are those of ``predict``; ``on_done`` is called after each file.

    Raises:
      UsageError: two files have one name, or the folder has predictions of another
        version or of another file of this name; logs of a private pipeline; otherwise
        as ``predict``.
    """
    if as_logs and config.private:
        what = f"{config.name} is private: its predictions cannot be logged"
        raise UsageError(what, where=folder)
    suffix = ".logs.tfrecord.gz" if as_logs else ".jsonl"
    targets = {folder / f"{Path(name).name}{suffix}": name for name in files}
    if len(targets) < len(files) or STDIN in files:
        raise UsageError(
            "each input must be a file with a name of its own", examples=files
        )
    chosen, remote = _choose(config, version, url)
    about = {"pipeline": config.name, "version": chosen.version, "id": id_feature}
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "model.json"
    known = json.loads(note.read_text("utf-8")) if note.exists() else {**about}
    inputs = known.pop("inputs", {})
    if known != about:
        raise UsageError(
            "this folder has predictions of another version or with other ids",
            where=note,
            expected=str(about),
            actual=str(known),
        )
    own = {path.name: os.path.abspath(name) for path, name in targets.items()}
    if taken := [inputs[x] for x in own if inputs.get(x, own[x]) != own[x]]:
        raise UsageError(
            "this folder has predictions of other files with these names",
            where=folder,
            examples=taken,
            hint="write into another folder",
        )
    atomic.write_json(note, {**about, "inputs": {**inputs, **own}})
    pending = [path for path, name in targets.items() if not _is_newer(path, name)]
    for _ in range(len(targets) - len(pending)):
        on_done()
    with _model_dir(chosen, trust, remote) as model_dir:
        # Once in each process.
        load = cache(partial(_load, model_dir, remote))
        logged = Logged(config.name, chosen.version, config.sensitive)

        def write(target: Path) -> None:
            predictions = load().predict_files(
                [targets[target]],
                max_row_bytes=config.examples.max_record_bytes,
                id_feature=id_feature,
                logged=logged if as_logs else None,
            )
            if as_logs:
                write_logs(target, (x.log for x in predictions if x.log))
            else:
                write_predictions(target, (x.to_dict(id_feature) for x in predictions))

        run_forked(write, pending, 1 if remote else usable_cores(), on_done)
    return [*targets]


def _load(folder: str | Path, remote: RemoteModel | None) -> Predictor:
    # Native libraries print errors about GPUs; failures still raise. While it is
    # imported, TensorFlow 2.21 does not respect the variable.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with hidden_native_logs():
        return Predictor(folder, remote)


def _is_newer(path: Path, name: str) -> bool:
    """Whether a file is newer than another; False if either does not exist."""
    both = [os.path.exists(item) and os.path.getmtime(item) for item in (path, name)]
    return all(both) and both[0] >= both[1]


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
