"""Zygote: a process that imports TFX once and forks a child per job.

Its arguments are ``PARENT SOCKET_FD MODE FOLDER [MODULE ...]``. Importing TFX takes 10
to 20 seconds, a fork of a process that has imported it a few milliseconds. The zygote
opens no connections, threads or devices, because these do not survive a fork. In the
mode ``spawn`` it imports nothing, and every job is a fresh interpreter.

Messages on the socket are JSON lines:

* in: ``{"start": NAME, "job": {...}, "umask": N}``,
  ``{"signal": NAME, "number": N}``, and for each run ``{"belong": N}`` with N
  descriptors: of the run's log, and others to hold open until ``{"release": true}``
* out: ``{"ready": SECONDS, "sources": {PATH: CHANGED_NS}}`` with the imported files
  that a user may edit, ``{"started": NAME, "pid": N}``, ``{"released": true}`` and
  ``{"ended": NAME, "status": N, "peak_memory_bytes": N}``,
  the status negative after a signal, as in ``subprocess``

When the other end of the socket closes, all descendants are killed, in whatever process
group, and the folder with the jobs' temporary files is deleted. ``release`` deletes
these files too: a fork ends without the exit handlers of libraries such as AutoGraph,
which leaves a module per converted function.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import sysconfig
import tempfile
import time
import warnings
from contextlib import suppress
from typing import Any

from runners.local.processes.job import Job, run_job
from sluice.process_tree import (
    adopt_orphans,
    die_with,
    kill_descendants,
    kill_group,
    name_process,
    outlive_parent,
)
from sluice.project import own_root

FORK, SPAWN = "fork", "spawn"
# ru_maxrss has the unit of the BSDs on macOS and kilobytes elsewhere.
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
_MAX_DESCRIPTORS = 8


def python_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that calls ``main`` of a Sluice module with arguments.

    Our packages are found whatever the working directory and ``sys.path`` hold, and
    everything that is imported later is found as in any other interpreter.
    """
    program = (
        f"import sys; sys.path.insert(0, {str(own_root())!r}); "
        f"from {module} import main; del sys.path[0]; main(sys.argv[1:])"
    )
    return [sys.executable, "-c", program, *arguments]


def main(arguments: list[str]) -> None:
    """Serves until the socket closes."""
    parent, descriptor, mode, folder, *modules = arguments
    die_with(int(parent))
    # The scheduler handles the terminal's Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    name_process("sluice-zygote")
    control = socket.socket(fileno=int(descriptor))
    control.set_inheritable(False)
    # Beam parses sys.argv.
    sys.argv = sys.argv[:1]
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    started, started_ns = time.monotonic(), time.time_ns()
    if mode == FORK:
        for module in modules:
            importlib.import_module(module)
        gc.collect()
        # A child's garbage collector does not touch, hence not copy, frozen objects.
        gc.freeze()
    # From now on the closed socket means that the scheduler is gone. The zygote must
    # live longer, to end its descendants.
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    outlive_parent()
    zygote = _Zygote(control, mode, folder)
    sources = _imported_sources(started_ns) if mode == FORK else {}
    zygote.say(ready=time.monotonic() - started, sources=sources)
    try:
        zygote.serve()
    finally:
        kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    sys.stderr.flush()
    # Finalizing the interpreter with TFX loaded would take a third of a second.
    os._exit(0)


def changed_ns(path: str) -> int:
    """Returns when a file last changed in any way; 0 where there is none."""
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return 0


def _imported_sources(started_ns: int) -> dict[str, int]:
    """Returns when the imported files that no package manager installed changed."""
    installed = tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    files = [getattr(module, "__file__", None) for module in sys.modules.values()]
    found = {
        path: changed_ns(path)
        for path in files
        if path and not path.startswith(installed)
    }
    # A file that changed during the import counts as outdated.
    return {path: at if at < started_ns else -1 for path, at in found.items()}


