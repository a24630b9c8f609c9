"""Runs a pipeline on this machine, each node in a process of its own.

``scheduler`` decides which node runs when, and never imports TFX. ``processes`` has the
zygote, which has imported TFX once, and everything that keeps processes from being left
behind. ``prepare_job`` draws the graph and ``node_job`` runs one node, each in such a
process; ``cache`` says whether the node has to run at all. ``node_event`` says what a
node has done, and ``local_runner`` is all of it for a pipeline of somebody else::

    from runners.local import LocalRunner
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runners.local.local_runner import LocalRunner

__all__ = ["LocalRunner"]


def __getattr__(name: str) -> Any:
    """Imports the runner, and with it TFX, when it is asked for."""
    if name == "LocalRunner":
        from runners.local.local_runner import LocalRunner

        return LocalRunner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
