"""Jobs for process pools, imported from the working directory of a test."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SLEEP = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(300)"


def write(path, text):
    print("about to write")
    Path(path).write_text(text + os.environ.get("OF_THE_JOB", ""))


def wait(ready):
    print("about to wait")
    Path(ready).write_text(str(os.getpid()))
    time.sleep(300)


def leave_temporary_files(path):
    folder = tempfile.mkdtemp()
    Path(folder, "inside").touch()
    with tempfile.NamedTemporaryFile(delete=False) as file:
        Path(path).write_text(f"{folder} {file.name}")


def say_as_parent(text):
    """Writes where the zygote's own output goes."""
    with open(f"/proc/{os.getppid()}/fd/1", "a") as file:
        print(text, file=file)


def fail(message):
    raise ValueError(message)


def end(number):
    print("about to end")
    os.kill(os.getpid(), number)


def keep_temporary_file(ready):
    """What AutoGraph does for each function that it converts."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        Path(ready).write_text(file.name)
    subprocess.run(["mktemp"], check=True)
    time.sleep(300)


def leave(pids, new_session):
    """Leaves a process behind that ignores what can be ignored."""
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEP, pids + ".ready"],
        start_new_session=new_session,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    )
    while not Path(pids + ".ready").exists():
        time.sleep(0.01)
    Path(pids).write_text(f"{os.getpid()} {child.pid}")


def leave_and_wait(pids, new_session):
    leave(pids, new_session)
    time.sleep(300)
