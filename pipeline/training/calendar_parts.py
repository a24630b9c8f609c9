"""Times in a TensorFlow graph: hour, weekday, month, and days since 1970.

TensorFlow has no operation for dates. The calendar is the Gregorian one, also before
its introduction, as in Python's ``datetime``. Time zones are not applied: the hour is
the one that is written, and that of seconds since 1970 is in UTC.
"""

from __future__ import annotations

import tensorflow as tf

from pipeline.config.features import ISO_TIME

# How many hours, weekdays and months there are.
SIZES = {"hour": 24, "weekday": 7, "month": 12}
_MINUTES_PER_DAY = 24 * 60
# Days from 0000-03-01, where the years of ``_month`` begin, to 1970-01-01.
_TO_1970 = 719_468
_DAYS_IN_400_YEARS = 146_097
_NOT_A_PART = -1


def calendar_parts(value: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the parts of times, each of the shape of ``value``.

    Args:
      value: seconds since 1970, int64; or strings, see ``ISO_TIME``.

    Returns:
      ``hour``, ``weekday`` (Monday is 0) and ``month`` (January is 0), int64, -1 for
      text that is no date; ``days`` since 1970, float64, NaN for such text. The time of
      a plain date is midnight. Seconds within a minute are left out.
    """
    if value.dtype == tf.string:
        minutes, is_date = _parse(value)
    else:
        minutes, is_date = value // 60, tf.ones_like(value, tf.bool)
    days = minutes // _MINUTES_PER_DAY
    parts = {
        "hour": minutes % _MINUTES_PER_DAY // 60,
        "weekday": (days + 3) % 7,  # 1970 began on a Thursday.
        "month": _month(days),
    }
    parts = {name: tf.where(is_date, x, _NOT_A_PART) for name, x in parts.items()}
    float_days = tf.cast(minutes, tf.float64) / _MINUTES_PER_DAY
    return {**parts, "days": tf.where(is_date, float_days, float("nan"))}


def _parse(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns minutes since 1970, and whether the text is a date of the calendar."""
    is_date = tf.strings.regex_full_match(text, ISO_TIME)
    text = tf.strings.join([tf.where(is_date, text, "1970-01-01"), " 00:00"])
    year, month, day, hour, minute = (
        tf.strings.to_number(tf.strings.substr(text, start, length), tf.int64)
        for start, length in ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2))
    )
    days = _days(year, month, day)
    # The 30th of February becomes a day of March.
    is_date &= _month(days) == month - 1
    return days * _MINUTES_PER_DAY + hour * 60 + minute, is_date


def _days(year: tf.Tensor, month: tf.Tensor, day: tf.Tensor) -> tf.Tensor:
    """Returns days since 1970-01-01.

    Source, also of ``_month``: howardhinnant.github.io/date_algorithms.html
    """
    year -= tf.cast(month <= 2, tf.int64)
    of_era = year % 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    leap_days = of_era // 4 - of_era // 100
    era = year // 400 * _DAYS_IN_400_YEARS
    return era + 365 * of_era + leap_days + of_year - _TO_1970


def _month(days: tf.Tensor) -> tf.Tensor:
    """Returns the month of days since 1970, January is 0."""
    day = (days + _TO_1970) % _DAYS_IN_400_YEARS
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    return ((5 * of_year + 2) // 153 + 2) % 12
