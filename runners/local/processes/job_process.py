"""Runs one job in an interpreter of its own, where processes are not forked."""

from __future__ import annotations

import json
import os

from runners.local.processes.job import Job, run_job
from runners.local.processes.process_tree import die_with


def main(arguments: list[str]) -> None:
    """Runs the job given as JSON after the pid of the parent; never returns."""
    die_with(int(arguments[0]))
    os._exit(run_job(Job(**json.loads(arguments[1]))))
