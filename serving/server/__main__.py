"""``python -m serving.server --model NAME=DIR``: serves the SavedModel of a folder.

For a process that starts it and asks: it prints one line of JSON, either ``port``,
``grpc_port`` and ``load_s``, once it is ready, or ``error``, and then exits with 1. It
ends with SIGTERM, or with the process that started it.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import time
from pathlib import Path

from serving.model_store import number_of
from sluice.compat import hidden_native_logs
from sluice.errors import SluiceError
from sluice.process_tree import die_with


def main() -> None:
    """Serves until SIGTERM."""
    die_with(os.getppid())
    parser = argparse.ArgumentParser("python -m serving.server")
    parser.add_argument("--model", required=True, metavar="NAME=DIR")
    parser.add_argument("--batch-rows", type=int, default=64)
    arguments = parser.parse_args()
    name, _, directory = arguments.model.partition("=")
    logging.basicConfig(level=logging.WARNING)
    gc.disable()  # Which takes a fifth of the time of importing TensorFlow.
    with hidden_native_logs():
        from serving.server.batching import BatchSettings
        from serving.server.core import Core, Limits
        from serving.server.models import Model
        from serving.server.process import Address, run
    gc.freeze()
    gc.enable()

    started, limits = time.monotonic(), Limits()
    model = Model(name, BatchSettings(arguments.batch_rows), limits.body_bytes)
    try:
        model.serve(model.load(directory, number_of(Path(directory).name) or 1))
        ready = {"load_s": round(time.monotonic() - started, 3)}
        run(
            Core([model], limits),
            Address(port=0, grpc_port=0),
            lambda port, grpc_port: _print(
                {"port": port, "grpc_port": grpc_port, **ready}
            ),
        )
    except SluiceError as error:
        _print({"error": str(error)})
        sys.exit(1)


def _print(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
