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
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from serving.model_store import ModelStore, ModelVersion
from serving.server.batching import Batcher, BatchSettings
from serving.server.servable import Servable
from serving.server.status import Code
from sluice.errors import RemoteError, ServingError, SluiceError
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import is_remote

T = TypeVar("T")
_log = logging.getLogger("sluice")
# Listing a bucket is charged.
_MIN_REMOTE_POLL_S = 15


@dataclass
class VersionState:
    """State of a version, as in TensorFlow Serving's ``ModelVersionStatus``.

    Attributes:
      state: START, LOADING, AVAILABLE, UNLOADING or END.
      code: OK, or why it could not be loaded.
      message: of the error.
    """

    state: str
    code: Code = Code.OK
    message: str = ""


class LoadedVersion:
    """A version that answers; a ``with`` block keeps it open for a request."""

    def __init__(
        self,
        servable: Servable,
        settings: BatchSettings,
        on_batch: Callable[[int, int], None],
        on_close: Callable[[], None],
    ) -> None:
        self.servable = servable
        self.batcher = Batcher(settings, on_batch, self._close_if_unused)
        self._on_close = on_close
        self._users = 0
        self._is_retired = False

    def __enter__(self) -> LoadedVersion:
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        self._close_if_unused()

    def retire(self) -> None:
        """Closes it as soon as no request is under way."""
        self._is_retired = True
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        # A batch goes on when the time of its requests is up.
        if self._is_retired and not self._users and self.batcher.is_idle:
            self._is_retired = False
            self.batcher.close()
            self.servable.close()
            self._on_close()


class Model:
    """A model by its name, with the version that is served.

    Attributes:
      name: in requests.
      loaded: the served version; None before the first.
      states: of each version since the start, by number.
    """

    def __init__(
        self,
        name: str,
        settings: BatchSettings,
        warm_up: Callable[[Servable, Any], None],
        on_batch: Callable[[str, int, int], None] = lambda *_: None,
    ) -> None:
        self.name = name
        self.loaded: LoadedVersion | None = None
        self.states: dict[int, VersionState] = {}
        self._settings = settings
        self._warm_up = warm_up
        self._on_batch = on_batch

    def load(self, directory: str, version: int) -> Servable:
        """Loads and warms up a version; may run in any thread.

        Raises:
          ServingError: it cannot be loaded, or a warm-up request fails.
        """
        servable = Servable(directory, version)
        try:
            servable.warm_up(self._warm_up)
        except ServingError:
            servable.close()
            raise
        return servable

    def serve(self, servable: Servable) -> None:
        """Lets a loaded version take the place of the served one."""
        old, number = self.loaded, servable.version
        self.states[number] = VersionState("AVAILABLE")
        self.loaded = LoadedVersion(
            servable,
            self._settings,
            lambda requests, rows: self._on_batch(self.name, requests, rows),
            lambda: self.states.update({number: VersionState("END")}),
        )
        _log.info(f"{self.name}: version {number} is served")
        if old:
            self.states[old.servable.version] = VersionState("UNLOADING")
            old.retire()


class StoreWatch:
    """Loads what is pushed to a store."""

    def __init__(
        self, model: Model, store: ModelStore, poll_s: float, load_timeout_s: float
    ) -> None:
        self._model, self._store, self._load_timeout_s = model, store, load_timeout_s
        is_bucket = is_remote(store.uri)
        self._poll_s = max(poll_s, _MIN_REMOTE_POLL_S) if is_bucket else poll_s
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
        except SluiceError as error:
            self._say(f"{self._model.name}: {error}")
            return
        if not versions and not self._model.loaded:
            self._say(f"{self._model.name}: no version to serve in {self._store.uri}")
        for version in versions:
            if await self._load(version):
                return

    def _newer(self) -> list[ModelVersion]:
        """Returns versions that may be served, newest first."""
        loaded = self._model.loaded
        served = loaded.servable.version if loaded else 0
        newest = self._store.newest()
        if newest is None or newest.version in (served, *self._model.states):
            return []
        return [
            version
            for version in reversed(self._store.versions())
            if version.version > served and version.version not in self._model.states
        ]

    async def _load(self, version: ModelVersion) -> bool:
        states, number = self._model.states, version.version
        states[number] = VersionState("LOADING")
        try:
            loading = _in_thread(self._load_checked, version)
            servable = await asyncio.wait_for(loading, self._load_timeout_s)
        except (RemoteError, OSError) as error:
            del states[number]  # It is tried again.
            self._say(f"{self._model.name}: version {number}: {error}")
            return False
        except Exception as error:
            message = str(error)
            if isinstance(error, asyncio.TimeoutError):
                message = f"it was not loaded within {self._load_timeout_s:g} s"
            states[number] = VersionState("END", Code.FAILED_PRECONDITION, message)
            loaded = self._model.loaded
            rest = f"version {loaded.servable.version} stays" if loaded else "none is"
            _log.error(
                f"{self._model.name}: version {number} cannot be served, {rest} "
                f"served: {message}"
            )
            return False
        self._model.serve(servable)
        return True

    def _load_checked(self, version: ModelVersion) -> Servable:
        with local_copy(version.uri) as directory:
            difference = replace(version, uri=str(directory)).difference()
            if difference:
                raise ServingError(
                    f"version {version.version} is not what was pushed: {difference}",
                    where=version.uri,
                )
            return self._model.load(str(directory), version.version)

    def _say(self, message: str) -> None:
        """Logs a message that differs from the last one."""
        if message != self._said:
            _log.warning(message)
        self._said = message


def _in_thread(function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
    """Calls a function in a daemon thread, which may hang: the process ends anyway."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def end(setter: str, value: Any) -> None:
        if not future.done():
            getattr(future, setter)(value)

    def work() -> None:
        try:
            result = function(*arguments)
        except Exception as error:
            loop.call_soon_threadsafe(end, "set_exception", error)
        else:
            loop.call_soon_threadsafe(end, "set_result", result)

    threading.Thread(target=work, daemon=True).start()
    return future
