"""Section Serving: what was pushed where, the model's size and signatures."""

from __future__ import annotations

from typing import Any

from reports.read_run import RunData


def build(run: RunData) -> dict[str, Any] | None:
    """Returns what the template shows; None without a model and a push."""
    models = run.documents("model")
    pushed = [push for push in run.record.pushes if push.version is not None]
    if not models and not pushed:
        return None
    served = [item for found in run.documents("lineage") for item in found["served"]]
    return {
        "pushed": pushed,
        # A pipeline with a tuner or warm start has several models; the last is trained.
        "model": models[-1] if models else None,
        "served": [*{item["version"]: item for item in served}.values()],
    }
