"""Results and exceptions of jobs on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.local.job_result import (
    forget_result,
    read_exception,
    read_result,
    write_exception,
    write_result,
)

pytestmark = pytest.mark.unit


class Picky(Exception):
    """Cannot be made from its own arguments, as many exceptions cannot."""

    def __init__(self, what: str, *, why: str) -> None:
        super().__init__(f"{what}: {why}")


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_an_exception_is_read_with_the_traceback_of_its_process(
    tmp_path: Path,
) -> None:
    write_exception(tmp_path, "Trainer", _raised(KeyError("fare")))
    error = read_exception(tmp_path, "Trainer")
    assert isinstance(error, KeyError) and error.args == ("fare",)
    assert "in _raised" in str(error.__cause__)


@pytest.mark.parametrize(
    "error", [Picky("no", why="reasons"), ValueError(lambda: None)]
)
def test_an_exception_that_cannot_be_pickled_is_its_traceback(
    tmp_path: Path, error: Exception
) -> None:
    write_exception(tmp_path, "Trainer", _raised(error))
    left = read_exception(tmp_path, "Trainer")
    assert left is not None
    assert type(error).__name__ in str(left) and "in _raised" in str(left)


def test_results_of_the_attempt_before_are_deleted(tmp_path: Path) -> None:
    assert read_exception(tmp_path, "Trainer") is None
    write_result(tmp_path, "Trainer", {"state": "failed"})
    write_exception(tmp_path, "Trainer", _raised(KeyError("fare")))
    forget_result(tmp_path, "Trainer")
    assert read_result(tmp_path, "Trainer") is None
    assert read_exception(tmp_path, "Trainer") is None


def test_a_damaged_file_is_no_exception(tmp_path: Path) -> None:
    write_exception(tmp_path, "Trainer", _raised(KeyError("fare")))
    (path,) = (tmp_path / "results").iterdir()
    path.write_bytes(b"cut sho")
    assert read_exception(tmp_path, "Trainer") is None
