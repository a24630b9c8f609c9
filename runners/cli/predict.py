"""``sluice predict NAME FILE...``: predicts with the newest pushed model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.config.config import Config
from reports import formats
from runners.cli.echo import echo, echo_json
from runners.cli.options import Result, config_argument, verb
from runners.operations.predict import predict
from serving.prediction_files import check_id, check_suffix, write_predictions
from sluice.errors import UsageError, bounded
from sluice.storage.output_path import resolve_output_path


@verb()
@config_argument
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(1), help="Stop after this many predictions."
)
@click.option("--version", type=int, help="Use this version instead of the newest.")
@click.option(
    "--trust",
    is_flag=True,
    help="Load a version that differs from what was pushed; models can run any code.",
)
@click.option(
    "id_feature", "--id", metavar="FEATURE", help="Copy it into each prediction."
)
@click.option(
    "--output", "-o", metavar="FILE", help="Write to FILE: .csv, .jsonl or .parquet."
)
def command(
    config: Config,
    files: tuple[str, ...],
    limit: int | None,
    version: int | None,
    trust: bool,
    id_feature: str | None,
    output: str | None,
) -> Result | None:
    """Predict FILES with the pushed model of NAME; one JSON object per line.

    Each file is TFRecords of tf.Example, an image, or JSON lines of raw features; "-"
    reads JSON lines from standard input. With -o the predictions are written to a file,
    which appears once it is complete. A version is loaded only if it is byte for byte
    what was pushed. With --json an error is JSON, too.
    """
    if id_feature is not None:
        check_id(id_feature)
    file = (
        resolve_output_path(output, Path.cwd(), "--output")
        if output is not None
        else None
    )
    if file:
        check_suffix(file)
        if file in [Path(name).resolve() for name in files]:
            raise UsageError("--output would replace an input file", where=file)
    found = predict(
        config,
        files,
        limit=limit,
        version=version,
        trust=trust,
        id_feature=id_feature,
    )
    number, missing = 0, Counter[str]()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal number
        for prediction in found:
            number += 1
            missing.update(prediction.missing or ())
            yield prediction.to_dict(id_feature)

    if file:
        write_predictions(file, rows())
    else:
        for row in rows():
            echo_json(row)
    if missing:
        counts = [f"{name!r} in {count:,}" for name, count in missing.most_common()]
        echo(
            "note: rows lack features that the schema has in every record, and the "
            f"model took them for missing: {', '.join(bounded(counts))} of {number:,}",
            err=True,
            fg="yellow",
        )
    if file is None:
        return None
    show = partial(echo, f"wrote {formats.plural(number, 'prediction')} to {output}")
    facts = {"file": str(file), "predictions": number, "missing": dict(missing)}
    return Result(facts, show)
