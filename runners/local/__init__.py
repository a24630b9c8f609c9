"""Runs a pipeline on this machine, each node in its own process.

``scheduler`` starts the nodes in order and never imports TFX. ``processes`` holds the
process pool: a zygote that has imported TFX, and the clean-up of processes.
``prepare_job`` compiles the graph and ``node_job`` runs one node, both in children of
the zygote. ``LocalRunner`` runs any TFX pipeline this way::

    from runners.local import LocalRunner
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runners.local.local_runner import LocalRunner

__all__ = ["LocalRunner"]


def __getattr__(name: str) -> Any:
    """Imports the runner, and with it TFX, on first use."""
    if name == "LocalRunner":
        from runners.local.local_runner import LocalRunner

        return LocalRunner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
