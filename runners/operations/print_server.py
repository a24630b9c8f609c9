"""Operation: a TensorFlow Serving of a model store for Compose or Kubernetes, as text.

The store is mounted for reading, or read where it is, in a bucket.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from string import Template

from pipeline.config.config import Config
from runners.operations.find_run import published_in
from runners.operations.serve import ServeOptions
from sluice.errors import UsageError
from sluice.storage.storage import is_remote

_MODELS = """
model_config_list {{
  config {{
    name: "{name}"
    base_path: "{base}"
    model_platform: "tensorflow"
  }}
}}
"""
# Of the names of TensorFlow Serving's ``BatchingParameters`` and ``MonitoringConfig``.
_BATCHING = """
max_batch_size {{ value: {rows} }}
batch_timeout_micros {{ value: {micros} }}
max_enqueued_batches {{ value: 1000 }}
"""
_MONITORING = """
prometheus_config {
  enable: true
  path: "/monitoring/prometheus/metrics"
}
"""


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
    name, store = config.name, published_in(config)
    base = store if is_remote(store) else f"/models/{name}"
    poll = max(1, math.ceil(options.poll_s))
    micros = round(options.batch_delay_ms * 1000)
    batching = _BATCHING.format(rows=options.batch_rows, micros=micros)
    indent = {"compose": 6, "kubernetes": 4}[form]
    values = {
        "image": image or _image(config),
        "arguments": _arguments(poll),
        "models": _indented(_MODELS.format(name=name, base=base), indent),
        "batching": _indented(batching, indent),
        "monitoring": _indented(_MONITORING, indent),
        "poll": str(poll),
        "mounts": "",
    }
    if form == "compose":
        mounts = [] if is_remote(store) else [f"{store}:{base}:ro"]
        values["mounts"] = json.dumps(mounts)
        own = {"host": options.host, "port": options.port}
        own["grpc_port"] = options.grpc_port
        values |= {key: str(value) for key, value in own.items()}
    else:
        values["volumes"] = ""
        if not is_remote(store):
            mount = _mount(config, store, claim) | {"mountPath": base}
            volume = {"name": "store", "persistentVolumeClaim": {"claimName": claim}}
            values["mounts"] = f"- {json.dumps(mount)}"
            values["volumes"] = f"- {json.dumps(volume)}"
    template = Path(__file__).with_name(f"serving_{form}.txt").read_text("utf-8")
    return Template(template).substitute(values, name=name)


def _arguments(poll: int) -> str:
    folder = "/etc/serving"
    return json.dumps(
        [
            *("--port=8500", "--rest_api_port=8501", "--enable_batching"),
            f"--model_config_file={folder}/models.pbtxt",
            f"--batching_parameters_file={folder}/batching.pbtxt",
            f"--monitoring_config_file={folder}/monitoring.pbtxt",
            f"--file_system_poll_wait_seconds={poll}",
        ]
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


def _indented(text: str, spaces: int) -> str:
    return text.strip().replace("\n", "\n" + " " * spaces)
