"""Connection to Vertex AI over REST: credentials, address, repeated requests.

Credentials are the platform's own (application default credentials); nothing of them is
stored. ``CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM``, as gcloud has it, names another
address, such as that of a private network.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from sluice.errors import UsageError
from sluice.google_errors import explain_errors, is_transient

Answer = TypeVar("Answer")

REQUEST_TIMEOUT_S = 60.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_OVERRIDES = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"


@dataclass(frozen=True)
class Backoff:
    """Waits between the attempts of a request that fails for a moment."""

    first_s: float = 1.0
    longest_s: float = 30.0
    total_s: float = 180.0


class VertexConnection:
    """Requests to one project and region.

    Args:
      project: by its id; None for that of the credentials.
      region: such as ``europe-west4``.
      service_account: that jobs run as; None for the service's default.
      credentials: None for the platform's own.
      backoff: of requests.
    """

    def __init__(
        self,
        project: str | None,
        region: str,
        *,
        service_account: str | None = None,
        credentials: Any = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.region = region
        self._project = project
        self._service_account = service_account
        self._given = credentials
        self._backoff = backoff or Backoff()

    @cached_property
    def project(self) -> str:
        """The project's id.

        Raises:
          UsageError: neither the config nor the credentials name one.
        """
        project = self._project or self.credentials[1]
        if not project:
            raise UsageError(
                "no Google Cloud project is named",
                where="cloud.project",
                hint="--set cloud.project=MY_PROJECT",
            )
        return project

    @property
    def parent(self) -> str:
        """The place of the project's resources in the region."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def address(self) -> str:
        """The address of the service in the region."""
        default = f"https://{self.region}-aiplatform.googleapis.com"
        return endpoint("AIPLATFORM", default)

    def make_client(self, kind: Callable[..., Any]) -> Any:
        """Returns a client of google-cloud-aiplatform for the project's region."""
        return kind(
            transport="rest",
            credentials=self.credentials[0],
            client_options={"api_endpoint": self.address},
        )

    def call(self, request: Callable[[], Answer]) -> Answer:
        """Returns the answer to a request, which is repeated while that may help.

        Raises:
          RemoteError: see ``explain_errors``.
        """
        from google.api_core.retry import Retry

        retry = Retry(
            predicate=is_transient,
            initial=self._backoff.first_s,
            maximum=self._backoff.longest_s,
            timeout=self._backoff.total_s,
        )
        with explain_errors(self._project, self.region, self._service_account):
            return retry(request)()

    def request(self, method: str, url: str, **arguments: Any) -> dict[str, Any]:
        """Returns the JSON that an address answers; not retried.

        Raises:
          GoogleAPICallError: it refuses.
        """
        from google.api_core.exceptions import from_http_response
        from google.auth.transport.requests import AuthorizedSession

        with AuthorizedSession(self.credentials[0]) as session:
            response = session.request(
                method, url, timeout=REQUEST_TIMEOUT_S, **arguments
            )
        if not response.ok:
            raise from_http_response(response)
        return response.json()

    @cached_property
    def credentials(self) -> tuple[Any, str | None]:
        """The credentials, and the project that they name."""
        from google import auth
        from google.auth.credentials import AnonymousCredentials

        if self._given is not None:
            return self._given, None
        if self.address.startswith("http://"):
            # No token leaves this machine in clear text.
            return AnonymousCredentials(), None
        with explain_errors(self._project, self.region, self._service_account):
            return auth.default(scopes=[_SCOPE])


def endpoint(service: str, default: str) -> str:
    """Returns a service's address, which the environment may override."""
    return os.environ.get(f"{_OVERRIDES}{service}", "").rstrip("/") or default
