"""Client of Vertex AI Pipelines: one job, submitted once, however answers are lost.

It calls the generated REST client of google-cloud-aiplatform. That library's own
``PipelineJob`` would create a missing bucket without asking, log to stdout and import
for 12 seconds. See ``sluice.vertex_ai`` for credentials and addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any

from runners.cloud.service import (
    PIPELINE_LABEL,
    SPEC_LABEL,
    ServiceJob,
    Submission,
    unanswered_after,
)
from runners.vertex.job_state import custom_jobs_of, read_job, read_listed_job
from sluice.errors import RemoteError
from sluice.google_errors import is_transient
from sluice.vertex_ai import REQUEST_TIMEOUT_S, VertexConnection, endpoint

_LOGGING = "https://logging.googleapis.com"
_LISTED = "name,state,labels,createTime,startTime,endTime,error"
_LOG_PAGE = 1000
# Label of custom jobs: the pipeline job whose tasks have started them.
JOB_LABEL = "sluice-job"
_LABEL_LENGTH = 63


class VertexService(VertexConnection):
    """Pipeline jobs of one project and region; see ``Service``.

    Args:
      project: by its id; None for that of the credentials.
      region: such as ``europe-west4``.
      network: of the jobs; None for none.
      options: see ``VertexConnection``.
    """

    engine = "vertex"

    def __init__(
        self,
        project: str | None,
        region: str,
        *,
        network: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(project, region, **options)
        self._network = network

    def submit(self, submission: Submission) -> str:
        """Submits a job, once; see ``Service.submit``."""
        from google.api_core import exceptions
        from google.cloud.aiplatform_v1 import types

        request = types.CreatePipelineJobRequest(
            parent=self.parent,
            pipeline_job=self.message_of(submission.job, submission.labels),
            pipeline_job_id=submission.job_id,
        )
        lost: list[Exception] = []

        def create() -> str:
            try:
                return self._client.create_pipeline_job(
                    request, timeout=REQUEST_TIMEOUT_S
                ).name
            except exceptions.Conflict:
                # An earlier attempt was taken, and its answer lost.
                return self._submitted_before(submission)
            except Exception as error:
                if is_transient(error):
                    lost.append(error)
                raise

        with unanswered_after(lost):
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
            pages = self._client.list_pipeline_jobs(request, timeout=REQUEST_TIMEOUT_S)
            return [read_listed_job(_plain(job)) for job in islice(pages, limit)]

        return self.call(listed)

    def cancel(self, name: str) -> Sequence[str]:
        """Asks to cancel a job; see ``Service.cancel``."""
        self._cancel(self._client.cancel_pipeline_job, name)
        return self.cancel_custom_jobs({JOB_LABEL: job_label(name)})

    def cancel_custom_jobs(self, labels: Mapping[str, str]) -> Sequence[str]:
        """Asks to cancel the custom jobs with these labels that have not ended.

        Returns:
          Their names.
        """
        from google.cloud.aiplatform_v1 import JobServiceClient

        client = self.make_client(JobServiceClient)
        wanted = [f'labels.{key}="{value}"' for key, value in labels.items()]
        request = {"parent": self.parent, "filter": " AND ".join(wanted)}

        def listed() -> Sequence[str]:
            found = client.list_custom_jobs(request, timeout=REQUEST_TIMEOUT_S)
            return [job.name for job in found if job.end_time is None]

        names = self.call(listed)
        for name in names:
            self._cancel(client.cancel_custom_job, name)
        return names

    def _cancel(self, request: Callable[..., Any], name: str) -> None:
        from google.api_core import exceptions

        def cancel() -> None:
            try:
                request(name=name, timeout=REQUEST_TIMEOUT_S)
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
        url = f"{endpoint('LOGGING', _LOGGING)}/v2/entries:list"
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
            page = self.call(partial(self.request, "POST", url, json=body))
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

    def _name_of(self, job_id: str) -> str:
        return f"{self.parent}/pipelineJobs/{job_id}"

    def _submitted_before(self, submission: Submission) -> str:
        """Returns the name of the job with the id of a submission.

        Raises:
          RemoteError: it was made from another spec.
        """
        name = self._name_of(submission.job_id)
        found = self._client.get_pipeline_job(name=name, timeout=REQUEST_TIMEOUT_S)
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
                    name=name, timeout=REQUEST_TIMEOUT_S
                )
                return _plain(job)
            except exceptions.NotFound:
                return None

        return self.call(get)

    @cached_property
    def _client(self) -> Any:
        from google.cloud.aiplatform_v1.services.pipeline_service import (
            PipelineServiceClient,
        )

        return self.make_client(PipelineServiceClient)


def job_label(job: str) -> str:
    """Returns the value of ``JOB_LABEL``: the end of a pipeline job's id or name."""
    return job.rpartition("/")[2][-_LABEL_LENGTH:]


def _plain(job: Any) -> dict[str, Any]:
    """Returns a message in its JSON form."""
    from google.protobuf import json_format

    return json_format.MessageToDict(type(job).pb(job))


def _log_line(entry: dict[str, Any]) -> str:
    payload = entry.get("jsonPayload", {})
    text = entry.get("textPayload") or payload.get("message") or ""
    return str(text).rstrip("\n")
