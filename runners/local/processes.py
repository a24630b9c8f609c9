"""Processes of a run, by the standard library's ``multiprocessing``.

A server that has imported TFX (``preload``) forks a process per node in milliseconds;
a script that has imported TFX forks itself. A process takes a function and its
arguments, and returns a value or raises; its output goes to a log file.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import pkgutil
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, TextIO

from sluice import interrupt, secrets
from sluice.errors import NodeError
from sluice.node_environment import NodeEnvironment
from sluice.patches import tensorflow
from sluice.patches.multiprocessing import picklable
from sluice.process_tree import describe_end, die_with, kill_group, name_process

POLL_S = 0.2
# What the server imports; see its docstring.
PRELOAD: tuple[str, ...] = ("runners.local.preload",)
# At least what a pipe holds.
_PIPE_BYTES = 1 << 20


def can_fork() -> bool:
    """Whether this process has imported TFX and may be forked.

    Threads and TensorFlow's devices do not survive a fork.
    """
    imported = "tfx.orchestration.portable.launcher" in sys.modules
    alone = threading.active_count() == 1
    return imported and alone and not tensorflow.has_started()


def start_server(*, components: bool = False) -> None:
    """Starts the server, which imports TFX; returns at once.

    Args:
      components: whether it imports our components, too: a script may have packages
        of the same names.
    """
    multiprocessing.set_forkserver_preload(list(PRELOAD))
    os.environ["SLUICE_PRELOAD"] = "components" if components else "tfx"
    # Ctrl-C must not reach the server before it ignores it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        del os.environ["SLUICE_PRELOAD"]


def wait_until_ready(on_tick: Callable[[], None], stopped: Callable[[], bool]) -> bool:
    """Waits until a process can start at once; false if the run was stopped meanwhile.

    The first process that the server starts waits for its imports.
    """
    if can_fork():
        return True
    start_server()
    probe = _context().Process(target=os.getpid, daemon=True)
    waiting = threading.Thread(target=probe.start, daemon=True)
    waiting.start()
    while waiting.is_alive():
        if stopped():
            return False
        waiting.join(POLL_S)
        on_tick()
    return True


@dataclass(frozen=True)
class Surroundings:
    """What the processes of a run share.

    Attributes:
      cwd: the working directory; modules are found there.
      temporary: the folder of temporary files.
      told: variables, in addition to this process' own.
    """

    cwd: Path
    temporary: Path
    told: NodeEnvironment = field(default_factory=NodeEnvironment)


class Child:
    """A function call in a process of its own, which leads a session.

    A generator function's values are received as it yields them.

    Attributes:
      log: the file to which its output is appended.
      pipe: where there are secrets, what it prints comes here, and ``log_output``
        redacts it: a log that is redacted afterwards has them if the run is killed.
    """

    def __init__(
        self,
        name: str,
        log: Path,
        around: Surroundings,
        function: str,
        *arguments: Any,
    ) -> None:
        """Starts the process, which imports the function ``module:name``."""
        self.log = log
        self._outcomes: list[tuple[bool, Any]] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log_start = log.stat().st_size if log.exists() else 0
        context = _context()
        self._receiver, sender = context.Pipe(duplex=False)
        self.pipe, output = None, None
        if secrets.are_known():
            self.pipe, output = context.Pipe(duplex=False)
        self._redactor = secrets.Redactor()
        umask = os.umask(0o077)
        os.umask(umask)
        variables = {**os.environ, **around.told.variables()}
        variables["TMPDIR"] = str(around.temporary)
        called = variables, function, arguments
        self._process = context.Process(
            target=_run,
            args=(sender, name, output or log, umask, around.cwd, *called),
        )
        try:
            with sender, output or nullcontext():
                self._process.start()
        except (EOFError, ConnectionError) as error:
            raise NodeError(
                "the server that starts the processes has ended",
                hint="run it again; finished nodes are kept",
            ) from error

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; receives what it has returned."""
        # Asked first: what a process sends just before its end must be received too.
        ended = self._process.exitcode is not None
        with suppress(EOFError, OSError):
            while self._receiver.poll():
                self._outcomes.append(self._receiver.recv())
        return ended

    @property
    def has_result(self) -> bool:
        """Whether ``result`` has something to return or raise."""
        return self.has_ended or bool(self._outcomes)

    def result(self, number: int = 0) -> Any:
        """Returns a value that the function has returned, or raises its exception.

        Args:
          number: of the value, from 0.

        Raises:
          NodeError: the process ended before that, such as by a signal.
        """
        if number >= len(self._outcomes):
            end = describe_end(self._process.exitcode)
            raise NodeError(end, where=self.log)
        returned, value = self._outcomes[number]
        if returned:
            return value
        raise value

    def stop(self) -> None:
        """Asks the process to stop."""
        self._process.terminate()

    def close(self) -> None:
        """Kills what is left of the process and its group."""
        assert self._process.pid is not None
        kill_group(self._process.pid)
        self._process.kill()
        self._process.join()
        self._receiver.close()
        self.log_output(is_last=True)

    def log_output(self, *, is_last: bool = False) -> None:
        """Appends to the log what has come through the pipe, if there is one."""
        if self.pipe is None:
            return
        # A process in another session may keep it open: then it has no end.
        is_ready = self.pipe.poll()
        data = os.read(self.pipe.fileno(), _PIPE_BYTES) if is_ready else b""
        is_last = is_last or not data
        # On a full disk the record cannot be written either, which is an error.
        with suppress(OSError), self.log.open("ab") as file:
            file.write(self._redactor.redact(data, is_last=is_last))
        if is_last:
            self.pipe.close()
            self.pipe = None

    def output(self) -> list[str]:
        """Returns the lines that this process has written to its log."""
        with suppress(FileNotFoundError):
            data = self.log.read_bytes()[self._log_start :]
            return data.decode(errors="replace").splitlines()
        return []

    @property
    def waits_for(self) -> list[Any]:
        """What becomes ready when the process returns a value or ends."""
        pipes = [] if self._receiver.closed else [self._receiver]
        return [*pipes, self._process.sentinel]


