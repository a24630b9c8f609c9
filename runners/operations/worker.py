"""Operation: trains as a worker of a run on another machine, and nothing else."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config.serialize import read_stored_config
from pipeline.training.strategy.choice import TF_CONFIG
from pipeline.training.strategy.cluster import HOSTS, Cluster, find_cluster
from pipeline.training.strategy.rendezvous import wait_limit_s
from runners.engine import Observer
from runners.local import processes
from runners.local.engine import training_file
from runners.local.stop_request import StopRequest
from runners.operations.find_run import (
    find_run,
    find_workspace,
    local_run_ids,
    read_record,
)
from sluice import interrupt, progress, secrets
from sluice.clock import utc_now
from sluice.compat import prepare_environment
from sluice.errors import NodeError, UsageError
from sluice.node_environment import NodeEnvironment
from sluice.project import activate
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace, next_command, private_umask

_POLL_S = 0.5


def work(
    name: str, run_id: str | None = None, *, observer: Observer | None = None
) -> dict[str, Any]:
    """Takes part in the training of a run in progress, until its end.

    Args:
      name: a config's name or path.
      run_id: the run, or the beginning of its id; None for the one in progress, or
        that begins within ``wait_limit_s()``.
      observer: told what is waited for.

    Returns:
      The ``run_id``, the ``task``, whether it has ``trained``, which a run with a
      cached model does not, and the ``exit_code``, which is not 0 after a signal.

    Raises:
      UsageError: no cluster is described, or this is its chief.
      NodeError: the chief or its run did not come in time, has failed, or is lost.
    """
    observer = observer or Observer()
    began_at, cluster = utc_now(), find_cluster()
    if cluster is None:
        raise UsageError(
            "nothing describes a cluster of several machines",
            expected=f"{TF_CONFIG}, a step of Slurm with several tasks, or {HOSTS}",
            hint=next_command("cluster", "print", name, "--as", "slurm"),
        )
    task = cluster.describe(cluster.job, cluster.index)
    if cluster.is_chief:
        what = f"this is {task}, the first task of its cluster"
        raise UsageError(what, hint=next_command("run", name))
    os.environ[TF_CONFIG] = cluster.to_json()
    workspace = find_workspace(name)
    if run_id:
        run_id = find_run(name, run_id, workspace).record.run_id
    # It imports TFX meanwhile.
    prepare_environment()
    processes.start_server(components=True)
    stop, facts = StopRequest(), {"task": task, "trained": False, "exit_code": 0}
    with stop.listen():
        try:
            awaited = _Awaited(workspace, cluster, run_id, began_at)
            run_dir = awaited.wait(observer, stop)
            if training_file(run_dir).exists():
                log = run_dir / "logs" / f"Trainer-{cluster.job}-{cluster.index}.log"
                observer.on_note(f"{task} trains in run {run_dir.name}, log: {log}")
                _train(run_dir, log, observer, stop)
                facts["trained"] = True
        except interrupt.Interrupted:
            return {**facts, "exit_code": stop.exit_code}
    return {"run_id": run_dir.name, **facts}


@dataclass
class _Awaited:
    """The run that a worker waits for.

    Attributes:
      workspace: of the pipeline.
      cluster: of the worker.
      run_id: of the run; None until one is in progress.
      began_at: when the worker began; a run that has ended earlier is another.
    """

    workspace: Workspace
    cluster: Cluster
    run_id: str | None
    began_at: str

    def wait(self, observer: Observer, stop: StopRequest) -> Path:
        """Returns the folder of the run once it trains, or has ended without.

        Raises:
          NodeError: it has not begun in time, or has failed.
          Interrupted: the worker was asked to stop.
        """
        name, limit_s = self.workspace.root.name, wait_limit_s()
        deadline, said, has_begun = time.monotonic() + limit_s, "", False
        chief = self.cluster.describe(*self.cluster.tasks[0])
        while stop.signal is None:
            record = self._record()
            if record and record.status == "running":
                self.run_id, has_begun = record.run_id, True
                run_dir = self.workspace.run_dir(self.run_id)
                if training_file(run_dir).exists():
                    return run_dir
                text = f"waiting for run {self.run_id} to train, with {chief}"
            elif record and record.exit_code == 0:
                return self.workspace.run_dir(record.run_id)
            elif has_begun or record:
                what = f"the run of {name} on {chief} has ended before its training"
                raise NodeError(what, hint=next_command("status", name))
            elif time.monotonic() < deadline:
                text = (
                    f"waiting for a run of {name} on {chief}, at most {limit_s:.0f} s"
                )
            else:
                raise NodeError(
                    f"no run of {name} began within {limit_s:.0f} s on {chief}",
                    where=self.workspace.root,
                    expected="a workspace that both machines share",
                )
            if text != said:
                observer.on_note(text)
                said = text
            time.sleep(_POLL_S)
        raise interrupt.Interrupted

    def _record(self) -> RunRecord | None:
        """Returns the record of the run; None before it begins, or is resumed."""
        run_id = self.run_id or next(local_run_ids(self.workspace), None)
        record = run_id and read_record(self.workspace, run_id)
        if not record:
            return None
        has_ended_before = (record.ended_at or "") < self.began_at
        return None if record.status != "running" and has_ended_before else record


def train(file: Path, root: Path) -> None:
    """Trains in a process of its own; see ``train_as_worker``."""
    from pipeline.training.shared_training import train_as_worker

    activate(root)
    train_as_worker(str(file))


def _train(run_dir: Path, log: Path, observer: Observer, stop: StopRequest) -> None:
    config_file, offset = run_dir / "config.json", 0
    secrets.remember(config_file.read_text(encoding="utf-8"))
    config = read_stored_config(config_file)
    with processes.temporary_folder() as folder, private_umask(config.private):
        progress_file = Path(folder) / "progress.jsonl"

        def follow() -> None:
            nonlocal offset
            lines, offset = progress.read(progress_file, offset)
            for line in lines:
                if "line" in line:
                    observer.on_note(line["line"])

        told = NodeEnvironment(progress_file=str(progress_file))
        processes.call(
            f"{__name__}:train",
            training_file(run_dir),
            config.root,
            log=log,
            around=processes.Surroundings(config.root, Path(folder), told),
            on_tick=follow,
            stopped=lambda: stop.signal is not None,
        )
