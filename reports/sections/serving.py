"""Section Serving: what was pushed where, the model's size and signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports import formats
from reports.read_run import RunData
from reports.tables import Column, Header, Table, numbers


@dataclass(frozen=True)
class Signature:
    """A signature of the model: its name, inputs and outputs."""

    name: str
    tensors: Table


@dataclass(frozen=True)
class ServingView:
    """What the section shows; ``versions`` are those in the store of this model."""

    facts: list[tuple[str, str]]
    tiles: list[tuple[str, str, str]]
    versions: Table | None
    signatures: list[Signature]
    files: Table | None


def build(run: RunData) -> ServingView | None:
    """Returns the view; None without a model and a push."""
    models = run.documents("model")
    pushed = [push for push in run.record.pushes if push.version is not None]
    if not models and not pushed:
        return None
    facts = [
        (f"Version {push.version}", f"{push.state.replace('_', ' ')}: {push.uri}")
        for push in pushed
    ]
    # A pipeline with a tuner or warm start has several models; the last is trained.
    model = models[-1] if models else {}
    signatures = model.get("signatures") or []
    return ServingView(
        facts=facts,
        tiles=_tiles(model) if model else [],
        versions=_versions(run),
        signatures=[_signature(item, i) for i, item in enumerate(signatures)],
        files=_files(model) if model else None,
    )


def _tiles(model: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    files = formats.plural(len(model["files"]), "file")
    tiles = [("Size", formats.size(model["size_bytes"]), files)]
    if model.get("parameters") is not None:
        trainable = formats.number(model["trainable_parameters"])
        remark = f"{trainable} trainable"
        tiles.append(("Parameters", formats.number(model["parameters"]), remark))
    if version := model.get("tensorflow_version"):
        tiles.append(("TensorFlow", formats.visible(version), "wrote it"))
    return tiles


def _versions(run: RunData) -> Table | None:
    served = [item for found in run.documents("lineage") for item in found["served"]]
    if not served:
        return None
    rows = [
        (
            item["version"],
            formats.time(item["published_at"]),
            "this run" if item["run_id"] == run.record.run_id else item["run_id"],
            formats.shorten(item["digest"] or "", 17),
            item["uri"],
        )
        for item in {item["version"]: item for item in served}.values()
    ]
    header: Header = [numbers("Version"), "Published", "Pushed by run"]
    header += [Column("Digest", code=True), Column("Folder", code=True)]
    return Table("served", "Versions in the store that are this model", header, rows)


def _signature(signature: Mapping[str, Any], number: int) -> Signature:
    columns = (
        "Direction",
        "Name",
        Column("Type", code=True),
        Column("Shape", code=True),
    )
    rows = [
        (direction, tensor["name"], tensor["dtype"], shape(tensor["shape"]))
        for direction in ("input", "output")
        for tensor in signature[f"{direction}s"]
    ]
    caption = f"Inputs and outputs of {signature['name']}"
    return Signature(
        signature["name"], Table(f"signature-{number}", caption, columns, rows)
    )


def shape(sizes: Sequence[int] | None) -> str:
    """Returns a shape such as ``[?, 28, 28, 1]``; ``?`` alone if it is unknown."""
    if sizes is None:
        return "?"
    return f"[{', '.join('?' if size == -1 else str(size) for size in sizes)}]"


def _files(model: Mapping[str, Any]) -> Table | None:
    if not model["files"]:
        return None
    caption = "Files of the model, the largest first"
    size = numbers("Size", format=formats.size, bar=True)
    rows = [(item["path"], item["size_bytes"]) for item in model["files"]]
    return Table("model-files", caption, (Column("File", code=True), size), rows)
