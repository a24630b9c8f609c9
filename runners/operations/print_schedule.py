"""Operation: a schedule for cron, systemd or Airflow, as text."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from string import Template

from pipeline.config.cloud import Schedule
from pipeline.config.config import Config
from sluice.errors import UsageError
from sluice.node_kinds import RETRAIN_GATE

_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


def schedule_of(config: Config) -> Schedule:
    """Returns when runs start.

    Raises:
      UsageError: the config does not say.
    """
    if config.cloud is None or config.cloud.schedule is None:
        raise UsageError(
            "neither the command nor the config says when runs start",
            where="cloud.schedule.cron",
            hint="--cron '0 3 * * *', for three o'clock every night",
        )
    return config.cloud.schedule


def schedule_text(config: Config, form: str, retrain: Sequence[str]) -> str:
    """Returns the schedule of a config as text.

    Args:
      config: with ``cloud.schedule``.
      form: ``cron``, ``systemd`` or ``airflow``.
      retrain: the words of ``sluice retrain`` after the program.

    Raises:
      UsageError: the config does not say when runs start, or systemd cannot.
    """
    wanted = schedule_of(config)
    program = Path(sys.executable).with_name("sluice")  # Of this environment.
    command = [str(program), *retrain]
    return _FORMS[form](config, command, wanted.cron, wanted.timezone)


def _cron(config: Config, command: list[str], cron: str, timezone: str) -> str:
    place, log = shlex.quote(str(config.root)), f"workspace/retrain-{config.name}.log"
    line = f"cd {place} && mkdir -p workspace && {shlex.join(command)} >> {log} 2>&1"
    # cron ends a command at a plain %.
    line = line.replace("%", r"\%")
    return (
        f"# In the time zone of the machine, which must be {timezone}.\n{cron} {line}\n"
    )


def _systemd(config: Config, command: list[str], cron: str, timezone: str) -> str:
    # systemd itself starts no program with a quote or backslash in its path.
    words = ("/usr/bin/env", *map(_quoted, command))
    return filled_in(
        "systemd_units.txt",
        name=config.name,
        root=str(config.root).replace("%", "%%"),
        line=" ".join(words),
        calendar=on_calendar(cron, timezone),
    )


def _quoted(word: str) -> str:
    """Returns a word of ExecStart. Source: man systemd.syntax and systemd.unit."""
    escaped = re.sub(r'(["\\])', r"\\\1", word)
    doubled = re.sub("([%$])", r"\1\1", escaped)
    return f'"{doubled}"'


def on_calendar(cron: str, timezone: str) -> str:
    """Returns five fields of cron as a calendar expression of systemd.

    Raises:
      UsageError: systemd has no expression for it.
    """
    from cronsim import CronSim

    parsed = CronSim(cron, datetime.now())
    # The second Monday is a pair of numbers, the last day of a month a negative one.
    numbers = [day for day in parsed.weekdays if isinstance(day, int)]
    is_special = min(parsed.days) < 1 or len(numbers) < len(parsed.weekdays)
    # Sunday is 0 and 7.
    weekdays = {day % 7 for day in numbers}
    every_day = len(parsed.days) == 31
    if is_special or not (every_day or len(weekdays) == 7):
        raise UsageError(
            "systemd has no expression for these days",
            where=cron,
            expected="days of the month or of the week, the other field *",
            hint="--as cron",
        )
    days = _listed(parsed.days, 31)
    named = [_WEEKDAYS[day] for day in sorted(weekdays)]
    prefix = f"{','.join(named)} " if len(named) < 7 else ""
    months = _listed(parsed.months, 12)
    hours, minutes = _listed(parsed.hours, 24), _listed(parsed.minutes, 60)
    return f"{prefix}*-{months}-{days} {hours}:{minutes}:00 {timezone}"


def _listed(values: set[int], count: int) -> str:
    everything = len(values) == count
    return "*" if everything else ",".join(f"{value:02}" for value in sorted(values))


def _airflow(config: Config, command: list[str], cron: str, timezone: str) -> str:
    # As without Airflow, data is accepted also where there is no reason to train.
    last = ("AcceptData", RETRAIN_GATE) if config.retrain else ("DataGate",)
    decide = [word for node in last for word in ("--to", node)]
    now = datetime.now()
    return filled_in(
        "airflow_dag.txt",
        name=config.name,
        dag_id=repr(f"sluice_{config.name}"),
        project=repr(str(config.root)),
        command=repr(command),
        decide=", ".join(map(repr, decide)),
        schedule=repr(cron),
        timezone=repr(timezone),
        start=f"{now.year}, {now.month}, {now.day}",
    )


def filled_in(template: str, **values: object) -> str:
    """Returns a text of this folder with values for its ``$NAME``."""
    text = Path(__file__).with_name(template).read_text(encoding="utf-8")
    return Template(text).substitute(values)


_FORMS: dict[str, Callable[[Config, list[str], str, str], str]] = {
    "cron": _cron,
    "systemd": _systemd,
    "airflow": _airflow,
}
