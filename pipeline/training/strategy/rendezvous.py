"""Rendezvous of the machines of a cluster, and how each learns that another is lost.

TensorFlow waits for a missing task without end or a word. So the others connect to the
chief's address before TensorFlow uses it. These connections stay open until the
training has ended, so that a machine that dies or vanishes is noticed on both sides,
whatever TensorFlow does meanwhile.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version

from pipeline.training.strategy.cluster import Cluster
from sluice import progress
from sluice.errors import NodeError, UsageError
from sluice.version import __version__

WAIT_VARIABLE = "SLUICE_CLUSTER_WAIT_S"
_DEFAULT_WAIT_S = 120.0
_RETRY_S = 0.5
# A greeting names a task and its versions, padded. A connection may also be a scan.
_GREETING_BYTES, _GREETING_S = 128, 5.0
_BEGIN, _DONE = b"b", b"d"
# After 30 s without an answer the kernel takes a silent machine for lost.
_KEEPALIVE = (
    (socket.TCP_KEEPIDLE, 10),
    (socket.TCP_KEEPINTVL, 5),
    (socket.TCP_KEEPCNT, 4),
)


class Peers:
    """The connections of a task: of the chief to all others, of these to the chief.

    Attributes:
      connections: become readable when a peer is lost or has ended.
      have_ended: whether the chief has said that the training has ended; true for the
        chief itself.
    """

    def __init__(self, names: Mapping[socket.socket, str], have_ended: bool) -> None:
        self.connections = list(names)
        self.have_ended = have_ended
        self._names = names

    def check(self, timeout_s: float = 0.0) -> None:
        """Reads what the peers have said, if only within a time.

        Raises:
          NodeError: one is lost; names its address.
        """
        if not self.connections:
            return
        for connection in select.select(self.connections, [], [], timeout_s)[0]:
            said = b""
            with suppress(OSError):
                said = connection.recv(1)
            if said != _DONE:
                raise NodeError(
                    f"{self._names[connection]} is lost: it failed, was stopped, or "
                    "does not answer",
                    hint="its own output says why; sluice resume, with all workers "
                    "started again, goes on from the last checkpoint",
                )
            self.have_ended = True
            self.connections = []

    def say_done(self) -> None:
        """Tells all that the training has ended."""
        for connection in self.connections:
            with suppress(OSError):
                connection.sendall(_DONE)


# Of a training on one machine.
NO_PEERS = Peers({}, have_ended=True)


def wait_limit_s() -> float:
    """Returns how long one machine waits for another.

    Raises:
      UsageError: the variable is no number of seconds.
    """
    given = os.environ.get(WAIT_VARIABLE)
    try:
        return float(given) if given else _DEFAULT_WAIT_S
    except ValueError:
        raise UsageError(f"{WAIT_VARIABLE} is no number of seconds: {given}") from None


@contextmanager
def meet(cluster: Cluster) -> Iterator[Peers]:
    """Waits until all tasks of a cluster are there; keeps the connections in the block.

    Raises:
      NodeError: not within ``wait_limit_s()``; names the addresses.
    """
    with ExitStack() as stack:
        deadline = time.monotonic() + wait_limit_s()
        if cluster.is_chief:
            names = _wait_for_workers(cluster, deadline, stack)
        else:
            names = _wait_for_chief(cluster, deadline, stack)
        for connection in names:
            connection.settimeout(None)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
        progress.report(event="met", line=f"all {len(cluster.tasks)} tasks are there")
        yield Peers(names, have_ended=cluster.is_chief)


def _wait_for_workers(
    cluster: Cluster, deadline: float, stack: ExitStack
) -> dict[socket.socket, str]:
    expected = {_greeting(*task): cluster.describe(*task) for task in cluster.tasks[1:]}
    joined: dict[str, socket.socket] = {}
    _, port = cluster.address(*cluster.tasks[0])
    try:
        server = socket.create_server(("", port), backlog=len(expected))
    except OSError as error:
        text = f"the port {port} of this machine cannot be opened: {error.strerror}"
        raise NodeError(text) from error
    # TensorFlow opens the port again, once the block has closed it.
    with server:
        server.settimeout(_RETRY_S)
        said_missing = ""
        while len(joined) < len(expected):
            missing = ", ".join(expected[key] for key in expected if key not in joined)
            if missing != said_missing:
                _report_waiting(missing)
                said_missing = missing
            if time.monotonic() > deadline:
                raise _absent(missing, "sluice worker NAME")
            with suppress(OSError):
                connection, _ = server.accept()
                stack.callback(connection.close)
                connection.settimeout(_GREETING_S)
                said = connection.recv(_GREETING_BYTES, socket.MSG_WAITALL)
                task, _, versions = said.decode(errors="replace").partition(" with ")
                if task not in expected:
                    continue
                if versions.rstrip() != _versions():
                    other = f"{expected[task]} has {versions.rstrip()}"
                    raise NodeError(f"{other}, this machine has {_versions()}")
                joined[task] = connection
    for connection in joined.values():
        with suppress(OSError):  # One that is lost already is noticed by ``Peers``.
            connection.sendall(_BEGIN)
    return {connection: expected[key] for key, connection in joined.items()}


def _wait_for_chief(
    cluster: Cluster, deadline: float, stack: ExitStack
) -> dict[socket.socket, str]:
    chief = cluster.describe(*cluster.tasks[0])
    _report_waiting(chief)
    while True:
        reason = "it does not answer"
        try:
            connection = socket.create_connection(
                cluster.address(*cluster.tasks[0]), _GREETING_S
            )
            break
        except OSError as error:
            reason = error.strerror or reason
        if time.monotonic() > deadline:
            raise _absent(chief, "sluice run NAME", reason)
        time.sleep(_RETRY_S)
    stack.callback(connection.close)
    said = b""
    greeting = f"{_greeting(cluster.job, cluster.index)} with {_versions()}".encode()
    with suppress(OSError):
        connection.sendall(greeting.ljust(_GREETING_BYTES))
        # The chief has a limit of its own, and closes the connection then.
        connection.settimeout(wait_limit_s() + _GREETING_S)
        said = connection.recv(1)
    if said != _BEGIN:
        text = f"{chief} has given up before the training: its own output says why"
        raise NodeError(text)
    return {connection: chief}


def _greeting(job: str, index: int) -> str:
    return f"sluice {job} {index}"


def _versions() -> str:
    return f"Sluice {__version__}, TensorFlow {version('tensorflow')}"


def _report_waiting(names: str) -> None:
    text = f"waiting for {names}, at most {wait_limit_s():.0f} s"
    progress.report(event="waiting", line=text)


def _absent(names: str, command: str, reason: str | None = None) -> NodeError:
    text = f"{names} did not come within {wait_limit_s():.0f} s"
    hint = f"start '{command}' there; {WAIT_VARIABLE} sets the limit"
    return NodeError(f"{text}: {reason}" if reason else text, hint=hint)
