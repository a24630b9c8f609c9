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
from runners.operations import print_schedule
from runners.operations.print_schedule import on_calendar
from sluice.errors import UsageError
from sluice.project import own_root

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
    dag = print_schedule._airflow(config, ["sluice"], "0 3 * * *", "UTC")
    assert "run('--to', 'AcceptData', '--to', 'RetrainGate')" in dag


HARD = "a %n $HOME \\d 'q' \"r\" é"


@pytest.fixture
def config(tmp_path):
    root = tmp_path / HARD
    (root / "configs").mkdir(parents=True)
    (root / "configs" / "trips.yaml").write_text(
        (own_root() / "configs" / "digits.yaml").read_text()
    )
    (root / "schemas").symlink_to(own_root() / "schemas")
    return load_config("trips", cwd=root)


def _as_cron(line: str) -> str:
    """Returns what cron gives to the shell: crontab(5), "The sixth field"."""
    command = line.split(None, 5)[5]
    return re.sub(r"\\%", "\0", command.rstrip()).replace("%", "\n").replace("\0", "%")


def test_cron_starts_the_command_in_its_folder(config, tmp_path):
    words = ["/bin/echo", HARD, "$HOME", "100%"]
    comment, line = print_schedule._cron(config, words, "0 3 * * *", "UTC").splitlines()
    assert comment.startswith("# ") and "must be UTC" in comment
    subprocess.run(["/bin/sh", "-c", _as_cron(line)], check=True)
    log = config.root / "workspace" / f"retrain-{config.name}.log"
    assert log.read_text() == f"{HARD} $HOME 100%\n"


def test_the_line_has_the_config_and_the_workspace(sluice, tmp_path, monkeypatch):
    """Found: each night another workspace was trained, or a path was not found."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(own_root() / "configs")
    asked = ("schedule", "print", "digits.yaml", "--as", "cron", "--cron", "0 3 * * *")
    code, out, err = sluice(*asked)
    assert code == 0, err
    assert f" {own_root()}/configs/digits.yaml " in out
    assert f"--workspace {tmp_path}" in out


def _as_systemd(text: str) -> list[str]:
    """Returns the words that systemd runs: "Quoting" in systemd.syntax(7)."""
    (line,) = re.findall("^ExecStart=(.*)$", text, re.M)
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    plain = [re.sub(r"\\(.)", r"\1", word).replace("%%", "%") for word in words]
    assert line.startswith("/usr/bin/env ")
    return [word.replace("$$", "$") for word in plain]


def test_systemd_starts_the_command(config, tmp_path):
    program = config.root / "echo"
    program.symlink_to("/bin/echo")
    words = [str(program), HARD, "$HOME", "100%"]
    text = print_schedule._systemd(config, words, "0 3 * * *", "UTC")
    assert _as_systemd(text) == words
    _, *parts = re.split(r"^# \S+/(sluice-\S+)\n", text, flags=re.M)
    for name, content in zip(parts[::2], parts[1::2], strict=True):
        (tmp_path / name).write_text(content)
    service, timer = (tmp_path / name for name in parts[::2])
    assert service.name == f"sluice-{config.name}.service"
    assert service.read_text().startswith("[Unit]") and "OnCal" in timer.read_text()
    if shutil.which("systemd-analyze"):
        command = ["systemd-analyze", "verify", "--man=no", str(service), str(timer)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert "sluice" not in done.stderr, done.stderr
