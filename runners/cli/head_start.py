"""Starts the import of TFX before anything else of a run is imported or checked.

The import is most of what a small run takes, and has a core of its own meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.find_config import find_config
from runners.local.processes.nursery import Nursery
from sluice.errors import UsageError
from sluice.project import find_root


@contextmanager
def head_start(name: str) -> Iterator[Nursery | None]:
    """Starts the zygote of a run of the pipeline ``name``; ends it if none comes.

    Yields:
      None where that cannot be, for a reason that the run itself will find and say.
    """
    try:
        root = find_root(find_config(name, Path.cwd()).parent)
        nursery = Nursery(cwd=root)
    except UsageError:
        yield None
        return
    with nursery:
        yield nursery
