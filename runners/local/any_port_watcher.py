"""TFX's execution watcher on a port that the kernel chooses.

TFX's launcher asks ``portpicker`` for a free port and binds it later; in between
another launcher may bind it, and a node fails for no reason of its own.
"""

from __future__ import annotations

from concurrent import futures
from types import SimpleNamespace
from typing import Any

import grpc
from tfx.orchestration.portable import execution_watcher, launcher
from tfx.proto.orchestration import execution_watcher_pb2_grpc


class AnyPortWatcher(execution_watcher.ExecutionWatcher):
    """An ``ExecutionWatcher`` that binds when it is made, and knows its port after."""

    def _create_server(self) -> Any:
        server = grpc.server(futures.ThreadPoolExecutor())
        execution_watcher_pb2_grpc.add_ExecutionWatcherServiceServicer_to_server(
            self, server
        )
        if self._creds is None:
            self._port = server.add_insecure_port("localhost:0")
        else:
            self._port = server.add_secure_port("localhost:0", self._creds)
        return server


def use_any_port() -> None:
    """Makes TFX's launcher use it in this process."""
    launcher.execution_watcher = SimpleNamespace(ExecutionWatcher=AnyPortWatcher)
    launcher.portpicker = SimpleNamespace(pick_unused_port=lambda: 0)