class _Zygote:
    """Serves the requests of a process pool."""

    def __init__(self, control: socket.socket, mode: str, folder: str) -> None:
        self._control = control
        self._mode = mode
        self._folder = folder
        # Files of the imports are kept for all jobs.
        self._of_imports = set(os.listdir(folder))
        self._names: dict[int, str] = {}
        self._received: list[int] = []
        self._held: list[int] = []
        # Output between two runs goes to the log of the second.
        self._output = os.dup(1)

    def say(self, **message: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._control.sendall(json.dumps(message).encode() + b"\n")

    def serve(self) -> None:
        """Reads requests and reaps children until the socket closes."""
        wake_read, wake_write = os.pipe()
        for descriptor in (wake_read, wake_write):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        pending = b""
        while True:
            ready, _, _ = select.select([self._control, wake_read], [], [])
            if wake_read in ready:
                with suppress(BlockingIOError):
                    os.read(wake_read, 4096)
                self._reap()
            if self._control in ready:
                try:
                    data, descriptors, _, _ = socket.recv_fds(
                        self._control, 1 << 16, _MAX_DESCRIPTORS
                    )
                except ConnectionResetError:
                    return
                self._received += descriptors
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))

    def _obey(self, request: dict[str, Any]) -> None:
        if "belong" in request:
            self._belong(request["belong"])
            return
        if "release" in request:
            self._release()
            return
        if "start" in request:
            job = Job(**request["job"])
            pid = self._start(request["start"], job, request["umask"])
            self._names[pid] = request["start"]
            self.say(started=request["start"], pid=pid)
            return
        for pid, name in self._names.items():
            if name != request["signal"]:
                continue
            if request["number"] == signal.SIGKILL:
                kill_group(pid)
            # A group does not exist before its leader has made it.
            with suppress(ProcessLookupError):
                os.kill(pid, request["number"])

    def _belong(self, count: int) -> None:
        """Redirects the output to the run's log and holds the other descriptors."""
        log, *self._held = self._received[:count]
        del self._received[:count]
        sys.stdout.flush()
        sys.stderr.flush()
        copy_output(self._output, log)
        os.ftruncate(self._output, 0)
        os.lseek(self._output, 0, os.SEEK_SET)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        for descriptor in self._held:
            os.set_inheritable(descriptor, True)

    def _release(self) -> None:
        """Reverses ``_belong`` and deletes the temporary files of the jobs."""
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(self._output, 1)
        os.dup2(self._output, 2)
        while self._held:
            os.close(self._held.pop())
        self._remove_temporary_files()
        self.say(released=True)

    def _remove_temporary_files(self) -> None:
        """Deletes the files of the jobs from the folder."""
        with suppress(FileNotFoundError):
            for name in set(os.listdir(self._folder)) - self._of_imports:
                path = os.path.join(self._folder, name)
                shutil.rmtree(path, ignore_errors=True)
                with suppress(OSError):
                    os.unlink(path)

    def _start(self, name: str, job: Job, umask: int) -> int:
        """Returns the pid of a new child, which leads its own session."""
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python 3.12 warns of threads: those of the math libraries, which can be
            # forked.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.setsid()
            os.umask(umask)
            die_with(parent)
            name_process(f"sluice:{name}")
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self._control.close()
            if self._mode == SPAWN:
                text = json.dumps(job.to_dict())
                command = python_command(
                    "runners.local.processes.job", str(parent), text
                )
                os.execv(sys.executable, command)
            status = run_job(job)
        finally:
            # Do not return into the parent's loop or run its exit handlers.
            os._exit(status)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                name = self._names.pop(pid, None)
                if name is None:
                    continue
                # Ends the remaining processes of the job's group.
                kill_group(pid)
                self.say(
                    ended=name,
                    status=os.waitstatus_to_exitcode(status),
                    peak_memory_bytes=usage.ru_maxrss * _MAXRSS_BYTES,
                )


def copy_output(source: int, target: int) -> None:
    """Appends the content of a file to another, regardless of their positions."""
    at = 0
    while chunk := os.pread(source, 1 << 16, at):
        os.write(target, chunk)
        at += len(chunk)
