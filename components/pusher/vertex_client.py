"""Google's client of Vertex AI's models and endpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from sluice.errors import RemoteError
from sluice.vertex_ai import Backoff, VertexConnection

BACKOFF = Backoff(longest_s=10.0, total_s=300.0)
_POLL_S = 10.0
# A deployment starts machines and loads the model.
_OPERATION_TIMEOUT_S = 7200.0


class VertexClient(VertexConnection):
    """Clients of one project and region."""

    def __init__(self, project: str, region: str) -> None:
        super().__init__(project, region, backoff=BACKOFF)

    def wait(self, operation: Any) -> dict[str, Any]:
        """Returns the response of a long-running operation.

        The client would poll ``/ui/...``, which is not a documented address.
        """
        from google.api_core.exceptions import from_http_status

        url = f"{self.address}/v1/{operation.operation.name}"
        deadline_s = time.monotonic() + _OPERATION_TIMEOUT_S
        poll = partial(self.request, "GET", url)
        while not (answer := self.call(poll)).get("done"):
            if time.monotonic() > deadline_s:
                raise RemoteError(
                    "Vertex AI has not finished an operation",
                    where=operation.operation.name,
                    expected=f"at most {_OPERATION_TIMEOUT_S:g} s",
                )
            time.sleep(_POLL_S)
        if error := answer.get("error"):
            # Not a transient one: the operation has failed.
            raise from_http_status(400, f"{error.get('message')}")
        return answer.get("response", {})

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Adds to an error that the model was pushed, but not ``what``."""
        try:
            yield
        except RemoteError as error:
            raise RemoteError(
                f"the model was pushed, but not {what}: {error.what}",
                where=error.where,
                expected=error.expected,
                actual=error.actual,
                hint=error.hint or "run the Pusher again: it goes on from there",
            ) from error

    @cached_property
    def models(self) -> Any:
        from google.cloud import aiplatform_v1 as vertex

        return self.make_client(vertex.ModelServiceClient)

    @cached_property
    def endpoints(self) -> Any:
        from google.cloud import aiplatform_v1 as vertex

        return self.make_client(vertex.EndpointServiceClient)
