"""Section Provenance: lineage, config, digests, packages, and how to run it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports import formats
from reports.read_run import RunData
from reports.tables import Column, Mark, Table
from sluice.record.run_record import RunRecord

_SET = Mark("info", "set")
_DEFAULT = Mark("quiet", "default")


@dataclass(frozen=True)
class ProvenanceView:
    """What the section shows.

    Attributes:
      command: to run it again.
      lineage: from the pushed version back to the data.
      spans: a line per input.
      chosen: the values of the config that differ from the defaults.
      config: all of its values; None for a foreign pipeline.
    """

    command: str
    lineage: Table | None
    spans: list[tuple[str, str]]
    chosen: Table | None
    config: Table | None
    digests: list[tuple[str, str]]
    packages: Table | None


def build(run: RunData) -> ProvenanceView:
    """Returns the view; every run has this section."""
    record = run.record
    chosen, config = _config_tables(record)
    return ProvenanceView(
        command=record.command,
        lineage=_lineage(run),
        spans=_spans(record),
        chosen=chosen,
        config=config,
        digests=[(name, str(value)) for name, value in record.digests.items() if value],
        packages=_packages(record),
    )


def _spans(record: RunRecord) -> list[tuple[str, str]]:
    lines = []
    for name, spans in record.spans.items():
        texts = [
            f"span {span['span']}"
            + (f" version {span['version']}" if span["version"] is not None else "")
            + (f" ({span['date']})" if span["date"] else "")
            for span in spans
        ]
        if texts:
            lines.append((f"Input {name}", ", ".join(texts)))
    return lines


def _config_tables(record: RunRecord) -> tuple[Table | None, Table | None]:
    if not record.config:
        return None, None
    chosen = _chosen(record.config)
    columns = (Column("Key", code=True), Column("Value", code=True))
    caption = "Values of the config that differ from the defaults"
    differing = Table("config-set", caption, columns, list(chosen.items()))
    rows = [
        (key, value, _SET if key in chosen else _DEFAULT)
        for key, value in _leaves(record.config).items()
    ]
    header = (*columns, "Set or default")
    complete = Table("config", "The config as resolved", header, rows)
    return (differing if chosen else None), complete


def _chosen(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values that differ from the defaults, by key.

    Empty if this version of Sluice has another form of config.
    """
    # pydantic; whoever runs a pipeline with a config has imported it.
    from pipeline.config.config import Config

    try:
        parsed = Config.model_validate(config)
    except ValueError:
        return {}
    options: Any = {"by_alias": True, "exclude_defaults": True, "warnings": False}
    return _leaves(parsed.model_dump(mode="json", **options))


def _leaves(config: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Returns JSON by key, as ``--set`` takes both: a list is one value."""
    found: dict[str, str] = {}
    for name, value in config.items():
        key = f"{path}.{name}" if path else name
        if isinstance(value, Mapping) and value:
            found |= _leaves(value, key)
        else:
            found[key] = json.dumps(value, ensure_ascii=False)
    return found


def _lineage(run: RunData) -> Table | None:
    """Returns a row per artifact that the model was made of, the newest first."""
    found = run.documents("lineage")
    if not found:
        return None
    # That of the Pusher, if there is one: the model and what was pushed.
    lineage = found[-1]
    runs = {item["id"]: item["run_id"] for item in lineage["executions"]}
    rows: list[tuple[Any, ...]] = []

    def add(
        what: str, where: str, by: str | None = None, at: str | None = None
    ) -> None:
        by = "this run" if by == run.record.run_id else by
        rows.append((what, by, formats.time(at), where))

    for item in lineage["served"]:
        version = f"Version {item['version']}"
        add(version, item["uri"], item["run_id"], item["published_at"])
    for item in sorted(lineage["artifacts"], key=lambda item: -item["id"]):
        name, by = f"{item['name']} #{item['id']}", runs.get(item["producer"])
        add(name, item["uri"], by, item["created_at"])
    for item in lineage["origin"]["data"]:
        where = f"{item['path']} {item['fingerprint'] or ''}".strip()
        add(f"Data, span {item['span']}" if item["span"] else "Data", where)
    caption = "From the model back to its data"
    if not lineage["complete"]:
        caption += f"; `sluice lineage {run.record.pipeline}` has older ones too"
    columns = ("What", "Made by run", "When", Column("Where", code=True))
    return Table("lineage", caption, columns, rows)


def _packages(record: RunRecord) -> Table | None:
    rows = [(name, version) for name, version in record.packages.items() if version]
    if not rows:
        return None
    columns = ("Package", Column("Version", code=True))
    caption = "Versions of the packages that affect results"
    return Table("packages", caption, columns, rows)
