"""Options shared by several verbs, and how a verb is called."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from runners.cli.echo import echo_json
from sluice.errors import ExitCode

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def config_options(function: _Verb) -> _Verb:
    """Adds NAME, ``--profile`` and ``--set``."""
    for option in (
        click.option(
            "overrides",
            "--set",
            multiple=True,
            metavar="KEY=VALUE",
            help="Override a key, such as train.epochs=3. Repeatable.",
        ),
        click.option(
            "--profile", metavar="NAME", help="Overlay configs/profiles/NAME."
        ),
        click.argument("name"),
    ):
        function = option(function)
    return function


def config_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds NAME, ``--profile`` and ``--set``, and passes the config that they load."""

    @config_options
    @wraps(function)
    def load(
        name: str, profile: str | None, overrides: tuple[str, ...], **others: Any
    ) -> Any:
        from pipeline.config.load import load_config

        config = load_config(name, profile=profile, overrides=overrides)
        return function(config=config, **others)

    return load


def typed_command() -> str:
    """Returns the command line of this process."""
    return shlex.join(["sluice", *sys.argv[1:]])


workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of nodes to run in parallel; default: the number of cores.",
)

wait_option = click.option("--wait", is_flag=True, help="Wait for another run to end.")

run_option = click.option(
    "run_id", "--run", metavar="ID", help="The run; default: the last one."
)


def _use_workspaces(
    context: click.Context, _: click.Parameter, folder: str | None
) -> None:
    if folder and not context.resilient_parsing:
        from sluice.workspace import workspaces_in

        context.with_resource(workspaces_in(folder))


@dataclass(frozen=True)
class Result:
    """What a verb has found.

    Attributes:
      facts: for ``--json``: the keys of an object, or a list.
      show: prints it for people; None if that is done.
      exit_code: of the process.
    """

    facts: dict[str, Any] | list[Any]
    show: Callable[[], Any] | None = None
    exit_code: int = 0


def verb(
    name: str | None = None,
    *,
    group: click.Group | None = None,
    short_help: str | None = None,
) -> Callable[[Callable[..., Result | None]], click.Command]:
    """Makes a command of a function, with ``--workspace`` and ``--json``.

    Its result is printed for people or as JSON; a verb that prints by itself returns
    None.
    """

    def decorate(function: Callable[..., Result | None]) -> click.Command:
        @wraps(function)
        def call(*arguments: Any, as_json: bool, **options: Any) -> int:
            result = function(*arguments, **options)
            if result is None:
                return 0
            if as_json:
                facts = result.facts
                head = {"schema_version": 1}
                echo_json({**head, **facts} if isinstance(facts, dict) else facts)
            elif result.show:
                result.show()
            return result.exit_code

        command = click.command(name, short_help=short_help)(call)
        command.params += [_WORKSPACE, _JSON]
        if group is not None:
            group.add_command(command)
        return command

    return decorate


_WORKSPACE = click.Option(
    ["--workspace"],
    metavar="DIR",
    is_eager=True,
    expose_value=False,
    callback=_use_workspaces,
    help="The folder of all workspaces; default: <project root>/workspace.",
)
_JSON = click.Option(["as_json", "--json"], is_flag=True, help="Print JSON on stdout.")


def wants_json() -> bool:
    """Whether the command that runs was given ``--json``."""
    return bool(click.get_current_context().params["as_json"])


@contextmanager
def exit_on_sigint() -> Iterator[None]:
    """Ends the process at once on Ctrl-C, while there is nothing to clean up.

    A ``KeyboardInterrupt`` raised during an import is lost in some callbacks of the
    interpreter, and pydantic turns it into a panic.
    """
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(ExitCode.INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