def wait(children: Sequence[Child]) -> None:
    """Waits until one of the processes returns a value or ends, for a short time."""
    ends = {item for child in children for item in child.waits_for}
    deadline = time.monotonic() + POLL_S
    while (left_s := deadline - time.monotonic()) > 0:
        printing = {child.pipe: child for child in children if child.pipe}
        ready = {*multiprocessing.connection.wait([*ends, *printing], left_s)}
        for pipe in ready & printing.keys():
            printing[pipe].log_output()
        if ready & ends:
            break


def temporary_folder() -> tempfile.TemporaryDirectory:
    """Returns a folder for the temporary files of a run's processes."""
    return tempfile.TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True)


def call(
    function: str,
    *arguments: Any,
    log: Path,
    around: Surroundings,
    on_tick: Callable[[], None] = lambda: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Any:
    """Calls ``module:name`` in a process that has imported TFX; returns its value.

    Raises:
      NodeError: the process ended before that.
      Interrupted: ``stopped`` returned true.
    """
    if not wait_until_ready(on_tick, stopped):
        raise interrupt.Interrupted
    child = Child(function.partition(":")[2], log, around, function, *arguments)
    try:
        while not child.has_ended:
            if stopped():
                raise interrupt.Interrupted
            wait([child])
            on_tick()
        return child.result()
    finally:
        child.close()


def _context() -> Any:
    return multiprocessing.get_context("fork" if can_fork() else "forkserver")


def _run(
    sender: multiprocessing.connection.Connection,
    name: str,
    output: Path | Any,
    umask: int,
    cwd: Path,
    environment: dict[str, str],
    function: str,
    arguments: tuple[Any, ...],
) -> None:
    """Calls the function; ends the process without exit handlers, which are slow."""
    os.setsid()
    die_with(os.getppid())
    runner = multiprocessing.parent_process()
    if runner is not None and not runner.is_alive():
        os._exit(1)
    name_process(f"sluice:{name}")
    os.umask(umask)
    with open(output, "ab") if isinstance(output, Path) else output as file:
        redirect_output(file.fileno())
    faulthandler.enable(file=2)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    # Beam parses sys.argv.
    sys.argv = sys.argv[:1]
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    try:
        found = pkgutil.resolve_name(function)(*arguments)
        for value in found if isinstance(found, Generator) else [found]:
            sender.send((True, value))
    except BaseException as error:
        os.write(2, traceback.format_exc().encode())
        sender.send((False, picklable(error)))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def redirect_output(descriptor: int) -> None:
    """Sends the descriptors 1 and 2 to a file, since native code writes to them too."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = _text_file(1), _text_file(2)


def _text_file(descriptor: int) -> TextIO:
    return open(
        descriptor,
        "w",
        buffering=1,
        encoding="utf-8",
        errors="backslashreplace",
        closefd=False,
    )
