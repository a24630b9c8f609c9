"""Imported once by the server that forks the processes of nodes: TFX, in 4 to 10 s.

``multiprocessing`` imports it by ``set_forkserver_preload``. What fails here is
imported again, and reported, by the process that needs it.
"""

import contextlib
import gc
import importlib
import os
import signal
import sys
from pathlib import Path

# The server finds modules in the working directory first, where a user's package may
# have the name of ours.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sluice.compat import child_environment
from sluice.process_tree import die_with, name_process

_MODULES = (
    "tfx.components",
    "tfx.dsl.compiler.compiler",
    "tfx.orchestration.local.runner_utils",
    "tfx.orchestration.portable.launcher",
    "runners.local.node_job",
    "runners.local.prepare",
)


def _preload(components: bool) -> None:
    die_with(os.getppid())
    name_process("sluice-server")
    # The terminal's Ctrl-C and hang-up are for the runner.
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    # Beam parses sys.argv.
    sys.argv = sys.argv[:1]
    for name, value in child_environment().items():
        os.environ.setdefault(name, value)
    with contextlib.suppress(Exception):
        for module in _MODULES:
            importlib.import_module(module)
        if components:
            from pipeline.graph.node_registry import modules_to_preload

            for module in ("runners.cli.main", *modules_to_preload()):
                importlib.import_module(module)
    gc.collect()
    gc.freeze()


if what := os.environ.pop("SLUICE_PRELOAD", None):
    _preload(what == "components")
