"""Operation: a TensorFlow Serving of a model store for Compose or Kubernetes, as text.

The store is mounted for reading, or read where it is, in a bucket.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from runners.operations.find_run import published_in
from runners.operations.print_schedule import filled_in
from runners.operations.serve import ServeOptions
from sluice.errors import UsageError
from sluice.storage.storage import is_remote


def server_text(
    config: Config,
    form: str,
    options: ServeOptions,
    image: str | None = None,
    claim: str | None = None,
) -> str:
    """Returns the file of a server of the newest version.

    Args:
      config: of the pipeline.
      form: ``compose`` or ``kubernetes``.
      options: of ``sluice serve``: address, batches, and how often it looks.
      image: of TensorFlow Serving; None for ``serving_check.server``, or else the
        newest one.
      claim: for Kubernetes: the PersistentVolumeClaim of the project's folder.

    Raises:
      UsageError: there is no claim for a store that is not in a bucket, or the store
        is not in the project's folder.
    """
    store = published_in(config)
    is_bucket = is_remote(store)
    base = store if is_bucket else f"/models/{config.name}"
    values: dict[str, Any] = asdict(options)
    values |= {"name": config.name, "base": base, "volumes": ""}
    values["mounts"] = "" if form == "kubernetes" else "[]"
    if form == "kubernetes" and not is_bucket:
        mount = _mount(config, store, claim) | {"mountPath": base}
        volume = {"name": "store", "persistentVolumeClaim": {"claimName": claim}}
        values["mounts"] = f"- {json.dumps(mount)}"
        values["volumes"] = f"- {json.dumps(volume)}"
    elif not is_bucket:
        values["mounts"] = json.dumps([f"{store}:{base}:ro"])
    return filled_in(
        f"serving_{form}.txt",
        **values,
        image=image or _image(config),
        rows=options.batch_rows,
        micros=round(options.batch_delay_ms * 1000),
        poll=max(1, math.ceil(options.poll_s)),
    )


def _image(config: Config) -> str:
    check = config.serving_check
    server = (check and check.server) or "latest"
    is_image = "/" in server or ":" in server
    return server if is_image else f"tensorflow/serving:{server}"


def _mount(config: Config, store: str, claim: str | None) -> dict[str, object]:
    """Returns the mount of the store, in the volume of the project."""
    if claim is None:
        text = "Kubernetes needs the volume that has the project's folder"
        raise UsageError(text, hint="--claim NAME, or push to a bucket")
    if not Path(store).is_relative_to(config.root):
        text = "the models are not in the project's folder, which the volume has"
        raise UsageError(text, where=store, hint="push to a bucket")
    below = str(Path(store).relative_to(config.root))
    return {"name": "store", "subPath": below, "readOnly": True}
