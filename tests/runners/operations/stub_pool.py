"""Stub of a process pool, for runs whose nodes do nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from runners.local.job_result import write_result


class Stubs:
    """A process pool whose nodes record their start and can be held.

    Attributes:
      root: a file ``<node>.hold`` there keeps a node from ending.
      facts: what differs from a good result, by node.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.facts: dict[str, dict[str, Any]] = {}
        self._running: dict[str, Path] = {}
        self._killed: list[str] = []

    def starts(self) -> list[str]:
        """Returns the nodes that were started, by whatever process, in order."""
        path = self.root / "starts"
        return path.read_text().split() if path.exists() else []

    def hold(self, node: str) -> Path:
        path = self.root / f"{node}.hold"
        path.touch()
        return path

    def start(self, name: str, job: Any) -> None:
        self._running[name] = Path(job.arguments["run_dir"])
        with (self.root / "starts").open("a") as file:
            file.write(f"{name}\n")

    def pid_of(self, name: str) -> None: ...

    def signal(self, name: str, number: int) -> None:
        self._killed.append(name)

    def messages(self, timeout_s: float) -> list[dict[str, Any]]:
        ended = []
        for name, run_dir in list(self._running.items()):
            if name not in self._killed:
                if (self.root / f"{name}.hold").exists():
                    continue
                result = {"node": name, "state": "ran", "duration_s": 0.1}
                result |= dict.fromkeys(("reason", "error"))
                result |= {"outputs": {}, "inputs": {}, "execution_id": 1}
                write_result(run_dir, name, result | self.facts.get(name, {}))
            del self._running[name]
            ended.append({"ended": name, "status": 0, "peak_memory_bytes": 1})
        if not ended:
            time.sleep(0.01)
        return ended
