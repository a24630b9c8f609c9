"""Operation: writes differences between data and schema into the reviewed schema."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runners.operations.find_run import Warn, ignore
from runners.operations.schema.diff import Compared, diff
from runners.operations.schema.source import SchemaRequest
from schemas.diff.change import Change
from schemas.edit.edit_schema import accept_changes
from sluice.errors import UsageError

# Returns the changes to accept, out of those that can be accepted.
Choose = Callable[[Compared, Sequence[Change]], Sequence[Change]]


@dataclass(frozen=True, kw_only=True)
class AcceptRequest(SchemaRequest):
    """The differences to write into the schema.

    Attributes:
      ids: ids of changes, or ``ID=VALUE`` for one of a change's values.
      everything: accept all that can be accepted.
    """

    ids: tuple[str, ...] = ()
    everything: bool = False


@dataclass(frozen=True)
class Accepted:
    """The changes that were written, and those of ``everything`` that were refused."""

    compared: Compared
    changes: Sequence[Change]
    refused: Sequence[Change]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            **self.compared.head(),
            "accepted": [change.to_dict() for change in self.changes],
            "refused": [change.to_dict() for change in self.refused],
        }


def accept(
    request: AcceptRequest, choose: Choose | None = None, warn: Warn = ignore
) -> Accepted:
    """Writes differences into the schema; comments and the file's order are kept.

    Args:
      request: the differences.
      choose: chooses if the request names none; None to refuse such a request.
      warn: receives a line per damaged record.

    Raises:
      UsageError: there is no such difference, or it cannot be accepted.
      DataError, WorkspaceError: see ``diff``.
    """
    compared = diff(request, warn)
    changes = compared.diff.changes
    possible = [change for change in changes if change.refusal is None]
    chosen: Sequence[Change]
    if request.ids:
        chosen = _named(changes, request)
    elif request.everything or not possible:
        chosen = possible
    elif choose is None:
        command = request.schema_command("accept", possible[0].id)
        raise UsageError(
            "select the differences to accept",
            examples=[change.id for change in possible],
            hint=f"{command}, or --all",
        )
    else:
        chosen = choose(compared, possible)
    edits = [edit for change in chosen for edit in change.edits]
    if edits:
        accept_changes(compared.path, compared.text, edits)
    all_refused = [change for change in changes if change.refusal]
    return Accepted(compared, chosen, all_refused if request.everything else [])


def _named(changes: Sequence[Change], request: AcceptRequest) -> list[Change]:
    """Returns the named changes in the order of the schema."""
    whole: dict[str, Change] = {change.id: change for change in changes}
    values: dict[str, list[str]] = {}
    for wanted in request.ids:
        change, value = _find(whole, wanted, request)
        if change.refusal:
            raise UsageError(
                f"{change.id} cannot be accepted: {change.refusal}",
                actual=f"{change.feature}: {change.text}",
                hint=request.schema_command("diff"),
            )
        values.setdefault(change.id, [])
        values[change.id] += change.values if value is None else [value]
    return [
        change.only(tuple(dict.fromkeys(values[change.id])))
        if change.values
        else change
        for change in changes
        if change.id in values
    ]


def _find(
    whole: dict[str, Change], wanted: str, request: AcceptRequest
) -> tuple[Change, str | None]:
    if wanted in whole:
        return whole[wanted], None
    for change in whole.values():
        value = wanted.removeprefix(f"{change.id}=")
        if value != wanted and value in change.values:
            return change, value
    near = difflib.get_close_matches(wanted, whole, n=1)
    raise UsageError(
        f"there is no difference {wanted!r}",
        expected="one of these"
        if whole
        else "nothing to accept: schema and data do not differ",
        examples=near or list(whole),
        hint=request.schema_command("diff"),
    )
