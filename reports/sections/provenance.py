"""Sections Serving and Provenance: what was pushed, and what it was made of."""

from __future__ import annotations

import json
from typing import Any

from reports.read_run import RunData
from sluice.json_paths import flatten


def build(run: RunData) -> dict[str, Any]:
    """Returns what the template shows; every run has this section."""
    config = flatten(run.record.config)
    return {
        # That of the Pusher, if there is one: the model and what was pushed.
        "lineage": next(reversed(run.documents("lineage")), None),
        "config": [
            (key, json.dumps(value, ensure_ascii=False))
            for key, value in config.items()
        ],
        "packages": [item for item in run.record.packages.items() if item[1]],
    }


def serving(run: RunData) -> dict[str, Any] | None:
    """Returns what the section Serving shows; None without a model and a push."""
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
