"""Errors of a request: canonical codes of gRPC, and their HTTP status."""

from __future__ import annotations

from typing import TypeAlias

import grpc

Code: TypeAlias = grpc.StatusCode
_BY_NUMBER = {code.value[0]: code for code in Code}
# As in TensorFlow Serving's ``model_servers/http_server.cc``; the others are 500.
_HTTP_STATUS = {
    Code.INVALID_ARGUMENT: 400,
    Code.FAILED_PRECONDITION: 400,
    Code.OUT_OF_RANGE: 400,
    Code.NOT_FOUND: 404,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.CANCELLED: 499,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.DEADLINE_EXCEEDED: 504,
}


class StatusError(Exception):
    """A request that fails, with its canonical code and what the client is told."""

    def __init__(self, code: Code, message: str, http_status: int | None = None):
        super().__init__(message)
        self.code, self.message = code, message
        self.http_status = http_status or _HTTP_STATUS.get(code, 500)

    @classmethod
    def of(cls, error: Exception) -> StatusError:
        """Returns the status of any exception, such as one of TensorFlow's."""
        if isinstance(error, StatusError):
            return error
        number = getattr(error, "error_code", None)  # Of ``tf.errors.OpError``.
        text = str(getattr(error, "message", error)) or type(error).__name__
        text = text.removeprefix("Graph execution error:\n\n")
        return cls(_BY_NUMBER.get(number, Code.INTERNAL), text)


def invalid(message: str) -> StatusError:
    """Returns an error of the request itself: INVALID_ARGUMENT."""
    return StatusError(Code.INVALID_ARGUMENT, message)
