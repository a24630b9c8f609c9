"""Schedules for other programs: each starts at the times that cron's fields name."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import datetime, timezone
from itertools import islice

import pytest
from cronsim import CronSim

from pipeline.config.load import load_config
from runners.cli.print_schedule import _airflow, on_calendar
from sluice.errors import UsageError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "cron",
    ["0 3 * * *", "*/20 1-3 * * 1-5", "30 6 1,15 * *", "5 0 * 2,8 7", "0 12 * * 0,6"],
)
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_starts_when_cron_does(cron):
    command = ["systemd-analyze", "calendar", "--iterations=20"]
    command += ["--base-time=2026-11-27 00:00:00 UTC", on_calendar(cron, "UTC")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    times = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", said)
    begin = datetime(2026, 11, 27, tzinfo=timezone.utc)
    expected = [f"{x:%Y-%m-%d %H:%M:%S}" for x in islice(CronSim(cron, begin), 20)]
    assert list(dict.fromkeys(times))[-20:] == expected


@pytest.mark.parametrize("cron", ["0 3 1 * 1", "0 3 L * *", "0 3 * * 1#2"])
def test_what_systemd_has_no_expression_for(cron):
    with pytest.raises(UsageError, match="no expression for these days"):
        on_calendar(cron, "UTC")


def test_airflow_accepts_data_also_without_a_reason_to_train():
    config = load_config("digits", overrides=["retrain.min_new_examples=1"])
    dag = _airflow(config, ["sluice"], "0 3 * * *", "UTC")
    assert "run('--to', 'AcceptData', '--to', 'RetrainGate')" in dag
