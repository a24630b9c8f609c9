"""What became of a run, why, and what to do next.

All of it comes from the record alone; the page, the local server and the terminal say
the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sluice.errors import bounded
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_TONES, Tone
from sluice.record.verdict import Check, Verdict, cell

_MAX_WORSE = 2
# What a dry run has decided, by its status.
_DECIDED = {"succeeded": "would train", "skipped": "no reason to train"}
# What is to be done, and the command for it if there is one.
Step = tuple[str, str | None]
# How the line of an error's place begins; see ``SluiceError``.
_WHERE = "  where:"


def outcome(record: RunRecord) -> str:
    """Returns the verdict on a run in a few words, such as ``pushed``."""
    if record.options.trial:
        return f"trial: {_outcome(record)}"
    return _outcome(record)


def _outcome(record: RunRecord) -> str:
    if record.options.dry_run and record.status in _DECIDED:
        return f"dry run: {_DECIDED[record.status]}"
    states = [push.state for push in record.pushes]
    if record.status == "blocked":
        failed = [verdict.gate for verdict in record.gates if not verdict.passed]
        return f"blocked ({failed[0]} gate)" if failed else "blocked"
    if record.status not in ("succeeded", "up_to_date"):
        return record.status
    if record.options.trial and any(x.gate == "model" for x in record.gates):
        return "passed"
    if "pushed" in states:
        return "pushed"
    if record.status == "up_to_date":
        return "up to date"
    return "already served" if "already_served" in states else "not pushed"


def version(record: RunRecord) -> int | None:
    """Returns the version under which the run's model is served."""
    versions = (push.version for push in record.pushes if push.version is not None)
    return next(versions, None)


def duration_s(record: RunRecord, now: datetime | None = None) -> float | None:
    """Returns the wall time from start to end, without the pauses before resumes.

    Args:
      record: of the run.
      now: the end of a run in progress.

    Returns:
      None for a run without an end, such as one that was killed.
    """
    try:
        if record.status == "running" and now is not None:
            ended = now
        else:
            ended = datetime.fromisoformat(record.ended_at or "")
        begun = datetime.fromisoformat(record.started_at)
        return max(0.0, (ended - begun).total_seconds() - record.paused_s)
    except (ValueError, TypeError):
        return None


def run_facts(record: RunRecord) -> dict[str, Any]:
    """Returns what tables and comparisons say of a run."""
    names = ("run_id", "pipeline", "started_at", "status", "exit_code", "tags")
    return {
        **{name: getattr(record, name) for name in names},
        "outcome": outcome(record),
        "version": version(record),
        "duration_s": duration_s(record),
    }


def summarize(
    record: RunRecord, worse: Sequence[str] = ()
) -> tuple[Tone, str, list[str]]:
    """Returns how serious the outcome of a run is, a headline, and its causes.

    Args:
      record: of the run.
      worse: metrics that are worse than the baseline's, also where a run passes.
    """
    tone, headline = _headline(record)
    if worse and record.status == "succeeded":
        tone = "warn"
        headline += f", and worse in: {', '.join(bounded(worse, _MAX_WORSE))}"
    warnings = [x for y in record.gates if y.gate == "model" for x in y.warnings]
    if warnings and record.status in ("succeeded", "up_to_date"):
        plural = "" if len(warnings) == 1 else "s"
        headline += f", with {len(warnings):,} warning{plural} about the model"
        return "warn", _of_trial(record, headline), bounded(warnings)
    return tone, _of_trial(record, headline), _causes(record)


def _of_trial(record: RunRecord, headline: str) -> str:
    if record.options.trial:
        headline = f"Trial, {headline[:1].lower()}{headline[1:]}"
    return headline


def _headline(record: RunRecord) -> tuple[Tone, str]:
    push = record.pushes[0] if record.pushes else None
    tone = RUN_TONES[record.status]
    error, failed = record.error, _failed(record)
    where = f" in {error.node}" if error and error.node else ""
    if record.status == "running":
        ended = [n for n in record.nodes if n.state not in ("running", "not_reached")]
        return tone, f"Running: {len(ended)} of {len(record.nodes)} nodes ended"
    if record.options.dry_run and record.status in _DECIDED:
        return tone, f"Dry run: {_DECIDED[record.status]}"
    if record.status == "skipped":
        return tone, "Not trained: there is no reason to"
    if record.status == "interrupted":
        stopped = [node.id for node in record.nodes if node.state == "interrupted"]
        while_ = f" while {', '.join(stopped)} ran" if stopped else ""
        return tone, f"Interrupted{while_}: nothing was pushed"
    if push and push.state == "pushed":
        text = f"Version {push.version} was pushed: {_passed(record.gates)}"
        if record.status == "failed":
            text += f", but the run failed{where}"
        is_overridden = any(verdict.override is not None for verdict in record.gates)
        return "warn" if is_overridden else tone, text
    if push and push.state == "already_served":
        what = "Nothing to do" if record.status == "up_to_date" else "The same model"
        return tone, f"{what}: version {push.version} is served already"
    if failed:
        return tone, f"Not pushed: the {failed.gate} gate stopped the run"
    if record.status == "blocked":
        return tone, f"Not pushed: the run was stopped by a gate{where}"
    if record.status == "failed":
        return tone, f"Failed{where}: nothing was pushed"
    what = "Succeeded, and no model was to be pushed"
    if record.options.trial:
        what = "Not pushed"
    return tone, f"{what}: {_passed(record.gates)}"


