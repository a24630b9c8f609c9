"""``python -m serving.server --model NAME=DIR``: serves one SavedModel of a folder.

For a process that starts it and asks: it prints one line of JSON, either ``port``,
``grpc_port`` and ``load_s``, once it is ready, or ``error``, and then exits with 1. It
ends with SIGTERM, or with the process that started it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from pathlib import Path

from serving.model_store import number_of
from serving.server.batching import BatchSettings
from serving.server.core import Core, Limits
from serving.server.models import Model
from serving.server.process import Address, run
from serving.server.protos import answer_log
from sluice.compat import hidden_native_logs
from sluice.errors import SluiceError
from sluice.process_tree import die_with


def main() -> int:
    """Returns the exit code."""
    die_with(os.getppid())
    parser = argparse.ArgumentParser(prog="serving.server", description=__doc__)
    parser.add_argument("--model", required=True, metavar="NAME=DIR")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--grpc-port", type=int, default=0)
    arguments = parser.parse_args()
    name, _, directory = arguments.model.partition("=")
    logging.basicConfig(level=logging.INFO)
    limits = Limits()
    try:
        model = Model(
            name,
            BatchSettings(),
            lambda servable, log: answer_log(servable, log, limits.body_bytes),
        )
        started = time.monotonic()
        with hidden_native_logs():
            import tensorflow  # noqa: F401

        imported = time.monotonic()
        servable = model.load(directory, number_of(Path(directory).name) or 1)
        load_s = time.monotonic() - imported
        logging.info(f"TensorFlow was imported in {imported - started:.1f} s")
        model.serve(servable)
        run(
            Core([model], limits),
            Address(port=arguments.port, grpc_port=arguments.grpc_port),
            lambda port, grpc_port: _print(
                {"port": port, "grpc_port": grpc_port, "load_s": round(load_s, 3)}
            ),
        )
    except SluiceError as error:
        _print({"error": str(error)})
    return 1


def _print(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    sys.exit(main())
