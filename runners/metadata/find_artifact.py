"""Finds an artifact by id, output name, path or version.

The first form that matches counts:

* ``artifact:12``: the artifact of that id in ML Metadata.
* ``v3`` or ``3``: the model that was pushed as version 3.
* ``Trainer.model``: the newest output of that name.
* a path or URI: the version or artifact that is there, or that the file lies in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from runners.metadata.graph import MetadataGraph
from runners.metadata.served_models import ServedModel
from sluice.errors import UsageError
from sluice.storage.storage import is_remote

# No more digits: Python rejects integers of thousands of them.
_VERSION = re.compile(r"v?(\d{1,18})", re.ASCII)
_ARTIFACT = re.compile(r"artifact:(\d{1,18})", re.ASCII)


def find_artifact(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> tuple[int, str]:
    """Returns the id of the artifact that a reference names, and how it was read.

    Of two served versions with the same number the first counts.

    Raises:
      UsageError: there is no such artifact, or the version's model is unknown.
    """
    if match := _ARTIFACT.fullmatch(reference):
        if (number := int(match[1])) in graph.artifacts:
            return number, f"artifact {number}"
    elif match := _VERSION.fullmatch(reference):
        for item in served:
            if item.version.version == int(match[1]):
                return _of_version(item)
    else:
        # The newest output of a name, from the cache or not.
        for _, execution in sorted(graph.executions.items(), reverse=True):
            for key, artifacts in execution.outputs.items():
                if reference == f"{execution.node}.{key}":
                    return max(artifacts), f"the newest {reference}"
        for found in _at_path(graph, served, reference):
            return found
    outputs = {
        f"{execution.node}.{key}"
        for execution in graph.executions.values()
        for key in execution.outputs
    }
    raise UsageError(
        f"there is no artifact or version {reference[:200]!r}",
        expected="artifact:ID, vN, Node.output, or a path",
        examples=[f"v{item.version.version}" for item in served] + sorted(outputs),
    )


def _of_version(item: ServedModel) -> tuple[int, str]:
    number = item.version.version
    if item.model_id is None:
        raise UsageError(
            f"the model behind version {number} is unknown: no run of this workspace "
            "has pushed it",
            where=item.version.uri,
        )
    return item.model_id, f"version {number}"


def _at_path(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> Iterator[tuple[int, str]]:
    """Yields what is at a path, or has the path in it."""
    places = [reference.rstrip("/")]
    if not is_remote(reference):
        places += [os.path.abspath(reference), os.path.realpath(reference)]
    for place in places:
        for item in served:
            if f"{place}/".startswith(f"{item.version.uri}/"):
                yield _of_version(item)
        inside = [
            (len(artifact.uri), artifact.state == "live", artifact.id)
            for artifact in graph.artifacts.values()
            if artifact.uri and f"{place}/".startswith(f"{artifact.uri.rstrip('/')}/")
        ]
        if inside:
            artifact_id = max(inside)[2]
            yield artifact_id, f"artifact {artifact_id}"
