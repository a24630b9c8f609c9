"""A server of one SavedModel in a fresh process, without the project's own modules.

The process has the server's code alone on its path, and an empty working directory. It
never outlives this one.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Timer
from typing import Any

from sluice.process_tree import describe_end
from sluice.project import own_root

# Runs the server's module in a process that the kernel kills with this one. TensorFlow
# imports these if it can, which takes a third of its import; a server needs none.
_START = """
import runpy, sys
from sluice.process_tree import die_with
die_with(int(sys.argv.pop(1)))
unneeded = ("tf_keras", "keras", "scipy", "googleapiclient", "h5py")
sys.modules.update(dict.fromkeys(unneeded))
runpy.run_module("serving.server", run_name="__main__", alter_sys=True)
"""


class ServerError(Exception):
    """The server does not start, does not answer in time, or has ended."""


class ModelServer:
    """A server in a process of its own, for one caller.

    Without a GPU, which the Evaluator may use at the same time.

    Attributes:
      is_ready: whether it has loaded the model.
    """

    def __init__(self, saved_model: Path, timeout_s: float, *, quiet: bool) -> None:
        """Starts the process; it imports TensorFlow, then loads the model.

        Args:
          saved_model: its folder.
          timeout_s: limit of the time until it is ready, and of that of an answer.
          quiet: whether the texts of errors are dropped, which may have values of
            requests.
        """
        self._timeout_s, self._quiet = timeout_s, quiet
        self._began, self.is_ready = time.monotonic(), False
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-serving-")
        model = f"model={saved_model.resolve()}"
        own = {"PYTHONPATH": str(own_root()), "CUDA_VISIBLE_DEVICES": "-1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(os.getpid()), "--model", model],
            cwd=self._folder.name,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
        )

    def close(self) -> None:
        """Ends the process, also one that hangs."""
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def wait(self) -> float:
        """Returns the seconds that loading the model took, once it is served.

        Raises:
          ServerError: it cannot be loaded, or not in time.
        """
        assert self._process.stdout is not None
        left_s = self._began + self._timeout_s - time.monotonic()
        timer = Timer(max(left_s, 0.0), self._process.kill)
        timer.daemon = True
        timer.start()
        lines = (x for x in self._process.stdout if x.startswith(b"{"))
        ready = json.loads(next(lines, "{}"))
        timer.cancel()
        if reason := ready.get("error"):
            raise ServerError(f"the model cannot be loaded: {reason}")
        if "port" not in ready:
            raise self._failure("the server was not ready")
        self.is_ready = True
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", ready["port"], timeout=self._timeout_s
        )
        return float(ready["load_s"])

    def predict(self, signature: str, instances: list[Any]) -> tuple[Any, float]:
        """Returns the predictions for instances, and the milliseconds of the request.

        In place of a list of predictions a text says why there are none.

        Raises:
          ServerError: there is no answer.
        """
        body = json.dumps({"signature_name": signature, "instances": instances})
        self._began = time.monotonic()
        try:
            self._connection.request("POST", "/v1/models/model:predict", body)
            response = self._connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failure(f"signature {signature!r} did not answer") from error
        elapsed_ms = (time.monotonic() - self._began) * 1000
        if response.status != http.HTTPStatus.OK:
            reason = "" if self._quiet else f": {answer.get('error')}"
            return f"HTTP {response.status}{reason}", elapsed_ms
        return answer.get("predictions"), elapsed_ms

    def _failure(self, what: str) -> ServerError:
        if time.monotonic() - self._began >= self._timeout_s:
            return ServerError(f"{what} within {self._timeout_s:g} s")
        try:
            end = describe_end(self._process.wait(timeout=5))
        except subprocess.TimeoutExpired:
            end = "closed the connection"
        return ServerError(f"{what}: it {end}")
