"""Function calls in processes of their own."""

import os

import pytest

from runners.local.processes import (
    Child,
    Surroundings,
    call,
    wait,
    wait_until_ready,
)
from sluice import secrets
from sluice.errors import NodeError
from sluice.node_environment import NodeEnvironment
from tests.kit.wait import wait_for

pytestmark = pytest.mark.tf

SECRET = "hunter2secret"


@pytest.fixture
def around(server, tmp_path):
    return Surroundings(tmp_path, tmp_path, NodeEnvironment(spans="here"))


@pytest.fixture
def log(tmp_path):
    return tmp_path / "logs" / "child.log"


def test_a_call_returns_a_value(around, log, tmp_path):
    assert call("os:getcwd", log=log, around=around) == str(tmp_path)
    assert call("os:getenv", "SLUICE_SPANS", log=log, around=around) == "here"
    assert call("tempfile:gettempdir", log=log, around=around) == str(tmp_path)
    tfx = call("importlib.util:find_spec", "tfx.components", log=log, around=around)
    assert tfx.name == "tfx.components"


def test_a_call_raises_with_the_traceback_of_its_process(around, log):
    with pytest.raises(ZeroDivisionError) as raised:
        call("operator:truediv", 1, 0, log=log, around=around)
    assert "Traceback" in str(raised.value.__cause__)
    assert "ZeroDivisionError" in log.read_text()


def test_a_process_that_dies_is_an_error(around, log):
    with pytest.raises(NodeError, match=r"was killed by signal 6 \(SIGABRT"):
        call("os:abort", log=log, around=around)
    # The server goes on.
    assert call("os:getpid", log=log, around=around) != os.getpid()


@pytest.mark.parametrize("as_last", ["; sleep 1000", "; kill -9 $PPID", ""])
def test_no_secret_is_ever_in_a_log(around, log, monkeypatch, as_last):
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("PASSWORD", SECRET)
    secrets.remember("${env:PASSWORD}")
    assert wait_until_ready(lambda: None, lambda: False)
    # Without a line's end, in two parts, and more than a pipe holds.
    command = (
        "echo asked; printf $PASSWORD; printf hunt; sleep 0.3; printf er2secret, "
        "&& head -c 800000 /dev/zero | tr '\\0' 0 && printf the-end" + as_last
    )
    child = Child("prints", log, around, "os:system", command)

    def read() -> str:
        wait([child])
        text = log.read_text() if log.exists() else ""
        assert "hunt" not in text
        return text

    wait_for(lambda: "the-end" in read())
    child.close()
    start = "asked\n${env:PASSWORD}${env:PASSWORD},"
    assert read() == start + 800_000 * "0" + "the-end"
