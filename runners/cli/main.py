"""Entry point of ``sluice``: finds the verb, runs it, turns errors into exit codes.

It imports click and nothing heavy; ``sluice --help`` answers at once.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runners.engine import Engine


def _packages_missing(name: str | None) -> None:
    """Says that this is a Python without the packages, such as the system's."""
    sys.stderr.write(
        f"Sluice's packages are not installed in this Python: {sys.executable}\n"
        f"  missing:  {name}\n"
        "  try:      make setup, then .venv/bin/sluice --help\n"
    )


try:
    import click

    from runners.cli.echo import echo_error, echo_json, echoed_warnings
    from runners.cli.options import exit_on_sigint, typed_command
    from sluice.errors import ExitCode, SluiceError, printable
    from sluice.network import begin_command
    from sluice.secrets import redact
    from sluice.version import __version__
except ModuleNotFoundError as missing:
    _packages_missing(missing.name)
    sys.exit(2)

# By verb, the line of --help: for help no module of a verb is imported.
_VERBS = {
    "init": "Generate a config and a schema from TFRecords.",
    "run": "Run a pipeline on this machine.",
    "try": "Train and judge a model, and push none.",
    "tune": "Search for the best values of a config.",
    "retrain": "Run a pipeline if there is a reason to train.",
    "resume": "Resume an unfinished run.",
    "worker": "Train as a worker of a run on another machine.",
    "cancel": "Stop the run in progress.",
    "status": "Show a run, or the last run of every pipeline.",
    "logs": "Print the log of a node.",
    "runs": "List and compare the runs of a pipeline.",
    "diff": "Show what differs between two runs.",
    "report": "Draw the page of a run.",
    "explain": "Explain whether a node would run, and why.",
    "graph": "Show the graph of a pipeline.",
    "lineage": "Trace the lineage of an artifact.",
    "gc": "Delete artifacts that nothing needs any more.",
    "validate": "Check a config without running anything.",
    "rehearse": "Run the compiled pipeline here, as its service would.",
    "compile": "Compile a pipeline for Vertex AI or Kubeflow.",
    "submit": "Run a pipeline on Vertex AI.",
    "config": "Print the resolved config.",
    "schema": "Show, compare and change the reviewed schema.",
    "predict": "Predict with the pushed model.",
    "serve": "Serve pushed models by REST and gRPC.",
    "models": "List pushed versions, or retire a baseline.",
    "schedule": "Run a pipeline on a schedule of a service.",
    "cluster": "Train on several machines of your own.",
    "ui": "Show pipelines and runs in the browser.",
    "image": "Write the files of the nodes' image for a service.",
    "beam-workers": "Run the workers of a Flink cluster's machine.",
    "data": "List or write the sample data sets.",
    "doctor": "Show versions and devices of this machine.",
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return None
        ctx.with_resource(echoed_warnings())
        with exit_on_sigint():
            # A module cannot be called ``try``.
            module = "trial" if name == "try" else name.replace("-", "_")
            return importlib.import_module(f"runners.cli.{module}").command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 usage, 3 data, 4 model gate, 5 serving, 6 locked, "
    "7 a node failed, 8 a remote service, 130 and 143 interrupted.",
)
@click.version_option(__version__, prog_name="sluice")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def cli(verbose: bool) -> None:
    """Run TFX pipelines from TFRecords to a served model."""


def main(arguments: list[str] | None = None, *, engine: Engine | None = None) -> None:
    """Runs the command line and exits with its code.

    Args:
      arguments: None for those of the process.
      engine: executes runs; None for processes of this machine.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    begin_command()
    try:
        result = cli.main(arguments, "sluice", standalone_mode=False, obj=engine)
        code = result if isinstance(result, int) else ExitCode.DONE
    except BrokenPipeError:
        # The reader, such as `head`, has enough.
        sys.stderr.close()
        code = ExitCode.DONE
    except (Exception, KeyboardInterrupt) as error:
        code, message = _report(error, verbose=arguments[:1] in (["-v"], ["--verbose"]))
        if "--json" in arguments:
            with suppress(BrokenPipeError):
                echo_json(_document(code, message))
    sys.exit(int(code))


def _report(error: BaseException, verbose: bool) -> tuple[ExitCode, str]:
    """Prints an error to stderr; returns its exit code and message."""
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        return ExitCode.INTERRUPTED, "interrupted"
    if isinstance(error, click.ClickException):
        error.message = printable(error.message)
        error.show()
        return ExitCode.USAGE, error.format_message()
    if isinstance(error, ModuleNotFoundError):
        _packages_missing(error.name)
        return ExitCode.USAGE, str(error)
    if verbose:
        import traceback

        sys.stderr.write(redact(traceback.format_exc()))
    what = f"Sluice itself failed: {type(error).__name__}: {error}"
    bug = SluiceError(what, hint="sluice -v ...")
    explained = error if isinstance(error, SluiceError) else bug
    echo_error(str(explained))
    return explained.exit_code, str(explained)


def _document(code: ExitCode, message: str) -> dict[str, Any]:
    """Returns the JSON form of an error: the record of a run that has not begun."""
    from sluice.record.run_record import RunRecord

    refused = RunRecord("", "", typed_command())
    refused.fail(message, code)
    refused.end(code if code == ExitCode.INTERRUPTED else None)
    return refused.to_dict()


if __name__ == "__main__":
    main()
