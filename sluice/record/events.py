"""The events of a run: a closed union of typed, frozen values.

An event holds all data that the record needs, copied from disk or ML Metadata if
necessary (the rows of a verdict, the version of a push), so that the record follows
from the events alone. ``docs/run_record.md`` describes their JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from sluice.graph import GraphNode
from sluice.record.run_record import (
    ArtifactRecord,
    DocumentRecord,
    NodeRecord,
    NodeState,
    PushRecord,
    PushState,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, kw_only=True)
class _Event:
    """Base of all events.

    The journal sets ``at`` (UTC, ISO 8601) where it is empty; a service's events have
    the service's time.
    """

    at: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form, as the journal has it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class RunStarted(_Event):
    """A run has begun; its options.

    Attributes:
      destination: the serving directory.
      config: the resolved config.
      forced: nodes that run even if they are cached.
      accept_data: the reason for overriding the data gate once, or None.
      resume_command: the command to resume the run; None if its engine cannot.
      tags: the user's, value by key.
      notes: events before its start, such as a lock that was taken over.
    """

    event: Literal["run_started"] = "run_started"
    run_id: str
    pipeline: str
    command: str
    destination: str
    config: dict[str, Any]
    workers: int
    use_cache: bool
    forced: tuple[str, ...]
    from_nodes: tuple[str, ...]
    to_nodes: tuple[str, ...]
    accept_data: str | None
    resume_command: str | None
    tags: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunResumed(_Event):
    """A run is resumed."""

    event: Literal["run_resumed"] = "run_resumed"
    command: str
    workers: int
    resume_command: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InputsRead(_Event):
    """Digests of the run's inputs, and versions of packages."""

    event: Literal["inputs_read"] = "inputs_read"
    digests: dict[str, Any]
    packages: dict[str, str | None]


@dataclass(frozen=True, kw_only=True)
class SpansChosen(_Event):
    """The spans chosen for each input, as in ``RunRecord.spans``."""

    event: Literal["spans_chosen"] = "spans_chosen"
    spans: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class GraphCompiled(_Event):
    """The nodes of the run, in topological order.

    Attributes:
      base_run_id: the run whose outputs are reused; None where none are.
    """

    event: Literal["graph"] = "graph"
    nodes: tuple[GraphNode, ...]
    base_run_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodeStarted(_Event):
    """A node's process has started; ``attempt`` counts those of the run, from 1."""

    event: Literal["node_started"] = "node_started"
    node: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class NodeRetried(_Event):
    """A transient failure; the node is retried after a wait."""

    event: Literal["node_retried"] = "node_retried"
    node: str
    attempt: int
    wait_s: float
    reason: str | None


@dataclass(frozen=True)
class Artifact:
    """An artifact as ML Metadata has it."""

    id: int
    type: str
    uri: str
    properties: dict[str, Any]


@dataclass(frozen=True)
class NodeFailure:
    """Why a node failed.

    Attributes:
      message: for the user.
      exit_code: of the run.
      gate: whether the node is a gate that has not passed.
      transient: whether a retry may succeed.
      log_tail: the last lines of its log, if the message alone does not explain it.
      unresolved: whether it did not run because its inputs could not be resolved.
    """

    message: str
    exit_code: int
    gate: bool = False
    transient: bool = False
    log_tail: tuple[str, ...] = ()
    unresolved: bool = False


@dataclass(frozen=True)
class Push:
    """Result of a push. ``version`` and ``uri`` are None unless it is served."""

    state: PushState
    version: int | None = None
    uri: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodeFinished(_Event):
    """A node has ended.

    Attributes:
      error: why it failed, None if it did not.
      log: the log file of a failed node, None if there is none.
      cache: ``key`` and ``parts`` of its cache key.
      documents: the files in ``record/`` that describe its outputs.
      gates: the verdicts among its outputs, in the form of ``Verdict.to_dict``.
      push: the result of a node that pushes a model.
    """

    event: Literal["node_finished"] = "node_finished"
    node: str
    state: NodeState
    duration_s: float = 0.0
    reason: str | None = None
    error: NodeFailure | None = None
    log: str | None = None
    outputs: dict[str, list[Artifact]] = field(default_factory=dict)
    inputs: dict[str, list[Artifact]] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    execution_id: int | None = None
    cache: dict[str, Any] | None = None
    documents: tuple[DocumentRecord, ...] = ()
    notes: tuple[str, ...] = ()
    gates: tuple[dict[str, Any], ...] = ()
    push: Push | None = None


@dataclass(frozen=True, kw_only=True)
class DocumentsAdded(_Event):
    """Documents of nodes that ended before; another process has written them."""

    event: Literal["documents_added"] = "documents_added"
    documents: tuple[DocumentRecord, ...]


@dataclass(frozen=True, kw_only=True)
class Stopping(_Event):
    """A request to stop the run while ``nodes`` were running."""

    event: Literal["stopping"] = "stopping"
    signal: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Stopped(_Event):
    """The run could not begin, or failed outside of a node."""

    event: Literal["stopped"] = "stopped"
    message: str
    exit_code: int
    log: str | None = None


@dataclass(frozen=True, kw_only=True)
class Note(_Event):
    """A remark for the reader of the record."""

    event: Literal["note"] = "note"
    text: str


@dataclass(frozen=True, kw_only=True)
class Finished(_Event):
    """Every node has ended or cannot be reached."""

    event: Literal["finished"] = "finished"


@dataclass(frozen=True, kw_only=True)
class RunUnchanged(_Event):
    """Nothing has changed since an earlier run, whose results are copied.

    Attributes:
      since: the earlier run's id; the other attributes are copied from its record.
    """

    event: Literal["run_unchanged"] = "run_unchanged"
    since: str
    nodes: tuple[NodeRecord, ...]
    gates: tuple[dict[str, Any], ...]
    pushes: tuple[PushRecord, ...]
    artifacts: dict[str, ArtifactRecord]
    documents: tuple[DocumentRecord, ...]


@dataclass(frozen=True, kw_only=True)
class RunEnded(_Event):
    """The run's process ends.

    Attributes:
      exit_code: INTERRUPTED or TERMINATED if a signal ended the run; None otherwise.
      reason: why nodes that were running have no result.
      logs: the log files of those nodes, and of the run's ``start``, by name.
    """

    event: Literal["run_ended"] = "run_ended"
    exit_code: int | None
    reason: str
    logs: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class RunKilled(_Event):
    """The run's process was killed; written by a later command."""

    event: Literal["run_killed"] = "run_killed"
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReportWritten(_Event):
    """The run's page has been written."""

    event: Literal["report_written"] = "report_written"
    uri: str


Event = Union[  # noqa: UP007 (pydantic evaluates it on Python 3.10)
    RunStarted,
    RunResumed,
    InputsRead,
    SpansChosen,
    GraphCompiled,
    NodeStarted,
    NodeRetried,
    NodeFinished,
    DocumentsAdded,
    Stopping,
    Stopped,
    Note,
    Finished,
    RunUnchanged,
    RunEnded,
    RunKilled,
    ReportWritten,
]


def parse_event(data: Mapping[str, Any]) -> Event:
    """Returns the event of a JSON object; unknown keys are ignored.

    Raises:
      ValueError: it is not a valid event.
    """
    return _adapter().validate_python(data)


@cache
def _adapter() -> TypeAdapter[Event]:
    # Importing it takes 0.1 s, which only readers of a journal need.
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Event, Field(discriminator="event")])
