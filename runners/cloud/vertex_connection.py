"""Connection to Vertex AI over REST: credentials, address, repeated requests, errors.

Credentials are the platform's own (application default credentials); nothing of them is
stored. ``CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM``, as gcloud has it, names another
address, such as that of a private network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sluice.errors import RemoteError, UsageError
from sluice.network import require_connection
from sluice.secrets import redact

REQUEST_TIMEOUT_S = 60.0
# A request is repeated after this wait, the next ones double, for so long.
FIRST_WAIT_S = 1.0
REPEATED_S = 180.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOGIN = "gcloud auth application-default login"


class VertexConnection:
    """Requests to one project and region.

    Args:
      project: by its id; None for that of the credentials.
      region: such as ``europe-west4``.
      credentials: None for the platform's own.
      timeout_s: how long a request is repeated, instead of ``REPEATED_S``.

    Raises:
      RemoteError: there are no credentials, or a command cannot connect.
    """

    def __init__(
        self,
        project: str | None,
        region: str,
        *,
        credentials: Any = None,
        timeout_s: float | None = None,
    ) -> None:
        self.region = region
        self._timeout_s = timeout_s or REPEATED_S
        named = None
        if credentials is None:
            credentials, named = self._find_credentials()
        self.credentials, self._project = credentials, project or named

    @property
    def project(self) -> str:
        """The project's id.

        Raises:
          UsageError: neither the config nor the credentials name one.
        """
        if not self._project:
            raise UsageError(
                "no Google Cloud project is named",
                where="cloud.project",
                hint="--set cloud.project=MY_PROJECT",
            )
        return self._project

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
            credentials=self.credentials,
            client_options={"api_endpoint": self.address},
        )

    def call(
        self,
        method: Callable[..., Any],
        *arguments: Any,
        none_if: type[Exception] | tuple[()] = (),
        **named: Any,
    ) -> Any:
        """Returns what a client's method answers; repeats it while that may help.

        Args:
          method: has a parameter ``timeout``.
          *arguments: of the method.
          none_if: an error of the service for which None is returned.
          **named: further arguments.

        Raises:
          RemoteError: the service refuses, or does not answer.
        """
        from google.api_core.retry import Retry

        retry = Retry(initial=FIRST_WAIT_S, maximum=30, timeout=self._timeout_s)
        with _explained():
            try:
                return retry(method)(*arguments, timeout=REQUEST_TIMEOUT_S, **named)
            except none_if:
                return None

    def post(self, url: str, *, json: Mapping[str, Any], timeout: float) -> Any:
        """Returns the JSON that an address answers; see ``call``."""
        from google.api_core.exceptions import from_http_response
        from google.auth.transport.requests import AuthorizedSession

        with AuthorizedSession(self.credentials) as session:
            response = session.post(url, json=json, timeout=timeout)
        if not response.ok:
            raise from_http_response(response)
        return response.json()

    def _find_credentials(self) -> tuple[Any, str | None]:
        """Returns the platform's credentials, and the project that they name."""
        from google import auth
        from google.auth.credentials import AnonymousCredentials

        if self.address.startswith("http://"):
            # No token leaves this machine in clear text.
            return AnonymousCredentials(), None
        with _explained():
            require_connection(self.address)
            return auth.default(scopes=[_SCOPE])


def endpoint(service: str, default: str) -> str:
    """Returns a service's address, which the environment may override."""
    address = os.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}", "")
    return address.rstrip("/") or default


@contextmanager
def _explained() -> Iterator[None]:
    """Raises ``RemoteError`` with the service's own text."""
    import requests
    from google.api_core import exceptions
    from google.auth import exceptions as auth

    try:
        yield
    except (
        exceptions.GoogleAPIError,
        requests.RequestException,
        auth.GoogleAuthError,
    ) as error:
        cause = getattr(error, "cause", None) or error
        text = redact(str(cause))
        no_login = auth.DefaultCredentialsError, auth.RefreshError
        if isinstance(cause, (*no_login, exceptions.Unauthorized)):
            what = "there are no valid Google Cloud credentials"
            raise RemoteError(what, actual=text, hint=_LOGIN) from error
        if isinstance(cause, exceptions.ClientError):
            raise RemoteError("Google Cloud refuses a request", actual=text) from error
        raise RemoteError("Google Cloud does not answer", actual=text) from error
