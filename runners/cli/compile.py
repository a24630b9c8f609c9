"""``sluice compile NAME``: the pipeline as a job of Vertex AI or Kubeflow."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from pipeline.config.config import Config
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_argument, verb
from runners.operations.compile import compile_for_service
from sluice.errors import UsageError
from sluice.storage.output_path import resolve_output_path, write_output


@verb()
@config_argument
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    required=True,
    help="Write the job to FILE: .json, or .yaml for the pipeline alone.",
)
def command(config: Config, output: str) -> Result:
    """Compile the pipeline NAME for Vertex AI or Kubeflow, as --profile says.

    Nothing is submitted or uploaded; the files that the job needs in the bucket are
    listed. For Kubeflow, and where the config has cloud.schedule, the first node
    selects the spans, and stops the run where there is nothing new.
    """
    file = resolve_output_path(output, Path.cwd(), "--output")
    if file.suffix not in (".json", ".yaml", ".yml"):
        raise UsageError(f"--output {output} does not end in .json, .yaml or .yml")
    warnings: list[str] = []
    compiled = compile_for_service(config, warnings.append)
    for warning in warnings:
        echo_warning(warning)
    # JSON is YAML too.
    is_job = file.suffix == ".json"
    document = compiled.job if is_job else compiled.job["pipelineSpec"]
    text = json.dumps(document, indent=1, sort_keys=True)
    write_output(file, f"{text}\n", "job")
    uploads = [{"path": str(item.path), "uri": item.uri} for item in compiled.uploads]
    facts = {"pipeline": config.name, "file": str(file), "uploads": uploads}
    lines = [f"upload before the run: {x['path']} to {x['uri']}" for x in uploads]
    show = partial(echo, f"wrote {output}", *lines)
    return Result({**facts, "warnings": warnings}, show)
