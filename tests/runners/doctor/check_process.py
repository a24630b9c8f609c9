"""Runs one check of ``sluice doctor`` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from runners.doctor.check import Check
from sluice.project import own_root


def in_a_process(
    code: str, *, python: str = sys.executable, prepare: str = "", **env: str
) -> Check:
    """Runs code that ends with a check as its last line, in a process of its own."""
    *before, call = code.splitlines()
    lines = [
        *before,
        "import json, dataclasses",
        prepare,
        f"print(json.dumps(dataclasses.asdict({call})))",
    ]
    done = subprocess.run(
        [python, "-c", "\n".join(lines)],
        cwd=own_root(),
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return Check(**json.loads(done.stdout))


def import_of(function: str, module: str, call: str = "") -> str:
    return f"from runners.doctor.{module} import {function}\n{call or function + '()'}"
