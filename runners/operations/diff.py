"""Operation: compares two runs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reports.compare import Comparison, compare
from reports.read_run import RunData, read_run
from runners.operations.find_run import LATEST, Warn, find_run, ignore
from runners.operations.pipeline_request import WorkspaceRequest
from sluice.errors import UsageError
from sluice.storage.storage import is_remote


@dataclass(frozen=True, kw_only=True)
class DiffRequest(WorkspaceRequest):
    """The runs to compare.

    Attributes:
      before: the id of a run or its beginning, ``latest``, ``last-pushed``, or the path
        or address of a run's folder; None for the last run before ``after`` that pushed
        a model.
      after: likewise; None for the last run.
    """

    before: str | None = None
    after: str | None = None


def diff(request: DiffRequest, warn: Warn = ignore) -> Comparison:
    """Returns what differs between two runs.

    Raises:
      UsageError: there is no such pipeline or run.
      WorkspaceError: a record cannot be read.
    """
    with ExitStack() as stack:

        def read(run: str) -> RunData:
            address: str | Path = run
            if not is_remote(run):
                where = request.workspace_dir
                address = (
                    Path(run).resolve()
                    if "/" in run
                    else find_run(request.name, where, run_id=run, warn=warn).run_dir
                )
            return stack.enter_context(read_run(address))

        after = read(request.after or LATEST)
        before = read(request.before) if request.before else after.previous
        if before is None:
            raise UsageError(
                f"no run before {after.record.run_id} has pushed a model",
                expected="a run to compare with",
                hint=request.next_command("runs", request.name),
            )
        found = compare(before, after)
        for notice in (*before.notices, *after.notices):
            warn(notice)
        return found
