"""``sluice models list|retire|rollback NAME``: pushed versions and baselines."""

from __future__ import annotations

from functools import partial

import click

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, typed_command, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.operations.find_run import config_words
from runners.operations.models import ListedModel, list_models, retire, rollback
from sluice.workspace import next_command

_reason_option = click.option(
    "--reason", required=True, metavar="TEXT", help="The reason; it is recorded."
)


@click.group()
def command() -> None:
    """The models of a pipeline: pushed versions and baselines."""


@verb("list", group=command)
@config_argument
def list_(config: Config) -> Result:
    """List the pushed versions of the pipeline NAME, newest first.

    All their files are read: a version that differs from what was pushed is damaged.
    """
    listed = list_models(config)
    show = partial(_print_versions, listed)
    if not listed:
        command = next_command("run", *config_words(config))
        text = f"no version of {config.name} has been pushed yet; try: {command}"
        show = partial(echo, text)
    return Result([item.to_dict() for item in listed], show)


def _print_versions(listed: list[ListedModel]) -> None:
    columns = ("version", "published", "run", "digest", "state", "path")
    table = make_table(*columns, folded=("path",))
    for model in listed:
        version = model.version
        table.add_row(
            str(version.version),
            (version.published_at or "")[:19],
            str(version.facts.get("pipeline_run_id") or ""),
            (version.digest or "")[:12],
            plain(
                ", ".join(model.flaws) or ("rollback" if version.rollback else "ok"),
                "yellow" if model.flaws else "",
            ),
            version.uri,
        )
    console = make_console()
    console.print(table)
    for model in listed:
        for state, why in model.flaws.items():
            text = f"version {model.version.version} is {state}: {why}"
            say(console, text, "yellow")
        if model.version.rollback:
            say(console, f"version {model.version.version} is {model.version.rollback}")


@verb("retire", group=command)
@click.argument("name")
@click.argument("reference", metavar="VERSION|artifact:ID")
@_reason_option
def retire_(name: str, reference: str, reason: str) -> Result:
    """Retire a blessed model of NAME: it is neither pushed again nor a baseline.

    The baseline is the latest blessed model that is neither missing nor retired. A
    retired model that is served stays served until another is pushed.
    """
    facts = retire(load_config(name), reference, reason, typed_command())
    (retired,) = facts["retired"]
    baseline = f"the next baseline: {facts['baseline'] or 'none'}"
    stays = "where it is served, it stays served until another version is pushed"
    return Result(facts, partial(echo, f"retired: {retired['name']}", baseline, stays))


@verb("rollback", group=command)
@click.argument("name")
@click.argument("version", type=int, required=False)
@_reason_option
@click.option("--dry-run", is_flag=True, help="Show what would be done.")
def rollback_(name: str, version: int | None, reason: str, dry_run: bool) -> Result:
    """Serve an earlier VERSION of NAME again, and retire the models after it.

    Its files are published under the next number, which every server takes up. Without
    VERSION it is the newest one before the served version that is another model, intact
    and not retired. The next run is compared with it.
    """
    config = load_config(name)
    facts = rollback(config, version, reason, typed_command(), dry_run=dry_run)
    again = f"version {facts['version']}"
    lines = [f"{again} is served again, as version {facts['published']}"]
    if dry_run:
        lines = [f"{again} would be served again, instead of version {facts['from']}"]
    withdrawn = [f"version {number}" for number in facts["withdrawn"]]
    lines.append(f"withdrawn: {', '.join(withdrawn)}")
    lines += [f"retired: {item['name']}" for item in facts["retired"]]
    lines.append(f"the next baseline: {facts['baseline'] or 'none'}")
    return Result(facts, partial(echo, *lines))
