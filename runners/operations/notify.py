"""Tells people and services how a run has ended: config section ``notify``.

There is one message for each cause, not one for each run: what was sent last is kept in
the workspace. What cannot be sent becomes a note of the run, and changes nothing else.
"""

from __future__ import annotations

import json
import multiprocessing
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import cast
from urllib.error import HTTPError

from pipeline.config.notify import Event, Notify, make_target
from sluice.errors import ConfigError, WorkspaceError
from sluice.record.outcome import next_steps, outcome, summarize
from sluice.record.run_record import RunRecord
from sluice.secrets import redact, resolve
from sluice.storage import atomic
from sluice.workspace import Workspace

# The run waits for each message, and for the heartbeat. A limit of a socket is for each
# read: a server that sends a line now and then would hold the run for ever.
TIMEOUT_S = 15
_MAX_CAUSE = 500
# The causes that were sent: of a problem that is not solved yet, and of a skipped run.
_Sent = dict[str, list[str]]


def notify(config: Notify, workspace: Workspace, record: RunRecord) -> None:
    """Sends what the config asks for at the end of a run, unless it was a part only.

    A failure becomes a note of the record, which is saved with it.
    """
    if record.options.to_nodes or record.status == "interrupted":
        return
    sent: _Sent = {}
    with suppress(OSError, ValueError):
        sent = json.loads(workspace.notified_file.read_text(encoding="utf-8"))
    event, then_sent = _decide(record, sent, config.on)
    sends: dict[str, Callable[[], None]] = {}
    for at, url in enumerate(config.urls if event else ()):
        sends[f"notify.urls[{at}]"] = partial(_send, url, str(event), record)
    places = {*sends}
    if config.heartbeat:
        sends["notify.heartbeat"] = partial(_request, config.heartbeat)
    failures = set()
    for place, send in sends.items():
        try:
            with ThreadPool(1) as pool:
                pool.apply_async(send).get(TIMEOUT_S)
        except Exception as error:
            record.note(redact(f"{place}: not sent: {_explain(error)}"))
            failures.add(place)
    # The run has its result, also on a disk that is full.
    with suppress(OSError, WorkspaceError):
        if then_sent != sent and (not event or places - failures):
            atomic.write_json(workspace.notified_file, then_sent)
        if failures:
            record.save(workspace.run_dir(record.run_id))


def _decide(
    record: RunRecord, sent: _Sent, on: Sequence[Event]
) -> tuple[Event | None, _Sent]:
    """Returns what to send, and the causes that are known once it is sent."""
    if record.status in ("succeeded", "up_to_date"):
        is_pushed = outcome(record) == "pushed"
        events: dict[Event, bool] = {
            "recovered": "problem" in sent,
            "pushed": is_pushed,
        }
        return next((x for x in events if events[x] and x in on), None), {}
    _, headline, causes = summarize(record)
    cause = [text.replace(record.run_id, "") for text in (headline, *causes)]
    key = "skipped" if record.status == "skipped" else "problem"
    if key == "skipped" and "problem" in sent:
        sent = {**sent, "problem": []}  # The same one is sent again, later.
    if record.status not in on or sent.get(key) == cause:
        return None, sent
    return cast(Event, record.status), {**sent, key: cause}


def _send(url: str, event: str, record: RunRecord) -> None:
    """Sends the message about a run to a URL."""
    import apprise

    what, (_, headline, causes) = outcome(record), summarize(record)
    title = f"recovered ({what})" if event == "recovered" else what
    lines = [headline, *(f"- {cause[:_MAX_CAUSE]}" for cause in causes), ""]
    for text, command in next_steps(record)[:1]:
        lines += [f"Next: {text}", f"  {command or ''}"]
    lines += [f"Run: {record.run_id}", f"Report: {record.report_uri or 'none'}"]
    types = {"blocked": "FAILURE", "failed": "FAILURE", "skipped": "INFO"}
    client = apprise.Apprise()
    is_sent = client.add(make_target(resolve(url))) and client.notify(
        title=f"sluice {record.pipeline}: {title}",
        body="\n".join(lines),
        notify_type=getattr(apprise.NotifyType, types.get(event, "SUCCESS")),
        body_format=apprise.NotifyFormat.TEXT,
    )
    if not is_sent:
        raise OSError("see why with: apprise -vv --body test URL")


def _request(url: str) -> None:
    address = resolve(url)
    if not address.startswith(("http://", "https://")):
        raise ConfigError("the variable's value is no URL such as https://HOST/PATH")
    urllib.request.urlopen(address).close()


def _explain(error: Exception) -> str:
    """Returns a line for a note, without what may show a part of a URL."""
    if isinstance(error, multiprocessing.TimeoutError):
        return f"no answer within {TIMEOUT_S} s"
    if isinstance(error, HTTPError):  # The server has written the rest of its text.
        return f"HTTP status {error.code}"
    is_safe = isinstance(error, ConfigError | OSError) and str(error)
    return str(error).splitlines()[0] if is_safe else type(error).__name__
