"""The served version of each model, and the change to a new one.

A new version is loaded and warmed up while the old one answers, then takes its place;
the old one is closed when its last request is answered. A version that is not what was
pushed, or does not load in time, is named in the log and in the model's status, and the
old one stays. Versions only go up, as those of a store do. Everything but loading runs
in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensorflow_serving.apis import get_model_status_pb2

from serving.model_store import ModelStore, ModelVersion
from serving.server import metrics
from serving.server.batching import Batcher, BatchSettings
from serving.server.servable import Servable, warm_up
from serving.server.status import Code
from sluice.errors import RemoteError, ServingError, SluiceError
from sluice.storage.local_copy import local_copy

_log = logging.getLogger("sluice")


class LoadedVersion:
    """A version that answers; a ``with`` block keeps it open for a request."""

    def __init__(self, name: str, servable: Servable, settings: BatchSettings) -> None:
        self.name, self.servable = name, servable
        on_batch = metrics.BATCH_ROWS.labels(name).observe
        self.batcher = Batcher(settings, on_batch, self._close_if_unused)
        self._users = 0
        self._on_close: Callable[[], None] | None = None

    def __enter__(self) -> LoadedVersion:
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        self._close_if_unused()

    def retire(self, on_close: Callable[[], None]) -> None:
        """Closes it as soon as no request is under way."""
        self._on_close = on_close
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        # A batch goes on when the time of its requests is up.
        if self._on_close and not self._users and not self.batcher.running:
            self.servable.close()
            self._on_close()
            self._on_close = None


class Model:
    """A model by its name, with the version that is served.

    Attributes:
      name: in requests.
      loaded: the served version; None before the first.
      states: the ``ModelVersionStatus`` of each version since the start.
    """

    def __init__(self, name: str, settings: BatchSettings, max_bytes: int) -> None:
        self.name = name
        self.loaded: LoadedVersion | None = None
        self.states: dict[int, Any] = {}
        self._settings, self._max_bytes = settings, max_bytes

    @property
    def number(self) -> int:
        """The number of the served version; 0 before the first."""
        return self.loaded.servable.version if self.loaded else 0

    def load(self, directory: str | Path, version: int) -> Servable:
        """Loads and warms up a version, in any thread; raises ServingError."""
        servable = Servable(directory, version)
        try:
            warm_up(servable, directory, self._max_bytes)
        except ServingError:
            servable.close()
            raise
        return servable

    def serve(self, servable: Servable) -> None:
        """Lets a loaded version take the place of the served one."""
        old, before = self.loaded, self.number
        self.loaded = LoadedVersion(self.name, servable, self._settings)
        self.set_state(servable.version, "AVAILABLE")
        metrics.VERSION.labels(self.name).set(servable.version)
        _log.info(f"{self.name}: version {servable.version} is served")
        if old:
            self.set_state(before, "UNLOADING")
            old.retire(lambda: self.set_state(before, "END"))

    def set_state(self, version: int, state: str, error: str = "") -> None:
        """Sets the state of a version, by its name in ``ModelVersionStatus``."""
        message = get_model_status_pb2.ModelVersionStatus(version=version, state=state)
        message.status.error_message = error
        code = Code.FAILED_PRECONDITION if error else Code.OK
        message.status.error_code = code.value[0]
        self.states[version] = message


class StoreWatch:
    """Loads what is pushed to a store."""

    def __init__(
        self, model: Model, store: ModelStore, poll_s: float, load_timeout_s: float
    ) -> None:
        self._model, self._store = model, store
        self._poll_s, self._load_timeout_s = poll_s, load_timeout_s
        self._said = ""

    async def run(self) -> None:
        """Looks for new versions without end."""
        while True:
            await asyncio.sleep(self._poll_s)
            await self.refresh()

    async def refresh(self) -> None:
        """Loads the newest version that can be loaded, if it is newer."""
        try:
            versions = await _in_thread(self._newer)
        except (SluiceError, OSError) as error:
            return self._say(str(error))
        if not versions and not self._model.loaded:
            self._say(f"there is no version to serve in {self._store.uri}")
        for version in versions:
            if await self._load(version):
                return

    def _newer(self) -> list[ModelVersion]:
        """Returns versions that are not known yet, newest first."""
        newest = self._store.newest()
        if newest is None or newest.version in self._model.states:
            return []
        newer = (x for x in self._store.versions() if x.version > self._model.number)
        return [x for x in newer if x.version not in self._model.states][::-1]

    async def _load(self, version: ModelVersion) -> bool:
        model, number = self._model, version.version
        model.set_state(number, "LOADING")
        try:
            loading = asyncio.ensure_future(_in_thread(self._load_checked, version))
            # Not wait_for, whose TimeoutError is an OSError from Python 3.11 on.
            done, _ = await asyncio.wait([loading], timeout=self._load_timeout_s)
            if not done:
                loading.cancel()
                raise ServingError(f"not loaded within {self._load_timeout_s:g} s")
            servable = loading.result()
        except (RemoteError, OSError) as error:
            del model.states[number]  # It is tried again.
            self._say(f"version {number}: {error}")
            return False
        except SluiceError as error:
            reason = str(error)
            model.set_state(number, "END", reason)
            stays = f"version {model.number} stays" if model.loaded else "none is"
            _log.error(
                f"{model.name}: version {number} cannot be loaded, {stays} served: "
                f"{reason}"
            )
            return False
        model.serve(servable)
        return True

    def _load_checked(self, version: ModelVersion) -> Servable:
        with local_copy(version.uri) as directory:
            difference = replace(version, uri=str(directory)).difference()
            if difference:
                what = f"it is not what was pushed: {difference}"
                raise ServingError(what, where=version.uri)
            return self._model.load(directory, version.version)

    def _say(self, message: str) -> None:
        """Logs a message that differs from the last one."""
        if message != self._said:
            _log.warning(f"{self._model.name}: {message}")
        self._said = message


def _in_thread(function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    """Calls a function in a daemon thread, which may hang: the process ends anyway."""
    future: Future[Any] = Future()
    # Not cancelled any more, so that the thread may set its result.
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return asyncio.wrap_future(future)
