"""TFX: its launcher of nodes, and its cache."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def replace_cache(cache: Any) -> None:
    """Lets TFX's launcher in this process take its cache keys and outputs from ours.

    Why: TFX's key has neither the code of a node nor the files that it reads, and its
    cache has a push that is no longer served.
    Upstream: ``cache_utils`` in tfx/orchestration/portable/launcher.py.
    Checked with: TFX 1.16 and 1.21.
    Without it: an edited schema or function is not noticed.
    """
    from tfx.orchestration.portable import launcher

    launcher.cache_utils = cache


def open_no_port() -> None:
    """Keeps TFX's launcher from starting its ``ExecutionWatcher``, a gRPC server.

    Why: through it any local process could write into ML Metadata. TFX's operators for
    Python, Beam and Docker do not pass its address on.
    Upstream: ``execution_watcher`` and ``portpicker`` in
    tfx/orchestration/portable/launcher.py.
    Checked with: TFX 1.16 and 1.21.
    Without it: each node listens on a port while it runs.
    """
    from tfx.orchestration.portable import launcher

    launcher.execution_watcher = SimpleNamespace(ExecutionWatcher=_NoWatcher)
    launcher.portpicker = SimpleNamespace(pick_unused_port=lambda: None)


def outputs_of_execution(metadata_handle: Any, execution: Any) -> Any:
    """Returns the outputs of an execution; None unless all are live.

    Why: the public function finds executions by a cache key, which may be another one.
    Upstream: ``_get_outputs_of_execution`` in
    tfx/orchestration/portable/cache_utils.py.
    Checked with: TFX 1.16 and 1.21.
    Without it: a plan of a run ends at the first node that is not in the cache.
    """
    from tfx.orchestration.portable import cache_utils

    return cache_utils._get_outputs_of_execution(metadata_handle, execution)


class _NoWatcher:
    """Replaces TFX's ``ExecutionWatcher``."""

    address = ""

    def __init__(self, **options: Any) -> None:
        pass

    def start(self) -> None:
        """Starts nothing."""

    def stop(self) -> None:
        """Stops nothing."""
