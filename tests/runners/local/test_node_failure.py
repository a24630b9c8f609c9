"""Error messages for exceptions of nodes."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from runners.local.node_failure import explain_failure
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


def _raised(function) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def _explain(function) -> tuple[str, int]:
    failure = explain_failure("Trainer", _raised(function))
    return failure.message, failure.exit_code


def test_the_users_exception_is_shown_and_not_its_cause():
    def build() -> None:
        try:
            int("units")
        except ValueError as error:
            raise TypeError("model_params.units is no number") from error

    message, code = _explain(build)
    assert "Trainer failed: TypeError: model_params.units is no number" in message
    assert f"{Path(__file__).name}:" in message and "in build" in message
    assert code == 7


def test_a_config_error_names_the_line_of_the_component(tmp_path):
    module = tmp_path / "own_parts.py"
    module.write_text("def make():\n    return {}['limit']\n")
    names: dict = {}
    exec(compile(module.read_text(), str(module), "exec"), names)

    def create() -> None:
        try:
            names["make"]()
        except KeyError as error:
            raise ConfigError("The component cannot be created.", hint="h") from error

    message, code = _explain(create)
    assert message.splitlines() == [
        "The component cannot be created.",
        f"    raised at {module}:2 in make",
        "  try:      h",
    ]
    assert code == 2


def test_the_users_line_is_found_in_the_message_of_keras(tmp_path):
    code = tmp_path / "my_models.py"
    code.write_text("\n")
    text = (
        'Exception encountered when calling layer "l" (type L).\n\n'
        "in user code:\n\n"
        f'    File "{code}", line 14, in call  *\n'
        "        raise ValueError('user says no')\n\n"
        "    ValueError: user says no\n"
    )

    def fit() -> None:
        raise ValueError(text)

    error = _raised(fit).with_traceback(None)
    message = explain_failure("Trainer", error).message
    assert f"{code}:14 in call" in message
    assert "in user code:" in message


UNREACHABLE = "no connection to the storage service"
UNDECODED = (
    "Graph execution error:\n\nDetected at node map/DecodeImage defined at\n"
    "Invalid PNG data, size 124\n\t [[{{node map/while/DecodeImage}}]]\n"
    "\t [[IteratorGetNext]] [Op:__inference_train_function_532]"
)


@pytest.mark.parametrize(
    ("error", "words", "exit_code"),
    [
        (MemoryError(), "lower train.batch_size", 7),
        (OSError(errno.ENOSPC, "No space left"), "free some disk space", 7),
        (ValueError(), "no message", 7),
        # No fault of the node.
        (
            OSError(errno.EHOSTUNREACH, UNREACHABLE, "gs://b/x"),
            f"{UNREACHABLE}: 'gs",
            8,
        ),
        (
            RuntimeError(UNDECODED),
            "image does not decode\n  found:    Invalid PNG data, size 124\n",
            3,
        ),
    ],
)
def test_failures_with_a_hint_or_an_exit_code_of_their_own(error, words, exit_code):
    def fail() -> None:
        raise error

    message, code = _explain(fail)
    assert words in message and code == exit_code
