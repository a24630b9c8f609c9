"""Arbitrary arguments end with exit code 0 or 2, never with a bug."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from runners.cli.main import main
from sluice.record.run_record import NodeRecord, RunRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

RUN_ID = "20260101T000000Z-aaaa"

WORDS = st.one_of(
    # As the operating system hands them on: no NUL, and bytes that are not UTF-8.
    st.binary(max_size=12).map(
        lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    ),
    st.sampled_from("digits taxi Trainer Trainor Trainer.model start".split()),
    st.sampled_from([RUN_ID, "..", "../" * 40, "/", "~", "/dev/null", "gs://b/x"]),
    st.sampled_from(["a" * 300, "a/" * 3000]),
    st.builds(
        lambda prefix, digits: prefix + digits,
        st.sampled_from(["", "v", "artifact:", "-"]),
        st.sampled_from(["0", "1", "007", "9" * 19, "9" * 5000, "\u0661"]),
    ),
)
KEYS = st.one_of(
    st.sampled_from("train.epochs data.dir data features.image.kind model".split()),
    st.sampled_from("evaluate.metrics label.classes schema description".split()),
    st.sampled_from("push.serving_dir private examples.complete_when".split()),
    st.sampled_from(["", "..", ".".join("a" * 2000)]),
)
VALUES = st.one_of(
    WORDS,
    st.sampled_from(["[", "{a: 1, a: 2}", "[" * 3000 + "]" * 3000, "&a [*a]", "|"]),
    st.sampled_from([".nan", "1e999", "0x" + "f" * 400, '"\\udead"', '"\\0"', "\t"]),
    st.sampled_from(["a: b", "{1: 2}", "- a", "[true, 1]", "null", "{}", "[[]]"]),
    st.sampled_from(["!!python/name:os.system", "os:system", "{SPAN}", "'{YYYY}'"]),
)
OVERRIDES = st.lists(
    st.builds(lambda key, value: f"--set={key}={value}", KEYS, VALUES), max_size=2
)


def _words(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    of = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*of).map(list)


VERBS = st.sampled_from(["config", "validate", "status", "runs", "logs", "gc"])
COMMANDS = st.one_of(
    st.builds(
        lambda verb, overrides: [verb, "digits", *overrides],
        st.sampled_from(["config", "validate"]),
        OVERRIDES,
    ),
    _words(VERBS, WORDS),
    _words("config", "digits", "--profile", WORDS),
    _words("logs", "digits", WORDS),
    _words("logs", "digits", "--run", WORDS),
    _words("lineage", "digits", WORDS),
    _words("status", "digits", "--workspace", WORDS),
)


@pytest.fixture(scope="module")
def root(project: Path) -> Path:
    """A project in which digits has run once, and left a log."""
    workspace = Workspace(project / "workspace" / "digits")
    workspace.prepare()
    record = RunRecord(RUN_ID, "digits", "2026-01-01T00:00:00+00:00", "sluice run")
    record.status, record.exit_code = "succeeded", 0
    record.nodes = [NodeRecord("Trainer", "Trainer", state="ran")]
    logs = workspace.run_dir(RUN_ID) / "logs"
    logs.mkdir(parents=True)
    (logs / "Trainer.log").write_text("trained\n")
    record.save(workspace.run_dir(RUN_ID))
    return project


def call(arguments: list[str]) -> tuple[int, str]:
    """Calls the command line; returns its exit code and what it wrote to stderr."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as end:
            err.flush()
            return int(end.code or 0), err.buffer.getvalue().decode()
    raise AssertionError("main has returned")


@settings(max_examples=100, deadline=None)
@given(command=COMMANDS)
def test_arbitrary_arguments_never_raise(root: Path, command: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("SLUICE_WORKSPACE", raising=False)
        code, err = call(command)
    assert code in (0, 2), err[:500]
    assert "Sluice itself failed" not in err