def _passed(verdicts: Sequence[Verdict]) -> str:
    by_hand = [item.gate for item in verdicts if item.override is not None]
    passed = [item.gate for item in verdicts if item.override is None]
    parts = [
        f"{' and '.join(names)} gate{'s' if len(names) > 1 else ''} {what}"
        for names, what in ((by_hand, "overridden by hand"), (passed, "passed"))
        if names
    ]
    return ", ".join(parts) or "the pipeline has no gates"


def _failed(record: RunRecord) -> Verdict | None:
    return next((verdict for verdict in record.gates if not verdict.passed), None)


def _causes(record: RunRecord) -> list[str]:
    """Returns why a run was stopped, also where a person has accepted that."""
    if failed := _failed(record):
        return bounded(failed.causes)
    if record.status in ("blocked", "failed") and record.error:
        what, *more = record.error.message.splitlines() or [""]
        places = (line.split(maxsplit=1)[1] for line in more if line.startswith(_WHERE))
        return ["; ".join([what.rstrip(":"), *places])]
    if record.status in ("interrupted", "running"):
        return []
    if record.status == "skipped":
        return bounded([_reason(row) for row in record.gate_rows("retrain")])
    return [
        f"{len(item.failures):,} check{'s' if len(item.failures) > 1 else ''} of the "
        f"{item.gate} gate failed, accepted by hand: {item.override}"
        for item in record.gates
        if item.override is not None
    ]


def _reason(row: Check) -> str:
    """Returns how far a reason to train is from its limit."""
    name = row.check if row.slice == "overall" else f"{row.check} of {row.slice}"
    limit = f"limit {row.limit_text}" if row.comparison else ""
    said = ", ".join(filter(None, (cell(row.actual), limit)))
    return "; ".join(filter(None, (f"{name}: {said}", row.why)))


def failed_sections(record: RunRecord) -> set[str]:
    """Returns the sections of the page that show what has failed."""
    gates = {verdict.gate for verdict in record.gates if not verdict.passed}
    return gates | ({"run"} if record.status == "failed" else set())


def next_steps(record: RunRecord) -> list[Step]:
    """Returns what to do next, what repairs a failure first."""
    if record.status == "running":
        return [
            ("Follow it in the terminal", command_for(record, "status")),
            ("Stop it; finished nodes are kept", command_for(record, "cancel")),
        ]
    if record.resume_command:
        text = "Resume the run: nodes that have finished are not run again"
        steps: list[Step] = [(text, record.resume_command)]
        if record.status == "failed":
            text = "Or, once config or code is corrected, run it again: that keeps them"
            steps.append((text, record.command))
        return steps
    failed = _failed(record)
    if failed and failed.gate == "data":
        steps = [
            (
                remedy[:1].upper() + remedy[1:],
                command_for(record, verb) if verb else None,
            )
            for remedy, verb in failed.remedies
        ]
        text = "Then run it again; nodes that have not changed come from the cache"
        return [*steps, (text, record.command)]
    if failed:
        # The same command would be stopped again.
        text = "Change the config, the data or the code, and run it with the change"
        words = shlex.split(record.command)
        pairs = zip(["", *words], words, strict=False)
        kept = [x for last, x in pairs if last != "--set" and x[:5] != "--set"]
        steps = [(text, shlex.join([*kept, "--set", "KEY=VALUE"]))]
        if any(row.baseline is not None for row in failed.failures):
            text = "See what else differs from the last run that pushed a model"
            compared = command_for(record, "diff", "last-pushed", record.run_id)
            steps.insert(0, (text, compared))
        if failed.gate == "serving":
            text = "Check it again, if the machine was busy: the result is cached"
            steps.append((text, f"{record.command} --force ServingCheck"))
        return steps
    if record.status in ("blocked", "failed"):
        text = "Change the config, the data or the code, then run it again: nodes that "
        return [(text + "have not changed come from the cache", record.command)]
    if outcome(record) == "trial: passed":
        run = record.command.replace(" try ", " run ", 1).replace(" --no-push", "", 1)
        return [("Push the model: what was trained and evaluated is cached", run)]
    return []


def overrides(record: RunRecord) -> list[Step]:
    """Returns how a person can accept what a gate has stopped."""
    failed = _failed(record)
    if failed is None or record.status != "blocked":
        return []
    if failed.gate == "export":
        return [("Change the limits of export in the config, if it may pass", None)]
    if failed.gate == "serving":
        text = "Change serving_check in the config: its limits, or false for no check"
        return [(text, None)]
    if failed.gate != "data":
        return [("Change evaluate.thresholds in the config, if it may pass", None)]
    decided = dict.fromkeys(row.policy for row in failed.failures if row.policy)
    once = f"{record.command} --accept-data 'REASON'"
    steps: list[Step] = [
        ("Let the data pass once, with a reason that is recorded", once)
    ]
    if decided:
        steps.append((f"Or change the config, which says: {', '.join(decided)}", None))
    return steps


def command_for(record: RunRecord, verb: str, *arguments: str) -> str:
    """Returns a command for the same pipeline and workspace."""
    words = shlex.split(record.command)
    at = words.index("--workspace") if "--workspace" in words else len(words)
    joined = [word for word in words if word.startswith("--workspace=")]
    command = ["sluice", *verb.split(), record.pipeline, *arguments]
    return shlex.join([*command, *words[at : at + 2], *joined])
