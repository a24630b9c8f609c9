"""Shows things to somebody who may have gone: a closed pipe or terminal ends no run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rich.console import Console


def ignore_broken_pipe(
    console: Console, show: Callable[..., Any], *arguments: Any
) -> None:
    """Calls ``show``; where nobody reads any more, all further output is dropped.

    Args:
      console: what ``show`` writes to.
      show: draws or prints.
      *arguments: of ``show``.
    """
    try:
        show(*arguments)
    except (OSError, SystemExit):
        # rich turns a broken pipe into the end of the program.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2 if console.stderr else 1)
        os.close(nowhere)
