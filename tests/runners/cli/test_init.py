"""``sluice init``: proposed configs and schemas, and data that is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from runners.cli.init import command as init
from sluice.errors import UsageError
from tests.kit.page_text import check_golden

pytestmark = pytest.mark.tf

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def propose(here, capsys):
    """Does ``sluice init NAME --examples PATTERN --json``, and returns the object."""

    def propose(name, pattern, *options):
        words = [name, "--examples", pattern, "--json", *options]
        init.main(words, standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    return propose


def valid(name):
    return validate_config(load_config(name))


def test_the_screen_and_the_config(clicks, here, capsys):
    words = ["clicks", "--examples", "data/the clicks", "--label", "clicked"]
    init.main(words, standalone_mode=False)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    config = (here / "configs" / "clicks.yaml").read_text()
    check_golden(GOLDEN / "init.txt", "\n".join([*lines, "", config]))
    assert sorted(p.name for p in (here / "configs").iterdir()) == ["clicks.yaml"]


def test_existing_files_are_replaced_only_with_force(clicks, here, propose):
    config = here / "configs" / "clicks.yaml"
    config.parent.mkdir()
    config.write_text("mine")
    with pytest.raises(UsageError, match="already exists") as caught:
        propose("clicks", "data/the clicks/*", "--label", "clicked")
    assert caught.value.examples == (str(config),)
    assert "--force" in str(caught.value.hint)
    assert config.read_text() == "mine" and not (here / "schemas").exists()
    propose("clicks", "data/the clicks/*", "--label", "clicked", "--force")
    assert valid("clicks").config.name == "clicks"


@pytest.mark.parametrize("name", ["My Clicks", "../x"])
def test_an_invalid_name_is_refused(clicks, propose, name):
    with pytest.raises(UsageError, match="is not a valid pipeline name") as caught:
        propose(name, "data/the clicks/*")
    assert "lower-case letters" in caught.value.what
