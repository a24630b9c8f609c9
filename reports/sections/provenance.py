"""Sections Serving and Provenance: what was pushed, and what it was made of."""

from __future__ import annotations

import json
from typing import Any

from reports import formats
from reports.read_run import RunData
from reports.tables import Column, Table
from sluice.json_paths import flatten


def build(run: RunData) -> dict[str, Any]:
    """Returns what the template shows; every run has this section."""
    config = flatten(run.record.config)
    return {
        "lineage": _lineage(run),
        "config": [
            (key, json.dumps(value, ensure_ascii=False))
            for key, value in config.items()
        ],
        "packages": [item for item in run.record.packages.items() if item[1]],
    }


def _lineage(run: RunData) -> Table | None:
    """Returns a row per artifact that the model was made of, the newest first."""
    found = run.documents("lineage")
    if not found:
        return None
    # That of the Pusher, if there is one: the model and what was pushed.
    lineage, own = found[-1], run.record.run_id
    runs = {item["id"]: item["run_id"] for item in lineage["executions"]}
    rows: list[tuple[Any, ...]] = [
        (
            f"Version {item['version']}",
            item["run_id"],
            item["published_at"],
            item["uri"],
        )
        for item in lineage["served"]
    ]
    for item in sorted(lineage["artifacts"], key=lambda item: -item["id"]):
        name, by = f"{item['name']} #{item['id']}", runs.get(item["producer"])
        rows.append((name, by, item["created_at"], item["uri"]))
    for item in lineage["origin"]["data"]:
        where = f"{item['path']} {item['fingerprint'] or ''}".strip()
        name = f"Data, span {item['span']}" if item["span"] else "Data"
        rows.append((name, None, None, where))
    rows = [
        (name, "this run" if by == own else by, formats.time(at), where)
        for name, by, at, where in rows
    ]
    caption = "From the model back to its data"
    if not lineage["complete"]:
        caption += f"; `sluice lineage {run.record.pipeline}` has older ones too"
    columns = ("What", "Made by run", "When", Column("Where", code=True))
    return Table("lineage", caption, columns, rows)


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
