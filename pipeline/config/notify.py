"""Config section ``notify``: who is told how a run has ended.

Many of apprise's URLs hold a password or a token, so they are written as references.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pipeline.config.problems import Problems
from sluice.config_section import Section, Text
from sluice.secrets import references

Event = Literal["blocked", "failed", "pushed", "skipped", "recovered"]


class Notify(Section):
    """Notifications of the runs that a command waits for."""

    urls: tuple[Text, ...] = ()
    """Where to send them: URLs of [apprise](https://github.com/caronc/apprise), such as
    `slack://...` or `mailtos://...`. One that contains a secret is a reference to an
    environment variable, `${env:NAME}`."""
    on: tuple[Event, ...] = ("blocked", "failed", "recovered")
    """Outcomes to send: `recovered` is the first success after a `blocked` or `failed`
    that was sent, `skipped` a run without a reason to train."""
    heartbeat: Text | None = None
    """A URL, or a reference to one, that is requested (GET) at the end of every run,
    for a service that reports missing requests. One with a query is a reference."""


def make_target(url: str) -> Any:
    """Returns apprise's object for a URL; None if it does not know such URLs."""
    import logging

    import apprise

    # Its messages may show parts of a URL.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return apprise.Apprise.instantiate(url)


def check_urls(notify: Notify, problems: Problems) -> None:
    """Adds URLs that cannot work, or contain a secret; references are not resolved."""
    by_reference = "set an environment variable to the URL, and write ${env:NAME}"
    for index, url in enumerate(notify.urls):
        if references(url):
            continue
        path, target = ("notify", "urls", index), make_target(url)
        if target is None:
            problems.add(path, "apprise knows no service with such a URL")
        elif target.url(privacy=True) != target.url():
            text = "the URL contains a secret, which would be stored with every run"
            problems.add(path, text, hint=by_reference)
    url = notify.heartbeat or "${env:NONE}"
    if not references(url) and not re.fullmatch(r"https?://[^\s@?]+", url):
        text = (
            "the heartbeat is no URL such as https://HOST/PATH; a password, or a "
            "query, which may hold a token, would be stored with every run"
        )
        problems.add(("notify", "heartbeat"), text, hint=by_reference)
