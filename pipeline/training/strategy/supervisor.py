"""Supervises the processes of one training on this machine.

Workers that average their gradients cannot go on without each other: when one is lost,
all are restarted and resume from the last checkpoint. Workers of parameter servers can:
a lost one is replaced. A process that does not progress is killed with SIGKILL: others
may wait for it without end, and TensorFlow ignores SIGTERM while it waits.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from pipeline.training.strategy.task_process import Task, TaskProcess
from sluice import interrupt, progress
from sluice.compat import tensorflow_has_started
from sluice.errors import NodeError

# Maximum time in which a checkpoint is written after a request to stop.
STOP_S = 60.0
# Maximum time in which the other workers of one that failed tell why.
FAILED_S = 5.0
_POLL_S = 0.2


@dataclass(frozen=True)
class ProcessSettings:
    """Processes of a training, and how often they are restarted.

    If there are parameter servers, a coordinator is started too.
    """

    workers: int
    parameter_servers: int = 0
    max_restarts: int = 3
    stalled_after_s: float = 600.0

    @classmethod
    def from_config(cls, train: Mapping[str, Any]) -> ProcessSettings | None:
        """Reads the section ``train`` of the config; None: it asks for no processes."""
        if train["processes"] is None:
            return None
        return cls(
            workers=train["processes"],
            parameter_servers=train["parameter_servers"] or 0,
            max_restarts=train["max_restarts"],
            stalled_after_s=train["stalled_after_s"],
        )

    @property
    def tasks(self) -> list[Task]:
        """Returns the tasks of the cluster, the chief first."""
        workers = [Task("worker", index) for index in range(self.workers)]
        servers = [Task("ps", index) for index in range(self.parameter_servers)]
        return [Task("chief", 0), *workers, *servers] if servers else workers


def supervise(train: Callable[[], None], settings: ProcessSettings) -> None:
    """Runs a training in several processes to its end.

    Each process has its own ``TF_CONFIG`` and folder for temporary files. Their output
    goes to this process' standard error, each line with the name of its process. Only
    the chief reports progress.

    Args:
      train: called in each process; must call ``beat``. In the processes of parameter
        servers and their workers it serves without end.
      settings: the processes.

    Raises:
      Interrupted: a stop was requested, of this process or of one that trains.
      NodeError: processes were lost too often, or TensorFlow has been started in this
        process.
      Exception: the training raised it.
    """
    if tensorflow_has_started():
        # Its threads would be missing in a fork, which then waits for them.
        raise NodeError(
            "the training cannot start processes: TensorFlow is already in use in the "
            "node's process",
            hint="do not call TensorFlow while a module of yours is imported",
        )
    supervisor = _Supervisor(train, settings)
    with interrupt.cooperative():
        while not supervisor.run():
            pass


class _Supervisor:
    def __init__(self, train: Callable[[], None], settings: ProcessSettings) -> None:
        self._train = train
        self._settings = settings
        self._losses: list[str] = []
        self._running: list[TaskProcess] = []

    def run(self) -> bool:
        """Runs all processes; returns whether they need not be started again."""
        tasks = self._settings.tasks
        configs = _tf_configs(tasks)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:

            def start(task: Task) -> None:
                own_folder = tempfile.mkdtemp(dir=folder)
                process = TaskProcess(task, self._train, configs[task], own_folder)
                self._running.append(process)

            try:
                for task in tasks:
                    start(task)
                while self._is_unfinished():
                    self._poll()
                    lost = [item for item in self._running if item.state == "lost"]
                    if not lost:
                        continue
                    if not self._can_go_on_without(lost):
                        self._count(lost, "all processes restart")
                        return False
                    replace = len(self._losses) < self._settings.max_restarts
                    if replace:
                        self._count(lost, "its process restarts")
                    else:
                        progress.note(
                            f"{_ends(lost)}; training goes on without",
                            event="restarted",
                        )
                    for item in lost:
                        self._running.remove(item)
                        item.close()
                        if replace:
                            start(item.task)
                if any(item.state == "stopped" for item in self._leaders):
                    # By a signal of its own: the training has no result.
                    raise interrupt.Interrupted
            finally:
                for item in self._running:
                    item.kill()
                while self._running:
                    self._running.pop().close()
        return True

    @property
    def _leaders(self) -> list[TaskProcess]:
        """The processes in which the training ends: the coordinator, or all."""
        chiefs = [item for item in self._running if item.task.type == "chief"]
        return chiefs or self._running

    def _is_unfinished(self) -> bool:
        return any(item.state not in ("done", "stopped") for item in self._leaders)

    def _poll(self) -> None:
        """Waits for something to happen.

        Raises:
          Interrupted: a stop was requested.
          Exception: the training raised it.
        """
        self._wait()
        for item in self._running:
            item.kill_if_stalled(self._settings.stalled_after_s)
        if any(item.state == "failed" for item in self._running):
            raise self._error()
        if interrupt.requested():
            self._stop()

    def _error(self) -> BaseException:
        """Returns the error of a process that failed; of several, the most explicit.

        Workers often fail together, and the others wait for one that failed.
        """
        deadline = time.monotonic() + FAILED_S
        while time.monotonic() < deadline and any(
            item.state == "running" for item in self._leaders
        ):
            self._wait()
        failed = [item for item in self._running if item.state == "failed"]
        errors = [item.error for item in failed if item.error is not None]
        return max(errors, key=lambda error: len(getattr(error, "examples", ())))

    def _stop(self) -> None:
        """Waits for the leaders' checkpoint if they are fitting; raises Interrupted."""
        if all(item.fitting for item in self._leaders):
            for item in self._leaders:
                item.stop()
            deadline = time.monotonic() + STOP_S
            while self._is_unfinished() and time.monotonic() < deadline:
                self._wait()
                if any(item.state in ("lost", "failed") for item in self._leaders):
                    break
        interrupt.check()

    def _wait(self) -> None:
        wait([one for item in self._running for one in item.waitables], _POLL_S)
        for item in self._running:
            item.poll()

    def _can_go_on_without(self, lost: list[TaskProcess]) -> bool:
        """Whether the coordinator and enough of the others are left."""
        if self._leaders == self._running:
            return False
        if any(item.task.type != "worker" for item in lost):
            return False
        return self._settings.max_restarts > len(self._losses) or any(
            item.task.type == "worker" and item.state == "running"
            for item in self._running
        )

    def _count(self, lost: list[TaskProcess], consequence: str) -> None:
        """Counts and notes a restart.

        Raises:
          NodeError: it is one too many.
        """
        self._losses.append(_ends(lost))
        number, maximum = len(self._losses), self._settings.max_restarts
        if number > maximum:
            restarts = "1 restart" if maximum == 1 else f"{maximum} restarts"
            given_up = f"given up after {restarts} of its processes"
            raise NodeError(
                f"the training was {given_up if maximum else 'not restarted'}",
                where=lost[0].task.name,
                actual=self._losses[-1],
                examples=[f"before: {loss}" for loss in self._losses[:-1]],
                hint="read the node's log, in which each line names its process",
            )
        line = f"{self._losses[-1]}; restart {number} of {maximum}: {consequence}"
        progress.note(line, event="restarted")


def _ends(lost: list[TaskProcess]) -> str:
    return ", ".join(f"{item.task.name} {item.end}" for item in lost)


def _tf_configs(tasks: list[Task]) -> dict[Task, str]:
    """Returns each task's ``TF_CONFIG``, with free ports of this machine."""
    cluster: dict[str, list[str]] = {}
    with ExitStack() as stack:
        # All are open at once, so that no port is given twice.
        for task in tasks:
            probe = stack.enter_context(socket.socket())
            probe.bind(("localhost", 0))
            address = f"localhost:{probe.getsockname()[1]}"
            cluster.setdefault(task.type, []).append(address)
    return {
        task: json.dumps(
            {"cluster": cluster, "task": {"type": task.type, "index": task.index}}
        )
        for task in tasks
    }
