"""Finds an artifact by id, output name, path or version.

The first form that matches counts:

* ``artifact:12``: the artifact of that id in ML Metadata.
* ``v3`` or ``3``: the model that was pushed as version 3.
* ``Trainer.model``: the newest output of that name.
* a path or URI: the version or artifact that is there, or that the file lies in.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runners.metadata.metadata_graph import MetadataGraph
from runners.metadata.served_models import ServedModel
from sluice.errors import MAX_EXAMPLES, UsageError
from sluice.storage.storage import is_remote

_VERSION = re.compile(r"v?(\d+)", re.ASCII)
_MAX_DIGITS = 20
_ARTIFACT = re.compile(r"artifact:(\d+)", re.ASCII)


@dataclass(frozen=True)
class Found:
    """The artifact that a reference names.

    ``read_as`` is the interpretation of the reference, for the user.
    """

    artifact_id: int
    read_as: str
    served: ServedModel | None = None


def find_artifact(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> Found:
    """Returns the artifact that a reference names.

    Of two served versions with the same number the first counts.

    Raises:
      UsageError: there is no such artifact, or the version's model is unknown.
    """
    if match := _ARTIFACT.fullmatch(reference):
        found = _by_id(graph, match[1])
    elif match := _VERSION.fullmatch(reference):
        found = _by_version(served, match[1])
    else:
        found = _by_output(graph, reference) or _by_path(graph, served, reference)
    if found is None:
        raise _unknown(graph, served, reference)
    return found


def _by_id(graph: MetadataGraph, digits: str) -> Found | None:
    for artifact_id in graph.artifacts:
        if _is_number(artifact_id, digits):
            return Found(artifact_id, f"artifact {artifact_id}")
    return None


def _by_version(served: Sequence[ServedModel], digits: str) -> Found | None:
    for item in served:
        if _is_number(item.version.version, digits):
            return _of_version(item, f"version {item.version.version}")
    return None


def _is_number(number: int, digits: str) -> bool:
    """Compares as text: Python rejects integers of thousands of digits."""
    return str(number) == (digits.lstrip("0") or "0")


def _of_version(item: ServedModel, read_as: str) -> Found:
    if item.model_id is None:
        raise UsageError(
            f"the model behind version {item.version.version} is unknown",
            where=item.version.uri,
            expected="a version that a run of this workspace has pushed",
            actual=f"run {item.run_id}" if item.run_id else "no record of a push",
        )
    return Found(item.model_id, read_as, item)


def _by_output(graph: MetadataGraph, reference: str) -> Found | None:
    """Returns the newest output of a name, from the cache or not."""
    for execution_id in sorted(graph.executions, reverse=True):
        execution = graph.executions[execution_id]
        for links in (execution.outputs, execution.resolved):
            for key, artifacts in links.items():
                if reference == f"{execution.node}.{key}":
                    return Found(max(artifacts), f"the newest {reference}")
    return None


def _by_path(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> Found | None:
    places = [reference.rstrip("/")]
    if not is_remote(reference):
        places += [os.path.abspath(reference), os.path.realpath(reference)]
    for place in dict.fromkeys(places):
        for item in served:
            if _is_in(place, item.version.uri):
                return _of_version(item, f"version {item.version.version}")
        inside = [
            (len(artifact.uri), artifact.state == "live", artifact.id)
            for artifact in graph.artifacts.values()
            if artifact.uri and _is_in(place, artifact.uri.rstrip("/"))
        ]
        if inside:
            artifact_id = max(inside)[2]
            return Found(artifact_id, f"artifact {artifact_id}")
    return None


def _is_in(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder}/")


def _unknown(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> UsageError:
    if match := _VERSION.fullmatch(reference):
        is_artifact = _by_id(graph, match[1]) is not None
        return UsageError(
            f"there is no version {match[1][:_MAX_DIGITS]}",
            expected=f"versions: {_range(item.version.version for item in served)}",
            hint=f"did you mean artifact:{match[1]}?" if is_artifact else None,
        )
    outputs = sorted(
        {
            f"{execution.node}.{key}"
            for execution in graph.executions.values()
            for key in execution.outputs
        }
    )
    versions = [f"v{item.version.version}" for item in served]
    if "/" in reference:
        known = [artifact.uri for artifact in graph.artifacts.values()]
        known += [item.version.uri for item in served]
    else:
        known = [*versions, *outputs]
    near = difflib.get_close_matches(reference, known, n=MAX_EXAMPLES, cutoff=0.5)
    return UsageError(
        f"there is no artifact or version {reference!r}",
        expected="artifact:ID, vN, Node.output, or a path; versions: "
        f"{_range(item.version.version for item in served)}; "
        f"artifacts: {_range(graph.artifacts)}",
        examples=near or [*outputs, *versions],
        hint="did you mean one of these?" if near else "name one of these",
    )


def _range(numbers: Iterable[int]) -> str:
    known = sorted(numbers)
    if not known:
        return "none"
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"
