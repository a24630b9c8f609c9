"""Cron expressions of schedules."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from runners.cloud.cron import Cron
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit

_AFTER = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)


def _next(expression: str, zone: str = "UTC", count: int = 5) -> list[str]:
    times = Cron(expression, zone).next_times(_AFTER, count)
    return [time.isoformat() for time in times]


def test_the_next_times_are_in_the_timezone_of_the_schedule() -> None:
    assert _next("0 3 * * *", "Europe/Berlin", 2) == [
        "2026-11-23T03:00:00+01:00",
        "2026-11-24T03:00:00+01:00",
    ]
    assert _next("*/30 * * * *", count=2) == [
        "2026-11-22T12:30:00+00:00",
        "2026-11-22T13:00:00+00:00",
    ]


def test_the_offset_changes_with_the_clocks() -> None:
    before = datetime(2026, 10, 24, 12, tzinfo=timezone.utc)
    times = Cron("0 3 * * *", "Europe/Berlin").next_times(before, 2)
    assert [time.isoformat() for time in times] == [
        "2026-10-25T03:00:00+01:00",
        "2026-10-26T03:00:00+01:00",
    ]
    summer = Cron("0 3 * * *", "Europe/Berlin").next_times(
        datetime(2026, 7, 1, tzinfo=timezone.utc), 1
    )
    assert summer[0].isoformat() == "2026-07-01T03:00:00+02:00"


def test_names_of_months_and_days_are_understood() -> None:
    assert _next("0 6 * JAN mon-FRI", count=1) == ["2027-01-01T06:00:00+00:00"]


def test_a_day_of_the_month_or_a_weekday_is_enough() -> None:
    assert _next("0 0 1 * 1", count=2) == [
        "2026-11-23T00:00:00+00:00",
        "2026-11-30T00:00:00+00:00",
    ]


def test_blanks_do_not_matter() -> None:
    assert Cron(" 0  3 * * * ") == Cron("0 3 * * *")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("0 3 * *", "4 fields"),
        ("0 0 3 * * *", "6 fields"),
        ("@daily", "1 fields"),
        ("60 3 * * *", "60 3"),
        ("0 3 L * *", "'L', which not every service understands"),
        ("0 3 * * 1#2", "'1#2', which not every service understands"),
        ("0 3 * * 7", "weekday 7"),
        ("0 3 31 2 *", "31 2"),
        ("x 3 * * *", "'x'"),
    ],
)
def test_what_a_service_would_refuse_or_take_otherwise_is_an_error(
    expression: str, found: str
) -> None:
    with pytest.raises(ConfigError, match="cron expression is wrong") as raised:
        Cron(expression)
    assert found in str(raised.value.actual)


@pytest.mark.parametrize("zone", ["Europe/Berln", "../etc/passwd", ""])
def test_an_unknown_timezone_is_an_error(zone: str) -> None:
    with pytest.raises(ConfigError, match="there is no timezone") as raised:
        Cron("0 3 * * *", zone)
    if zone.startswith("Europe"):
        assert raised.value.hint == "did you mean 'Europe/Berlin'?"
