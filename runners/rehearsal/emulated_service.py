"""A service without a cloud: its buckets, its metadata, and an engine for its jobs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runners.rehearsal.container import Containers
from runners.rehearsal.describe import Describer
from runners.rehearsal.engine import RehearsalEngine
from runners.rehearsal.gcs_emulator import GcsEmulator
from sluice.storage.storage import storage_for

_BUCKET = re.compile(r"gs://([^/\"'\\?*\s]+)")
_BLOCK_BYTES = 8 << 20


@contextmanager
def emulated_service(
    folder: Path,
    project_root: Path,
    buckets: Iterable[str],
    *,
    image: str | None = None,
    for_kubeflow: bool = False,
) -> Iterator[RehearsalEngine]:
    """Yields an engine of a service that has run nothing so far.

    In the block, this process reads and writes ``gs://`` in the emulator.

    Args:
      folder: of the service's data; what an earlier one has left there is deleted.
      project_root: of the pipeline.
      buckets: to make.
      image: run the tasks in this image by Docker; None for plain processes.
      for_kubeflow: whether to emulate Kubeflow Pipelines instead of Vertex AI.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (
        GcsEmulator(folder / "buckets", buckets) as emulator,
        _environment(variables := emulator.environment()),
        Describer(project_root, variables, folder / "describe.log") as describer,
    ):
        containers = Containers(folder / "scratch", project_root, variables, image)
        yield RehearsalEngine(containers, describer, for_kubeflow)


def buckets_of(job: Mapping[str, Any], *uris: str) -> list[str]:
    """Returns the names of the buckets that a job and these URIs name."""
    text = " ".join([json.dumps(job), *uris])
    return sorted(set(_BUCKET.findall(text)))


def upload_files(folder: Path, names: Iterable[str], uri: str) -> None:
    """Copies files of a folder into a bucket."""
    for name in names:
        target = f"{uri}/{name}"
        storage = storage_for(target)
        with (folder / name).open("rb") as source, storage.open(target, "wb") as file:
            shutil.copyfileobj(source, file, _BLOCK_BYTES)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
