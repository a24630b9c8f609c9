"""A Slurm of two nodes on this machine: Debian's slurmctld, slurmd and munge."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from tests.kit.wait import wait_for

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"))
_NODES = ("n1", "n2")
PACKAGES = "apt-get install slurmctld slurmd slurm-client munge"


def missing_programs() -> list[str]:
    """Returns what is not installed."""
    return [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]


class Slurm:
    """The daemons, as long as they run; every path is in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": _PATH,
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        self._daemons: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Starts the daemons and waits until both nodes are idle."""
        key, munge = self.folder / "key", self.folder / "munge.socket"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)
        probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        control, *ports = [probe.getsockname()[1] for probe in probes]
        for probe in probes:
            probe.close()
        host, folder = socket.gethostname(), self.folder
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={control}",
            f"SlurmUser={getpass.getuser()}",
            f"SlurmdUser={getpass.getuser()}",
            f"AuthInfo=socket={munge}",
            f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"StateSaveLocation={folder}/state",
            f"SlurmdPidFile={folder}/%n.pid",
            f"SlurmdSpoolDir={folder}/%n",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "SlurmdParameters=config_overrides",
            "PartitionName=all Nodes=ALL Default=YES",
        ]
        for name, port in zip(_NODES, ports, strict=True):
            (folder / name).mkdir()
            place = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
            lines.append(f"NodeName={name} {place}")
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        options = [f"--key-file={key}", f"--socket={munge}"]
        for name in ("pid", "seed"):
            options.append(f"--{name}-file={folder}/munge.{name}")
        self._daemon("munged", "--foreground", "--force", *options)
        wait_for(munge.exists, "munged")
        self._daemon("slurmctld", "-D")
        for name in _NODES:
            self._daemon("slurmd", "-D", "-N", name)
        wait_for(lambda: self.run("sinfo", "-h", "-o", "%D %t") == "2 idle", "Slurm")

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.log").open("ab") as log:
            started = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log
            )
        self._daemons.append(started)

    def run(self, *command: str) -> str:
        """Returns what a command of Slurm prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()

    def kill_task(self, number: int) -> None:
        """Kills all processes of a task, as the loss of its node does."""
        self._kill(SLURM_PROCID=str(number), SLURM_STEP_NUM_TASKS="2")

    def stop(self) -> None:
        """Ends the jobs, then the daemons."""
        self.run("scancel", "--user", getpass.getuser())
        self._kill()
        for daemon in reversed(self._daemons):
            daemon.terminate()
            daemon.wait(30)

    def _kill(self, **variables: str) -> None:
        """Kills the processes of jobs that have these variables."""
        wanted = {"SLURM_CONF": self.environment["SLURM_CONF"], **variables}
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                environment = process.environ()
                if "SLURM_JOB_ID" in environment and (
                    wanted.items() <= environment.items()
                ):
                    process.kill()
