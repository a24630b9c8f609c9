"""Calls the REST API of Kubeflow Pipelines, v2beta1: retries, errors, pages.

The calls themselves are those of ``kfp_server_api``, the client that Kubeflow Pipelines
generates from its API. It neither retries nor explains errors. The service has no ids
that a caller can choose, so what is created is looked up by its name before each try.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeVar

from google.api_core.exceptions import RetryError
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError

from pipeline.config.cloud import Kubeflow
from runners.cloud.service import unanswered_after
from runners.kubeflow.credentials import (
    IAP_VARIABLE,
    TOKEN_FILE_VARIABLE,
    find_token_source,
)
from sluice.errors import NoAnswerError, RemoteError, UsageError

try:
    import kfp_server_api
    import urllib3
except ModuleNotFoundError as missing:
    raise UsageError(
        "Kubeflow Pipelines needs a package that is not installed",
        actual=str(missing),
        hint="pip install kfp-server-api",
    ) from missing

_Result = TypeVar("_Result")

_TIMEOUT_S = 60
_PAGE_SIZE = 100
_TRANSIENT = (408, 429, 500, 502, 503, 504)


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, kfp_server_api.ApiException):
        return error.status in _TRANSIENT
    return isinstance(error, urllib3.exceptions.HTTPError | ConnectionError)


RETRY = Retry(predicate=_is_transient, initial=1, maximum=30, multiplier=2, timeout=120)


class KfpClient:
    """Client of one installation.

    Args:
      settings: the config's ``cloud.kubeflow``.
      timeout_s: after which a request is not repeated; None for the default.
    """

    def __init__(self, settings: Kubeflow, timeout_s: float | None = None) -> None:
        self.settings = settings
        self._timeout_s = timeout_s
        self._token_source = find_token_source(settings.host)
        self._fresh = False
        configuration = kfp_server_api.Configuration(host=settings.host.rstrip("/"))
        # Ours repeat what is safe to repeat; a redirection leads to a page to log in.
        configuration.retries = False
        if self._token_source is not None:
            configuration.api_key["authorization"] = ""
            configuration.api_key_prefix["authorization"] = "Bearer"
            configuration.refresh_api_key_hook = self._set_token
        self.api = kfp_server_api.ApiClient(configuration)
        self.runs = kfp_server_api.RunServiceApi(self.api)
        self.recurring_runs = kfp_server_api.RecurringRunServiceApi(self.api)
        self.experiments = kfp_server_api.ExperimentServiceApi(self.api)

    @property
    def _retry(self) -> Retry:
        return RETRY if self._timeout_s is None else RETRY.with_timeout(self._timeout_s)

    def call(
        self, function: Callable[..., _Result], *args: Any, **more: Any
    ) -> _Result:
        """Calls the service, again after transient errors; for what may be repeated.

        Args:
          function: of ``runs``, ``recurring_runs`` or ``experiments``.
          *args: its arguments.
          **more: its keyword arguments; None for not given.

        Raises:
          NoAnswerError: the service does not answer, or has too much to do.
          RemoteError: it refuses.
        """
        given = {name: value for name, value in more.items() if value is not None}
        return self._explained(
            self._retry(lambda: self._authorized(function, *args, **given))
        )

    def create_once(
        self,
        find: Callable[[], _Result | None],
        function: Callable[..., _Result],
        body: object,
    ) -> _Result:
        """Creates what does not exist yet; also where an answer is lost, only once.

        Args:
          find: looks it up by its name.
          function: creates it.
          body: what to create.

        Raises:
          NoAnswerError: also if it refuses after an answer was lost.
          RemoteError: as for ``call``.
        """
        lost: list[Exception] = []

        def find_or_create() -> _Result:
            if (found := find()) is not None:
                return found
            try:
                return self._authorized(function, body)
            except Exception as error:
                if _is_transient(error):
                    lost.append(error)
                # Another process has created it since.
                is_taken = getattr(error, "status", None) == 409
                if is_taken and (found := find()) is not None:
                    return found
                raise

        with unanswered_after(lost):
            return self._explained(self._retry(find_or_create))

    def found(self, function: Callable[..., _Result], name: str) -> _Result | None:
        """Returns what a ``get`` returns; None if there is nothing of that id.

        Raises:
          RemoteError: as for ``call``.
        """
        try:
            return self.call(function, name)
        except RemoteError as error:
            cause = error.__cause__
            if isinstance(cause, kfp_server_api.ApiException) and cause.status == 404:
                return None
            raise

    def listed(
        self,
        function: Callable[..., Any],
        attribute: str,
        predicates: dict[str, tuple[str, str]],
        **more: Any,
    ) -> Iterator[Any]:
        """Yields the items of all pages of a list.

        Args:
          function: lists them.
          attribute: of a page, which has the items.
          predicates: operation and value by field, such as
            ``{"display_name": ("EQUALS", "x")}``.
          **more: further arguments, such as ``sort_by``.

        Raises:
          RemoteError: as for ``call``.
        """
        terms = [
            {"operation": operation, "key": key, "string_value": value}
            for key, (operation, value) in predicates.items()
        ]
        token = None
        while True:
            page = self.call(
                function,
                filter=json.dumps({"predicates": terms}) if terms else None,
                page_size=_PAGE_SIZE,
                page_token=token,
                **more,
            )
            yield from getattr(page, attribute) or []
            token = page.next_page_token
            if not token:
                return

    def find_experiment(self, name: str) -> Any:
        """Returns an experiment; None if there is none of this name.

        Raises:
          RemoteError: as for ``call``.
        """
        by_name = {"display_name": ("EQUALS", name)}
        listing = self.experiments.experiment_service_list_experiments
        namespace = self.settings.namespace
        return next(
            self.listed(listing, "experiments", by_name, namespace=namespace), None
        )

    def experiment_id(self, name: str) -> str:
        """Returns the id of an experiment, which is created if there is none.

        Raises:
          RemoteError: as for ``call``.
        """
        create = self.experiments.experiment_service_create_experiment
        body = kfp_server_api.V2beta1Experiment(
            display_name=name, namespace=self.settings.namespace
        )
        found = self.create_once(partial(self.find_experiment, name), create, body)
        return str(found.experiment_id)

    def read_log(self, run_id: str, pod: str) -> str:
        """Returns the log of a pod of a run; empty where it is deleted.

        Raises:
          RemoteError: as for ``call``.
        """
        # Not in the generated client: it is plain text.
        path = f"/apis/v1alpha1/runs/{run_id}/nodes/{pod}/log"

        def get() -> str:
            response = self.api.call_api(
                path,
                "GET",
                auth_settings=["Bearer"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=_TIMEOUT_S,
            )
            return str(response.data.decode(errors="replace"))

        return self._explained(self._retry(lambda: self._with_fresh_token(get)))

    def _authorized(
        self, function: Callable[..., _Result], *args: Any, **more: Any
    ) -> _Result:
        def call() -> _Result:
            found = function(*args, _request_timeout=_TIMEOUT_S, **more)
            kind = self.api.last_response.getheader("Content-Type") or ""
            if "html" in kind:  # The generated client would take it as empty.
                text = "a page instead of an answer, such as one to log in"
                raise kfp_server_api.ApiException(status=401, reason=text)
            return found

        return self._with_fresh_token(call)

    def _with_fresh_token(self, call: Callable[[], _Result]) -> _Result:
        """Calls again with a fresh token if the service refuses the one so far."""
        try:
            return call()
        except kfp_server_api.ApiException as error:
            if error.status != 401 or self._token_source is None:
                raise
        self._fresh = True
        try:
            return call()
        finally:
            self._fresh = False

    def _set_token(self, configuration: Any) -> None:
        assert self._token_source is not None
        configuration.api_key["authorization"] = self._token_source(self._fresh)

    def _explained(self, call: Callable[[], _Result]) -> _Result:
        """Returns what a call returns, and its errors as ``RemoteError``."""
        try:
            return call()
        except RetryError as error:
            cause: BaseException = error.cause or error
        except (
            kfp_server_api.ApiException,
            urllib3.exceptions.HTTPError,
            GoogleAuthError,
            OSError,
        ) as error:
            cause = error
        raise self._explain(cause) from cause

    def _explain(self, error: BaseException) -> RemoteError:
        host, namespace = self.settings.host, self.settings.namespace
        if isinstance(error, kfp_server_api.ApiException):
            status, said = error.status, _message(error)
            if status == 401 or 300 <= (status or 0) < 400:
                return RemoteError(
                    "Kubeflow Pipelines does not accept the credentials",
                    where=host,
                    actual=said,
                    hint=f"let {TOKEN_FILE_VARIABLE} name a file with a token, "
                    f"or {IAP_VARIABLE} the client of an Identity-Aware Proxy",
                )
            if status == 403:
                return RemoteError(
                    "Kubeflow Pipelines refuses the request",
                    where=f"{host}, namespace {namespace}" if namespace else host,
                    actual=said,
                    hint="kubectl create rolebinding sluice --clusterrole=kubeflow-edit"
                    f" --user=YOU --namespace={namespace or 'NAMESPACE'}",
                )
            if status in _TRANSIENT:
                what = "Kubeflow Pipelines has too much to do"
                hint = "try again later"
                return NoAnswerError(what, where=host, actual=said, hint=hint)
            what = "Kubeflow Pipelines refuses the request"
            return RemoteError(what, where=host, actual=said)
        if isinstance(error, GoogleAuthError):
            hint = "gcloud auth application-default login"
            what = "there are no valid credentials for Kubeflow Pipelines"
            return RemoteError(what, where=host, actual=str(error), hint=hint)
        return NoAnswerError(
            "Kubeflow Pipelines does not answer",
            where=host,
            actual=str(error),
            hint="kubectl port-forward --namespace kubeflow "
            "svc/ml-pipeline 8888:8888, with cloud.kubeflow.host=http://localhost:8888",
        )


def _message(error: Any) -> str:
    """Returns what the service says of an error."""
    body = error.body or ""
    try:
        said = json.loads(body)
        text = said.get("message") or said.get("error_message") or said.get("error")
    except (ValueError, AttributeError):
        text = body[:200]
    return f"{error.status} {error.reason}: {text}" if text else str(error.status)


def iso_time(value: datetime | None) -> str | None:
    """Returns a time as the record has it; None for the service's zero."""
    if value is None or value.timestamp() <= 0:
        return None
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds")
