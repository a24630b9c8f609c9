"""A forked process as a worker of Beam: of this machine's runner, or of an engine."""

from __future__ import annotations

import signal

from apache_beam.internal import pickler
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    STATE_CACHE_SIZE_MB,
)
from apache_beam.runners.worker.sdk_worker import SdkHarness

from sluice.process_tree import die_with, name_process


def begin_worker(parent: int) -> None:
    """Makes this process, which has just been forked, independent of its parent's code.

    It ends with ``parent``.
    """
    die_with(parent)
    name_process("sluice-beam")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def run_worker(
    address: str,
    worker_id: str,
    pickle_library: str,
    capabilities: frozenset[str] = frozenset(),
) -> None:
    """Does the work of one worker of a pipeline, until the runner hangs up.

    Args:
      address: of the runner.
      worker_id: the runner's name for the worker.
      pickle_library: which the pipeline was pickled with.
      capabilities: of the runner.
    """
    pickler.set_library(pickle_library)
    SdkHarness(
        address,
        worker_id=worker_id,
        state_cache_size=STATE_CACHE_SIZE_MB << 20,
        data_buffer_time_limit_ms=0,
        runner_capabilities=capabilities,
    ).run()
