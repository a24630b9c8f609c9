"""Cron expressions of schedules: what every service accepts, and the next times.

Services extend cron in different ways: Vertex AI takes it as Unix has it, Kubeflow
Pipelines as the Go library robfig/cron. Accepted is what means the same in both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from sluice.errors import ConfigError, did_you_mean

_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_DAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
_FIELD = re.compile(rf"(\d|{_MONTHS}|{_DAYS}|[*,/-])+", re.IGNORECASE)
_FIELDS = "five fields: minute, hour, day of month, month, weekday; such as '0 3 * * *'"


@dataclass(frozen=True)
class Cron:
    """A cron expression of five fields in a timezone.

    Attributes:
      expression: such as ``0 3 * * *``.
      timezone: such as ``Europe/Berlin``.

    Raises:
      ConfigError: one of them is wrong, or the expression never fires.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", " ".join(self.expression.split()))
        zone = self._zone()
        fields = self.expression.split()
        if len(fields) != 5:
            raise self._error(f"{len(fields)} fields")
        for field in fields:
            if not _FIELD.fullmatch(field):
                raise self._error(f"{field!r}, which not every service understands")
        if "7" in re.split(r"[,/-]", fields[4]):
            raise self._error("weekday 7", "weekdays from 0 (Sunday) to 6")
        try:
            next(CronSim(self.expression, datetime.now(zone)))
        except CronSimError as error:
            raise self._error(f"{self.expression!r}: {error}") from error
        except StopIteration:
            raise self._error(f"{self.expression!r}, a date that never comes") from None

    def next_times(self, after: datetime, count: int = 5) -> list[datetime]:
        """Returns the next times in the timezone.

        Around a change of the clocks a service may differ by an hour.

        Args:
          after: with a timezone.
          count: of times.
        """
        times = CronSim(self.expression, after.astimezone(self._zone()))
        return list(islice(times, count))

    def _zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            from zoneinfo import available_timezones

            raise ConfigError(
                f"there is no timezone {self.timezone!r}",
                where="timezone of the schedule",
                expected="a name such as UTC or Europe/Berlin",
                hint=did_you_mean(self.timezone, available_timezones()),
            ) from None

    def _error(self, actual: str, expected: str = _FIELDS) -> ConfigError:
        return ConfigError(
            "the schedule's cron expression is wrong",
            where="cron of the schedule",
            expected=expected,
            actual=actual,
        )
