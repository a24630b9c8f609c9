"""``sluice predict NAME FILE...``: predicts with the newest pushed model."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pipeline.config.config import Config
from runners.cli.echo import echo, echo_json
from runners.cli.options import Result, config_argument, verb
from runners.cli.rich_console import make_progress
from runners.operations.predict import predict, predict_to_folder
from serving.prediction_files import SUFFIXES, write_predictions
from serving.predictor import Prediction
from sluice.errors import UsageError
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
    "--url",
    help="Ask a server: http://HOST:PORT, https://HOST:PORT or grpc://HOST:PORT.",
)
@click.option(
    "id_feature", "--id", metavar="FEATURE", help="Copy it into each prediction."
)
@click.option(
    "form",
    "--as",
    type=click.Choice(("jsonl", "prediction-logs")),
    default="jsonl",
    help="What a FOLDER gets; default: jsonl.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE|FOLDER",
    help="Write to FILE: .csv, .jsonl or .parquet; or a file per input to FOLDER.",
)
def command(
    config: Config,
    files: tuple[str, ...],
    limit: int | None,
    version: int | None,
    trust: bool,
    url: str | None,
    id_feature: str | None,
    form: str,
    output: str | None,
) -> Result | None:
    """Predict FILES with the pushed model of NAME; one JSON object per line.

    Each file is TFRecords of tf.Example, Parquet, CSV, an image, or JSON lines of
    raw features; "-" reads JSON lines from standard input. With -o the predictions
    are written to a file, which appears once it is complete; with a folder several
    inputs are predicted at once, and a call that was interrupted goes on where it
    was. A version is loaded only if it is byte for byte what was pushed; with --url
    a server has loaded it. With --json an error is JSON, too.
    """
    if id_feature in {*Prediction.__annotations__} - {"id", "log"}:
        what = f"{id_feature!r} cannot be the id: a prediction has a value of that name"
        raise UsageError(what, where="--id")
    is_folder, as_logs = bool(output and not Path(output).suffix), form != "jsonl"
    if as_logs and (id_feature or not is_folder):
        what = "prediction logs are written to a folder, and have no --id"
        raise UsageError(what, where="--as")
    if output and is_folder:
        if limit:
            raise UsageError("--limit does not go with a folder", where=output)
        folder = resolve_output_path(output, Path.cwd(), "--output")
        with make_progress(len(files)) as on_done:
            paths = predict_to_folder(
                config,
                files,
                folder,
                version=version,
                trust=trust,
                id_feature=id_feature,
                url=url,
                as_logs=as_logs,
                on_done=on_done,
            )
        facts = {"files": [str(path) for path in paths]}
        return Result(facts, partial(echo, f"wrote {len(paths)} files to {output}"))
    file = output and resolve_output_path(output, Path.cwd(), "--output")
    inputs = [Path(name).resolve() for name in files]
    if file and (file.suffix not in SUFFIXES or file in inputs):
        what = f"--output must end in {', '.join(SUFFIXES)}, and be no input"
        raise UsageError(what, where=file)
    found = predict(
        config,
        files,
        limit=limit,
        version=version,
        trust=trust,
        id_feature=id_feature,
        url=url,
    )
    answers = (prediction.to_dict(id_feature) for prediction in found)
    if not file:
        for answer in answers:
            echo_json(answer)
        return None
    write_predictions(file, answers)
    return Result({"file": str(file)}, partial(echo, f"wrote {output}"))
