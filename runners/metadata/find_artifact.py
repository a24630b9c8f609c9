"""Finds an artifact by its id, output name, path or version.

* ``artifact:12``: the artifact of that id in ML Metadata.
* ``v3`` or ``3``: the model that was pushed as version 3.
* ``Trainer.model``: the newest output of that name, from the cache or not.
* a path or URI: the version or artifact that is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from runners.metadata.graph import MetadataGraph
from runners.metadata.served_models import ServedModel, resolved
from sluice.errors import UsageError


def find_artifact(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> tuple[int, str]:
    """Returns the id of the artifact that a reference names, and how it was read.

    Of two served versions with the same number the first counts.

    Raises:
      UsageError: there is no such artifact, or the version's model is unknown.
    """
    named: dict[str, tuple[int | None, str]] = {}
    for number, artifact in sorted(graph.artifacts.items()):
        for name in (f"artifact:{number}", artifact.uri.rstrip("/")):
            named[name] = number, f"artifact {number}"
    outputs = [
        (f"{execution.node}.{key}", artifact_id)
        for _, execution in sorted(graph.executions.items())
        for key, artifacts in execution.outputs.items()
        for artifact_id in sorted(artifacts)
    ]
    for name, artifact_id in outputs:
        named[name] = artifact_id, f"the newest {name}"
    for item in reversed(served):
        version = item.version.version
        for name in (f"v{version}", str(version), item.version.uri):
            named[name] = item.model_id, f"version {version}"
    known = [name for name in (reference, resolved(reference)) if name in named]
    if not reference or not known:
        versions = [f"v{item.version.version}" for item in served]
        raise UsageError(
            f"there is no artifact or version {reference[:200]!r}",
            expected="artifact:ID, vN, Node.output, or a path",
            examples=versions + sorted({name for name, _ in outputs}),
        )
    found, read_as = named[known[0]]
    if found is None:
        raise UsageError(
            f"the model behind {read_as} is unknown: no run of this workspace has "
            "pushed it"
        )
    return found, read_as
