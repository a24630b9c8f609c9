"""Client of Vertex AI Pipelines: one job, submitted once, however answers are lost.

It calls the generated REST client of google-cloud-aiplatform. That library's own
``PipelineJob`` would create a missing bucket without asking, log to stdout and import
for 12 seconds. Credentials are the platform's own (application default credentials);
nothing of them is stored. ``CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM`` and
``..._LOGGING``, as gcloud has them, name other endpoints, such as those of a private
network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any, TypeVar

from runners.cloud.service import (
    PIPELINE_LABEL,
    SPEC_LABEL,
    ServiceJob,
    Submission,
)
from runners.vertex.job_state import custom_jobs_of, read_job, read_listed_job
from runners.vertex.vertex_errors import explain_errors, is_transient
from sluice.errors import RemoteError, UsageError

Answer = TypeVar("Answer")

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_OVERRIDES = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
_LOGGING = "https://logging.googleapis.com"
_REQUEST_TIMEOUT_S = 60.0
_LISTED = "name,state,labels,createTime,startTime,endTime,error"
_LOG_PAGE = 1000


@dataclass(frozen=True)
class Backoff:
    """Waits between the attempts of a request that fails for a moment."""

    first_s: float = 1.0
    longest_s: float = 30.0
    total_s: float = 180.0


class VertexService:
    """Pipeline jobs of one project and region; see ``Service``.

    Args:
      project: by its id; None for that of the credentials.
      region: such as ``europe-west4``.
      service_account: that jobs run as; None for the service's default.
      network: of the jobs; None for none.
      credentials: None for the platform's own.
      backoff: of requests.
    """

    engine = "vertex"

    def __init__(
        self,
        project: str | None,
        region: str,
        *,
        service_account: str | None = None,
        network: str | None = None,
        credentials: Any = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.region = region
        self._project = project
        self._service_account, self._network = service_account, network
        self._given = credentials
        self._backoff = backoff or Backoff()

    @cached_property
    def project(self) -> str:
        """The project's id.

        Raises:
          UsageError: neither the config nor the credentials name one.
        """
        project = self._project or self._credentials[1]
        if not project:
            raise UsageError(
                "no Google Cloud project is named",
                where="cloud.project",
                hint="--set cloud.project=MY_PROJECT",
            )
        return project

    def submit(self, submission: Submission) -> str:
        """Submits a job, once; see ``Service.submit``."""
        from google.api_core import exceptions
        from google.cloud.aiplatform_v1 import types

        request = types.CreatePipelineJobRequest(
            parent=self.parent,
            pipeline_job=self.message_of(submission.job, submission.labels),
            pipeline_job_id=submission.job_id,
        )

        def create() -> str:
            try:
                return self._client.create_pipeline_job(
                    request, timeout=_REQUEST_TIMEOUT_S
                ).name
            except exceptions.Conflict:
                # An earlier attempt was taken, and its answer lost.
                return self._submitted_before(submission)

        return self.call(create)

    def get(self, name: str) -> ServiceJob | None:
        """Returns a job; see ``Service.get``."""
        found = self._get(name)
        return read_job(found) if found else None

    def find(self, job_id: str) -> ServiceJob | None:
        """Returns the job of a submission; see ``Service.find``."""
        return self.get(self._name_of(job_id))

    def list(self, pipeline: str, limit: int) -> list[ServiceJob]:
        """Returns the newest jobs of a pipeline; see ``Service.list``."""
        from google.cloud.aiplatform_v1 import types

        request = types.ListPipelineJobsRequest(
            parent=self.parent,
            filter=f'labels.{PIPELINE_LABEL}="{pipeline}"',
            order_by="create_time desc",
            page_size=min(limit, 100),
            read_mask=_LISTED,
        )

        def listed() -> list[ServiceJob]:
            pages = self._client.list_pipeline_jobs(request, timeout=_REQUEST_TIMEOUT_S)
            return [read_listed_job(_plain(job)) for job in islice(pages, limit)]

        return self.call(listed)

    def cancel(self, name: str) -> None:
        """Asks to cancel a job; see ``Service.cancel``."""
        from google.api_core import exceptions

        def cancel() -> None:
            try:
                self._client.cancel_pipeline_job(name=name, timeout=_REQUEST_TIMEOUT_S)
            except exceptions.BadRequest as error:
                if "final state" not in str(error):
                    raise

        self.call(cancel)

    def logs(self, name: str, task: str, limit: int) -> Iterator[str]:
        """Yields the last lines of a task's log; see ``Service.logs``."""
        found = self._get(name)
        jobs = custom_jobs_of(found, task) if found else []
        if not jobs:
            return
        wanted = " OR ".join(f'resource.labels.job_id="{job}"' for job in jobs)
        lines: list[str] = []
        token = ""
        while len(lines) < limit:
            body: dict[str, Any] = {
                "resourceNames": [f"projects/{self.project}"],
                "filter": f'resource.type="ml_job" AND ({wanted})',
                "orderBy": "timestamp desc",
                "pageSize": min(limit - len(lines), _LOG_PAGE),
            }
            if token:
                body["pageToken"] = token
            page = self.call(partial(self._list_entries, body))
            lines += [_log_line(entry) for entry in page.get("entries", ())]
            token = page.get("nextPageToken", "")
            if not token:
                break
        yield from reversed(lines)

    def page(self, name: str) -> str | None:
        """Returns the address of the job's page; see ``Service.page``."""
        return (
            f"https://console.cloud.google.com/vertex-ai/locations/{self.region}/"
            f"pipelines/runs/{name.rpartition('/')[2]}?project={self.project}"
        )

    def message_of(self, job: Mapping[str, Any], labels: Mapping[str, str]) -> Any:
        """Returns a compiled job as the message ``PipelineJob``."""
        from google.cloud.aiplatform_v1 import types
        from google.protobuf import json_format

        message = types.PipelineJob.pb()()
        json_format.ParseDict(dict(job), message)
        wrapped = types.PipelineJob.wrap(message)
        wrapped.labels.update(labels)
        wrapped.service_account = self._service_account or ""
        wrapped.network = self._network or ""
        return wrapped

    def make_client(self, kind: Callable[..., Any]) -> Any:
        """Returns a client of google-cloud-aiplatform for the project's region."""
        return kind(
            transport="rest",
            credentials=self._credentials[0],
            client_options={"api_endpoint": self._endpoint},
        )

    @property
    def parent(self) -> str:
        """The place of the project's resources in the region."""
        return f"projects/{self.project}/locations/{self.region}"

    def _name_of(self, job_id: str) -> str:
        return f"{self.parent}/pipelineJobs/{job_id}"

    def _submitted_before(self, submission: Submission) -> str:
        """Returns the name of the job with the id of a submission.

        Raises:
          RemoteError: it was made from another spec.
        """
        name = self._name_of(submission.job_id)
        found = self._client.get_pipeline_job(name=name, timeout=_REQUEST_TIMEOUT_S)
        spec = submission.labels.get(SPEC_LABEL)
        if found.labels.get(SPEC_LABEL) != spec:
            raise RemoteError(
                f"there is another job with the id {submission.job_id}",
                where=found.name,
                expected=f"the label {SPEC_LABEL}={spec}",
                actual=str(found.labels.get(SPEC_LABEL)),
                hint="submit again: each run has an id of its own",
            )
        return found.name

    def _get(self, name: str) -> dict[str, Any] | None:
        from google.api_core import exceptions

        def get() -> dict[str, Any] | None:
            try:
                job = self._client.get_pipeline_job(
                    name=name, timeout=_REQUEST_TIMEOUT_S
                )
                return _plain(job)
            except exceptions.NotFound:
                return None

        return self.call(get)

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

    @cached_property
    def _credentials(self) -> tuple[Any, str | None]:
        from google import auth
        from google.auth.credentials import AnonymousCredentials

        if self._given is not None:
            return self._given, None
        if self._endpoint.startswith("http://"):
            # No token leaves this machine in clear text.
            return AnonymousCredentials(), None
        with explain_errors(self._project, self.region, self._service_account):
            return auth.default(scopes=[_SCOPE])

    @property
    def _endpoint(self) -> str:
        given = os.environ.get(f"{_OVERRIDES}AIPLATFORM", "").rstrip("/")
        return given or f"https://{self.region}-aiplatform.googleapis.com"

    @cached_property
    def _client(self) -> Any:
        from google.cloud.aiplatform_v1.services.pipeline_service import (
            PipelineServiceClient,
        )

        return self.make_client(PipelineServiceClient)

    def _list_entries(self, body: dict[str, Any]) -> dict[str, Any]:
        from google.api_core import exceptions
        from google.auth.transport.requests import AuthorizedSession

        host = os.environ.get(f"{_OVERRIDES}LOGGING", "").rstrip("/") or _LOGGING
        with AuthorizedSession(self._credentials[0]) as session:
            url = f"{host}/v2/entries:list"
            response = session.post(url, json=body, timeout=_REQUEST_TIMEOUT_S)
        if not response.ok:
            raise exceptions.from_http_response(response)
        return response.json()


def _plain(job: Any) -> dict[str, Any]:
    """Returns a message in its JSON form."""
    from google.protobuf import json_format

    return json_format.MessageToDict(type(job).pb(job))


def _log_line(entry: dict[str, Any]) -> str:
    payload = entry.get("jsonPayload", {})
    text = entry.get("textPayload") or payload.get("message") or ""
    return str(text).rstrip("\n")
