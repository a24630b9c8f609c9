"""A user's project: a config, its schema, and a folder for data."""

from __future__ import annotations

from pathlib import Path


def write_project(root: Path, name: str, config: str, schema: str) -> Path:
    """Writes a config and its schema, and returns the root."""
    for folder in ("configs", f"schemas/{name}", "data"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "configs" / f"{name}.yaml").write_text(config)
    (root / "schemas" / name / "schema.pbtxt").write_text(schema)
    return root
