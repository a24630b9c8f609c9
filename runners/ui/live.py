"""Pages that follow what they show: the server sends their content anew.

While a page is open its content is rendered again every second or so, and sent as a
server-sent event if it differs; ``static/ui.js`` replaces what has changed. So a page
has one template, live or not.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from reports.environment import TEMPLATES, environment
from reports.formats import visible
from sluice.errors import SluiceError
from sluice.record.states import Tone

EVENT_STREAM = "text/event-stream"
_EVERY_S = 1.0


@cache
def ui_environment() -> Environment:
    """Returns the environment of the pages, with the templates of the reports."""
    own = Path(__file__).parent / "templates"
    return environment().overlay(loader=FileSystemLoader([own, TEMPLATES]))


@dataclass(frozen=True)
class View:
    """The content of a page.

    Attributes:
      title: of the page.
      tab: title of the browser's tab; by default, where the page is.
      tone: of the tab's icon.
      template: of the content.
      values: of the template.
      trail: name and address of the pages above it.
      is_live: whether it may change while it is open.
    """

    title: str
    template: str
    values: dict[str, Any] = field(default_factory=dict)
    trail: tuple[tuple[str, str], ...] = ()
    is_live: bool = False
    tab: str | None = None
    tone: Tone = "quiet"

    def draw(self) -> dict[str, Markup | str]:
        """Returns what may change of a page: title and icon of its tab, its content."""
        environment = ui_environment()
        content = environment.get_template(self.template).render(self.values)
        favicon = environment.globals["ui"].favicon  # type: ignore[attr-defined]
        place = " · ".join([self.title, *(name for name, _ in self.trail[::-1])])
        return {
            "title": visible(self.tab or place),
            "icon": favicon(self.tone),
            "content": Markup(content),
        }


async def stream(
    make_view: Callable[[], View], is_stopping: Callable[[], bool]
) -> AsyncIterator[str]:
    """Yields the content of a page as events, until it cannot change any more.

    Args:
      make_view: returns the content as it is now; called in a thread.
      is_stopping: whether the server is about to end.
    """
    sent = None
    while not is_stopping():
        begun = time.monotonic()
        try:
            view = await run_in_threadpool(make_view)
            drawn = await run_in_threadpool(view.draw)
        except (SluiceError, HTTPException) as error:
            # Such as a run that was deleted meanwhile.
            yield _event("gone", str(error))
            return
        # A tunnel may close a connection without traffic.
        yield _event("content", drawn) if drawn != sent else ": the same\n\n"
        sent = drawn
        if not view.is_live:
            yield _event("end", "")
            return
        # A list of many runs may use a tenth of a core.
        await asyncio.sleep(max(_EVERY_S, 10 * (time.monotonic() - begun)))


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
