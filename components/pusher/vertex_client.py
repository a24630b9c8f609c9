"""Google's client of Vertex AI's models and endpoints, over REST.

``CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM`` selects another server, as for
``gcloud``; one on ``http://`` gets no credentials.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from sluice.errors import RemoteError

Answer = TypeVar("Answer")

REQUEST_TIMEOUT_S = 60.0
_OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RETRY_S = 300.0
_POLL_S = 10.0
# A deployment starts machines and loads the model.
_OPERATION_TIMEOUT_S = 7200.0


class VertexClient:
    """Clients of one project and region.

    Attributes:
      parent: the resource that models and endpoints belong to.
    """

    def __init__(self, project: str, region: str) -> None:
        self.parent = f"projects/{project}/locations/{region}"
        self._region = region

    def retry(self, request: Callable[[], Answer]) -> Answer:
        """Repeats a request, which first looks for what an earlier attempt has done."""
        from google.api_core import exceptions, retry

        transient = retry.if_exception_type(exceptions.Aborted)
        return retry.Retry(
            predicate=lambda error: (
                transient(error) or retry.if_transient_error(error)
            ),
            initial=_POLL_S / 10,
            maximum=_POLL_S,
            timeout=_RETRY_S,
        )(request)()

    def wait(self, operation: Any) -> dict[str, Any]:
        """Returns the response of a long-running operation.

        The client would poll ``/ui/...``, which is not a documented address.
        """
        from google.api_core.exceptions import from_http_response, from_http_status
        from google.auth.transport.requests import AuthorizedSession

        url = f"{self._address}/v1/{operation.operation.name}"
        deadline_s = time.monotonic() + _OPERATION_TIMEOUT_S

        def poll() -> dict[str, Any]:
            response = session.get(url, timeout=REQUEST_TIMEOUT_S)
            if not response.ok:
                raise from_http_response(response)
            return response.json()

        with AuthorizedSession(self._credentials) as session:
            while not (answer := self.retry(poll)).get("done"):
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
        import requests
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError

        kinds = (
            exceptions.GoogleAPIError,
            GoogleAuthError,
            requests.RequestException,
        )
        try:
            yield
        except kinds as error:
            cause = getattr(error, "cause", None) or error
            hint = "run the Pusher again: it goes on from there"
            if isinstance(cause, exceptions.Forbidden):
                hint = "grant these credentials roles/aiplatform.user in the project"
            elif isinstance(cause, exceptions.Unauthorized | GoogleAuthError):
                hint = "gcloud auth application-default login, or name a key file in "
                hint += "GOOGLE_APPLICATION_CREDENTIALS"
            raise RemoteError(
                f"the model was pushed, but not {what}",
                where=f"{self.parent} of Vertex AI",
                actual=str(cause),
                hint=hint,
            ) from error

    @property
    def _address(self) -> str:
        given = os.environ.get(_OVERRIDE, "").rstrip("/")
        return given or f"https://{self._region}-aiplatform.googleapis.com"

    @cached_property
    def _credentials(self) -> Any:
        from google import auth
        from google.auth.credentials import AnonymousCredentials

        if self._address.startswith("http://"):
            return AnonymousCredentials()
        return auth.default(scopes=[_SCOPE])[0]

    @cached_property
    def models(self) -> Any:
        from google.cloud import aiplatform_v1 as vertex

        return vertex.ModelServiceClient(**self._client_options())

    @cached_property
    def endpoints(self) -> Any:
        from google.cloud import aiplatform_v1 as vertex

        return vertex.EndpointServiceClient(**self._client_options())

    def _client_options(self) -> dict[str, Any]:
        return {
            "transport": "rest",
            "credentials": self._credentials,
            "client_options": {"api_endpoint": self._address},
        }
