"""What is left of a log without what libraries say, and where its error begins."""

from pathlib import Path

import pytest

from reports.read_run import is_error, without_library_lines

pytestmark = pytest.mark.unit

# Logs of real nodes, one after the other: TensorFlow's start, Transform and Evaluator,
# and a Trainer whose model fails in its first step.
LOG = (Path(__file__).parent / "failed_node.txt").read_text()


def test_only_lines_of_the_node_and_its_traceback_are_left():
    lines = without_library_lines(LOG).splitlines()
    begins = "one_device: 1 replica on the CPU, since no accelerator is visible"
    assert lines == LOG[LOG.index(begins) :].splitlines()
    first, traceback, cause = (line for line in lines if is_error(line))
    assert (first, lines.index(first)) == ("ERROR:absl:Execution 56 failed.", 1)
    assert traceback == "Traceback (most recent call last):"
    assert cause.endswith("InvalidArgumentError: Graph execution error:")


@pytest.mark.parametrize(
    "line",
    [
        "WARNING:my_model:no weights",
        "ERROR:absl:Execution 5 failed.",
        "/home/user/project/model.py:3: UserWarning: no weights",
        "2026-11-24 22:53:16.8: E tensorflow/core/a.cc:1] out of memory",
        '  File "/usr/lib/python3.10/a.py", line 12, in f',
        "Error in model.py: a warning",
    ],
)
def test_errors_and_what_user_code_says_are_kept(line):
    around = f"WARNING:absl:one\n{line}\nWARNING:absl:two\n"
    assert without_library_lines(around) == f"{line}\n"


def test_a_traceback_after_a_warning_is_whole():
    warning = "/usr/lib/python3.10/asyncio/a.py:3: RuntimeWarning: never awaited\n"
    traceback = '  File "/usr/lib/python3.10/a.py", line 1, in f\n'
    assert without_library_lines(warning + traceback) == traceback
