"""``docs/run_record.md`` lists every key of ``run.json``, and no other."""

import dataclasses
import json
import re
from typing import get_args

import pytest

from sluice.project import own_root
from sluice.record import parts, run_record
from tests.kit.runs import a_check, a_gate

pytestmark = pytest.mark.unit

PAGE = (own_root() / "docs" / "run_record.md").read_text("utf-8")


def _keys(kind):
    return {field.name for field in dataclasses.fields(kind)}


VERDICT = json.loads(a_gate("data", a_check()).to_json())
# The text just before a table, and the keys in its first column.
TABLES = {
    "## run.json": set(run_record.RunRecord("", "", "", "").to_dict()),
    "### nodes": _keys(parts.NodeRecord),
    "### gates": VERDICT.keys(),
    "Each row:": VERDICT["rows"][0].keys(),
}
# Keys of the table of run.json whose row lists the keys of their values.
ROWS = {
    "error": _keys(parts.ErrorRecord),
    "pushes": _keys(parts.PushRecord) | set(get_args(parts.PushState)),
    "artifacts": _keys(parts.ArtifactRecord),
    "documents": _keys(parts.DocumentRecord),
}


@pytest.mark.parametrize("before", TABLES)
def test_a_table_lists_the_keys_of_its_type(before):
    _, _, after = PAGE.partition(f"\n{before}")
    found = re.search(r"(^\| `.*\n)+", after, re.MULTILINE)
    assert found
    rows = found[0].splitlines()
    names = {name for row in rows for name in re.findall("`(.+?)`", row.split("|")[1])}
    assert names == TABLES[before]


@pytest.mark.parametrize("key", ROWS)
def test_a_row_lists_the_keys_of_its_type(key):
    row = re.search(rf"^\| `{key}` \|(.*)", PAGE, re.MULTILINE)
    assert row and set(re.findall("`(.+?)`", row[1])) == ROWS[key]


@pytest.mark.parametrize(
    ("before", "key", "states"),
    [
        ("## run.json", "status", parts.RunStatus),
        ("### nodes", "state", parts.NodeState),
    ],
)
def test_a_row_lists_all_states(before, key, states):
    """In the row of this key; the words are elsewhere on the page, too."""
    _, _, after = PAGE.partition(f"\n{before}")
    row = re.search(rf"^\| `{key}` \|(.*)", after, re.MULTILINE)
    assert row and set(re.findall("`([a-z_]+)`", row[1])) == set(get_args(states))
