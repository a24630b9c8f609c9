"""What the buttons of a run do: each starts a command that could as well be typed.

A page asks first and shows the command. It runs in a process of its own, so that a run
that it starts does not end with the server. What has no operation has no button.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException

from runners.cloud.submitted_job import is_service_run
from runners.local.processes.zygote import python_command
from runners.operations.find_run import RESUMABLE, FoundRun, last_real_run
from runners.ui import tensorboard
from runners.ui.child_processes import Command

Form = Mapping[str, Sequence[str]]
# Stands for what the form will have, in the command that its page shows.
EXAMPLE: Form = {"reason": ["REASON"], "change": ["CHANGE"]}


@dataclass(frozen=True)
class Action:
    """A button of a run.

    Attributes:
      name: in the address of its page.
      label: on the button.
      text: what will happen, on the page that asks.
      is_possible: whether a run has the button.
      command: returns the command for the fields of the form.
      reason: label of the field with a reason; None without that field.
      takes_changes: whether changes of the schema are chosen.
    """

    name: str
    label: str
    text: str
    is_possible: Callable[[FoundRun], bool]
    command: Callable[[FoundRun, Form], Command]
    reason: str | None = None
    takes_changes: bool = False


def possible_actions(found: FoundRun) -> list[Action]:
    """Returns the buttons of a run."""
    return [action for action in ACTIONS if action.is_possible(found)]


def find_action(found: FoundRun, name: str) -> Action:
    """Returns a button of a run by its name.

    Raises:
      HTTPException: the run has no such button, or not any more.
    """
    for action in possible_actions(found):
        if action.name == name:
            return action
    raise HTTPException(409, "this is not possible for the run as it is now")


def config_options(found: FoundRun) -> tuple[str | None, tuple[str, ...]] | None:
    """Returns profile and overrides of a run's config; None if they are unknown."""
    try:
        stored = json.loads((found.run_dir / "config.json").read_text("utf-8"))
        profile, overrides = stored["profile"], stored["overrides"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Path(profile).stem if profile else None, tuple(overrides)


def _sluice(found: FoundRun, *words: str, arguments: Sequence[str] = ()) -> Command:
    """Returns a command of Sluice; ``arguments`` are read as such, not as options."""
    workspace = f"--workspace={found.workspace.root.parent}"
    line = [*words, workspace, *(["--", *arguments] if arguments else [])]
    return Command(python_command("runners.cli.main", *line), ["sluice", *line])


def _with_config(found: FoundRun) -> list[str]:
    """Returns the pipeline's name, and the options that load the run's config."""
    profile, overrides = config_options(found) or (None, ())
    options = [f"--profile={profile}"] if profile else []
    return [found.record.pipeline, *options, *(f"--set={item}" for item in overrides)]


def _can_resume(found: FoundRun) -> bool:
    record = found.record
    if record.status not in RESUMABLE or record.resume_command is None:
        return False
    last = last_real_run(found.workspace)
    is_last = last is not None and last.run_id == record.run_id
    return is_last and not found.workspace.is_running()


def _resume(found: FoundRun, form: Form) -> Command:
    record = found.record
    return _sluice(found, "resume", record.pipeline, f"--run={record.run_id}")


def _is_running(found: FoundRun) -> bool:
    return found.record.status == "running"


def _cancel(found: FoundRun, form: Form) -> Command:
    record = found.record
    # Several may be in progress in a service.
    which = [f"--run={record.run_id}"] if is_service_run(found.run_dir) else []
    return _sluice(found, "cancel", record.pipeline, *which)


def _is_blocked_by_data(found: FoundRun) -> bool:
    is_last = found.workspace.run_ids()[-1] == found.record.run_id
    stopped = [gate["gate"] for gate in found.record.gates if not gate["passed"]]
    return is_last and "data" in stopped and config_options(found) is not None


def _accept_data(found: FoundRun, form: Form) -> Command:
    reason = "".join(form.get("reason", ())).strip()
    if not reason:
        raise HTTPException(400, "a reason is needed: it is recorded with the run")
    return _sluice(found, "run", *_with_config(found), f"--accept-data={reason}")


def _has_anomalies(found: FoundRun) -> bool:
    has_kinds = any(row.get("kind") for row in found.record.gate_rows("data"))
    return has_kinds and config_options(found) is not None


def _accept_changes(found: FoundRun, form: Form) -> Command:
    changes = form.get("change", ())
    if not changes:
        raise HTTPException(400, "no difference was chosen")
    words = [*_with_config(found), f"--run={found.record.run_id}"]
    return _sluice(found, "schema", "accept", *words, arguments=changes)


def _tensorboard(found: FoundRun, form: Form) -> Command:
    logs = tensorboard.log_dir(found)
    if logs is None:
        raise HTTPException(409, "the run has no logs for TensorBoard")
    shown = ["tensorboard", "--logdir", str(logs)]
    return Command(tensorboard.command(logs), shown, ends_with_server=True)


ACTIONS = (
    Action(
        "resume",
        "Resume",
        "The nodes that have not finished run again, with the config of this run.",
        _can_resume,
        _resume,
    ),
    Action(
        "cancel",
        "Stop",
        "Running nodes may finish their work; asked a second time, they are killed. "
        "The run can be resumed.",
        _is_running,
        _cancel,
    ),
    Action(
        "accept-data",
        "Accept the data once",
        "A new run begins, and its data gate lets the data pass.",
        _is_blocked_by_data,
        _accept_data,
        reason="Reason, recorded with the run",
    ),
    Action(
        "accept-changes",
        "Accept into the schema",
        "The chosen differences are written into the reviewed schema, a file of the "
        "project: review and commit it, then run the pipeline again.",
        _has_anomalies,
        _accept_changes,
        takes_changes=True,
    ),
    Action(
        "tensorboard",
        "TensorBoard",
        "It ends with this server. It has no password: other users of this machine can "
        "open it too.",
        lambda found: tensorboard.log_dir(found) is not None,
        _tensorboard,
    ),
)
