"""``sluice compile NAME``: the pipeline as a job of Vertex AI or Kubeflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import config_options, json_option, workspace_option
from runners.operations.compile import CompileRequest, compile_pipeline
from sluice.errors import UsageError
from sluice.storage.output_path import resolve_output_path, write_output


@click.command(name="compile")
@config_options
@click.option(
    "--engine",
    type=click.Choice(["vertex", "kubeflow"]),
    help="Default: the config's cloud.engine.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    required=True,
    help="Write the job to FILE: .json, or .yaml for the pipeline alone.",
)
@click.option(
    "--scheduled",
    is_flag=True,
    help="For a schedule: the first node selects the spans, and stops the run where "
    "there is nothing new.",
)
@workspace_option
@json_option
def compile_(output: str, as_json: bool, **asked: Any) -> None:
    """Compile the pipeline NAME for Vertex AI or Kubeflow Pipelines.

    Nothing is submitted or uploaded; the files that the job needs in the bucket are
    listed.
    """
    file = resolve_output_path(output, Path.cwd(), "--output")
    if file.suffix not in (".json", ".yaml", ".yml"):
        raise UsageError(
            "--output has no known format",
            expected="a file that ends in .json, .yaml or .yml",
            actual=output,
        )
    compiled = compile_pipeline(CompileRequest(**asked))
    for warning in compiled.warnings:
        echo(f"warning: {warning}", fg="yellow", err=True)
    spec = compiled.job["pipelineSpec"]
    # JSON is YAML too.
    document = compiled.job if file.suffix == ".json" else spec
    text = json.dumps(document, indent=1, sort_keys=True)
    write_output(file, f"{text}\n", "job")
    uploads = [{"path": str(item.path), "uri": item.uri} for item in compiled.uploads]
    if as_json:
        echo_json(
            {
                "schema_version": 1,
                "pipeline": spec["pipelineInfo"]["name"],
                "file": str(file),
                "uploads": uploads,
                "findings": [item.to_dict() for item in compiled.warnings],
            }
        )
        return
    echo(f"wrote {output}")
    for item in uploads:
        echo(f"upload before the run: {item['path']} to {item['uri']}")
