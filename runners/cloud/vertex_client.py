"""Client of Vertex AI Pipelines: jobs, the custom jobs of their tasks, and logs.

It calls the generated REST client of google-cloud-aiplatform. That library's own
``PipelineJob`` would create a missing bucket without asking, log to stdout and import
for 12 seconds.

Credentials are the platform's own (application default credentials); nothing of them is
stored. ``CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM``, as gcloud has it, names another
address, such as that of a private network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any

from google.protobuf import json_format

from pipeline.checks.check_service import cloud_of
from pipeline.config.config import Config
from sluice.errors import ConfigError, RemoteError, UsageError
from sluice.network import require_connection
from sluice.secrets import redact

# Labels of every job: the pipeline's name, and the run's id in lower case.
PIPELINE_LABEL, RUN_LABEL = "sluice-pipeline", "sluice-run"
# Label of custom jobs: the pipeline job whose tasks have started them.
JOB_LABEL = "sluice-job"
# For so long a command repeats a request that is not answered.
PATIENCE_S = 8.0
# One page of Cloud Logging.
LOG_LINES = 1000
REQUEST_TIMEOUT_S = 60.0
# A request is repeated after this wait, the next ones double, for so long.
FIRST_WAIT_S = 1.0
REPEATED_S = 180.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOGIN = "gcloud auth application-default login"
_LOGGING = "https://logging.googleapis.com"
_LISTED = "name,state,labels,createTime"
_LABEL_LENGTH = 63

# A message in its JSON form.
Json = Mapping[str, Any]


def service_of(config: Config, *, patient: bool = False) -> VertexService:
    """Returns the client for a config's ``cloud`` section.

    Args:
      config: of a pipeline.
      patient: whether to repeat a request for minutes.

    Raises:
      UsageError: the section does not name a place on Vertex AI.
      RemoteError: there are no credentials, or a command cannot connect.
    """
    cloud = cloud_of(config)
    if cloud.engine != "vertex":
        raise UsageError(
            "Sluice compiles for Kubeflow Pipelines, and starts nothing there",
            where="cloud.engine",
            hint=f"sluice compile {config.name} --profile kubeflow -o job.yaml, then "
            "kfp run create --package-file job.yaml",
        )
    if cloud.region is None:
        raise ConfigError(
            "the config names no region",
            where="cloud.region",
            hint="--set cloud.region=europe-west4",
        )
    timeout_s = None if patient else PATIENCE_S
    return VertexService(cloud.project, cloud.region, timeout_s=timeout_s)


def vertex_job(config: Config, job: Json, labels: Mapping[str, str]) -> Json:
    """Returns a compiled job as Vertex AI takes it, with more labels."""
    cloud = cloud_of(config)
    return {
        **job,
        "labels": {**job["labels"], PIPELINE_LABEL: config.name, **labels},
        "serviceAccount": cloud.service_account,
        "network": cloud.network,
    }


class VertexService:
    """Pipeline jobs of one project and region.

    Every method raises ``RemoteError`` if the service refuses or does not answer.

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

    def name_of(self, job_id: str) -> str:
        """Returns the name of the job with an id."""
        return f"{self.parent}/pipelineJobs/{job_id}"

    def submit(self, job_id: str, job: Json) -> None:
        """Submits a job, once: a job of this id that exists is this one."""
        from google.api_core.exceptions import Conflict

        self.call(
            self._client.create_pipeline_job,
            {
                "parent": self.parent,
                "pipeline_job": message_of(job),
                "pipeline_job_id": job_id,
            },
            none_if=Conflict,  # The answer to an earlier attempt was lost.
        )

    def get(self, name: str) -> Json | None:
        """Returns a job; None if there is none of this name."""
        from google.api_core.exceptions import NotFound

        found = self.call(self._client.get_pipeline_job, name=name, none_if=NotFound)
        return _plain(found) if found else None

    def newest(self, pipeline: str, limit: int) -> list[Json]:
        """Returns the newest jobs of a pipeline, without tasks and spec."""
        request = {
            "parent": self.parent,
            "filter": f'labels.{PIPELINE_LABEL}="{pipeline}"',
            "order_by": "create_time desc",
            "page_size": limit,
            "read_mask": _LISTED,
        }
        listed = self._client.list_pipeline_jobs
        found = self.call(
            lambda timeout: [*islice(listed(request, timeout=timeout), limit)]
        )
        return [_plain(job) for job in found]

    def cancel(self, name: str) -> list[str]:
        """Asks to cancel a job; one that has ended stays as it is.

        Returns:
          The names of the jobs that its tasks have started, and that are cancelled too.
        """
        self._cancel(self._client.cancel_pipeline_job, name)
        return self.cancel_custom_jobs({JOB_LABEL: job_label(name)})

    def cancel_custom_jobs(self, labels: Mapping[str, str]) -> list[str]:
        """Asks to cancel the custom jobs with these labels that have not ended.

        Returns:
          Their names.
        """
        from google.cloud.aiplatform_v1 import JobServiceClient

        client = self.make_client(JobServiceClient)
        wanted = [f'labels.{key}="{value}"' for key, value in labels.items()]
        request = {"parent": self.parent, "filter": " AND ".join(wanted)}
        found = self.call(
            lambda timeout: [*client.list_custom_jobs(request, timeout=timeout)]
        )
        names = [job.name for job in found if job.end_time is None]
        for name in names:
            self._cancel(client.cancel_custom_job, name)
        return names

    def _cancel(self, method: Callable[..., Any], name: str) -> None:
        from google.api_core.exceptions import BadRequest

        self.call(method, name=name, none_if=BadRequest)  # It has ended.

    def logs(self, name: str, task: str) -> list[str]:
        """Returns the last ``LOG_LINES`` lines of a task's log, oldest first."""
        jobs = _custom_jobs(self.get(name) or {}, task)
        if not jobs:
            return []
        wanted = " OR ".join(f'resource.labels.job_id="{job}"' for job in jobs)
        body = {
            "resourceNames": [f"projects/{self.project}"],
            "filter": f'resource.type="ml_job" AND ({wanted})',
            "orderBy": "timestamp desc",
            "pageSize": LOG_LINES,
        }
        url = f"{endpoint('LOGGING', _LOGGING)}/v2/entries:list"
        answer = self.call(self.post, url, json=body)
        return [_log_line(entry) for entry in reversed(answer.get("entries", []))]

    def page(self, name: str) -> str:
        """Returns the address of a job's page in the console."""
        return (
            f"https://console.cloud.google.com/vertex-ai/locations/{self.region}/"
            f"pipelines/runs/{name.rpartition('/')[2]}?project={self.project}"
        )

    @cached_property
    def _client(self) -> Any:
        from google.cloud.aiplatform_v1 import PipelineServiceClient

        return self.make_client(PipelineServiceClient)


def message_of(job: Json) -> Any:
    """Returns a job as the message ``PipelineJob``."""
    from google.cloud.aiplatform_v1 import types

    message = json_format.ParseDict(dict(job), types.PipelineJob.pb()())
    return types.PipelineJob.wrap(message)


def job_label(job: str) -> str:
    """Returns the value of ``JOB_LABEL``: the end of a pipeline job's id or name."""
    return job.rpartition("/")[2][-_LABEL_LENGTH:]


def _custom_jobs(job: Json, task: str) -> list[str]:
    """Returns the ids of the custom jobs that ran a task, the latest last."""
    names: list[str] = []
    for detail in job.get("jobDetail", {}).get("taskDetails", ()):
        if detail["taskName"] == task:
            found = detail.get("executorDetail", {}).get("containerDetail", {})
            names = [*found.get("failedMainJobs", ()), found.get("mainJob", "")]
    return [name.rpartition("/")[2] for name in names if name]


def _plain(job: Any) -> Json:
    return json_format.MessageToDict(type(job).pb(job))


def _log_line(entry: Json) -> str:
    payload = entry.get("jsonPayload", {})
    text = entry.get("textPayload") or payload.get("message") or ""
    return str(text).rstrip("\n")


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
