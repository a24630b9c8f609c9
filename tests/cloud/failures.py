"""Failures that tests order from the fakes of services."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass
class Failure:
    """A failure of the next requests that match; what it means is the server's.

    Attributes:
      method: such as "GET".
      path: a regular expression, searched for in path and query.
      status: of HTTP, or a value of the server's own.
      times: number of requests.
      message: of the error.
      after: number of matching requests that do not fail yet.
    """

    method: str
    path: str
    status: int
    times: int = 1
    message: str = ""
    after: int = 0


def next_failure(failures: list[Failure], method: str, path: str) -> Failure | None:
    """Returns the failure of a request, which is counted; None if it does not fail."""
    for failure in failures:
        matches = failure.method == method and re.search(failure.path, path)
        if matches and failure.after > 0:
            failure.after -= 1
        elif matches and failure.times > 0:
            failure.times -= 1
            return failure
    return None
