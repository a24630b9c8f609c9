"""Errors of Google Cloud, explained: what to grant, create or wait for.

Texts are matched where a status has several causes; one that no rule knows is shown as
the service said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sluice.errors import NoAnswerError, RemoteError
from sluice.secrets import redact

_LOGIN = (
    "gcloud auth application-default login   (or let GOOGLE_APPLICATION_CREDENTIALS "
    "name a key file)"
)
_MAX_TEXT = 500
# A limit of requests per minute passes by itself, one of machines does not.
_LASTING_QUOTA = re.compile(r"exceed quota limits|quota limit[s]? for|is 0", re.I)
_ACT_AS = re.compile(r"act as service[_ ]?account:? *([\w.@-]+)?", re.I)
_BUCKET = re.compile(r"bucket\b.*(does not exist|not found)", re.I | re.S)
_BUCKET_NAME = re.compile(r"gs://([\w.-]+)|bucket [`'\"]?([\w.-]+)", re.I)
_API_OFF = re.compile(r"has not been used in project|SERVICE_DISABLED|is disabled")
_PERMISSION = re.compile(r"[Pp]ermission '?([\w.]+)'?")
# By the first part of a permission's name.
_ROLES = {"storage": "roles/storage.objectUser", "logging": "roles/logging.viewer"}


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed in a moment."""
    import requests
    from google.api_core import exceptions
    from google.auth import exceptions as auth

    if isinstance(error, exceptions.TooManyRequests):
        return not _LASTING_QUOTA.search(str(error))
    kinds = (
        exceptions.ServerError,
        requests.ConnectionError,
        requests.exceptions.ChunkedEncodingError,
        requests.Timeout,
        auth.TransportError,
    )
    return isinstance(error, kinds)


@contextmanager
def explain_errors(
    project: str | None, region: str, service_account: str | None = None
) -> Iterator[None]:
    """Raises ``RemoteError`` instead of the errors of Google's libraries.

    Args:
      project: by its id, for the commands in hints.
      region: likewise.
      service_account: that jobs run as.
    """
    import requests
    from google.api_core import exceptions
    from google.auth import exceptions as auth

    try:
        yield
    except exceptions.RetryError as error:
        cause = error.cause or error
        raise _explain(cause, project, region, service_account) from error
    except (
        exceptions.GoogleAPICallError,
        requests.RequestException,
        auth.GoogleAuthError,
    ) as error:
        raise _explain(error, project, region, service_account) from error


def missing_bucket(bucket: str, project: str | None, region: str) -> RemoteError:
    """Returns the error of a bucket that is not there."""
    return RemoteError(
        f"there is no bucket gs://{bucket}",
        where="cloud.root",
        hint=f"gcloud storage buckets create gs://{bucket} --location={region} "
        f"--project={project or 'PROJECT'} --uniform-bucket-level-access",
    )


def _explain(
    error: BaseException, project: str | None, region: str, service_account: str | None
) -> RemoteError:
    from google.api_core import exceptions
    from google.auth import exceptions as auth

    text = redact(str(getattr(error, "message", error) or error))
    shown = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
    place = f"project {project or '(of the credentials)'}, region {region}"
    name = project or "PROJECT"
    # Anonymous credentials raise a kind of it where they would have to be refreshed.
    is_refresh = isinstance(error, auth.InvalidOperation)
    if isinstance(error, auth.DefaultCredentialsError) and not is_refresh:
        return RemoteError("there are no Google Cloud credentials", hint=_LOGIN)
    if isinstance(error, exceptions.Unauthorized | auth.RefreshError) or (
        isinstance(error, auth.GoogleAuthError)
        and not isinstance(error, auth.TransportError)
    ):
        what = "the credentials are not valid, or have expired"
        return RemoteError(what, where=place, actual=shown, hint=_LOGIN)
    if isinstance(error, exceptions.Forbidden):
        return _forbidden(text, shown, name, place, service_account)
    if isinstance(error, exceptions.TooManyRequests):
        return RemoteError(
            "a quota of the project is used up",
            where=place,
            actual=shown,
            hint=f"ask for more: https://console.cloud.google.com/iam-admin/quotas"
            f"?project={name}   (or fewer machines: cloud.nodes)",
        )
    if _BUCKET.search(text) and (found := _BUCKET_NAME.search(text)):
        return missing_bucket(found[1] or found[2], project, region)
    if isinstance(error, exceptions.ClientError):
        what = "Vertex AI refuses the request"
        return RemoteError(what, where=place, actual=shown)
    return NoAnswerError(
        "Vertex AI does not answer",
        where=place,
        actual=shown,
        hint="try again; nothing is submitted twice: "
        "https://status.cloud.google.com says whether the service is up",
    )


def _forbidden(
    text: str, shown: str, project: str, place: str, service_account: str | None
) -> RemoteError:
    if _API_OFF.search(text):
        return RemoteError(
            "the API of Vertex AI is not enabled in the project",
            where=place,
            hint="gcloud services enable aiplatform.googleapis.com "
            f"--project={project}",
        )
    if acting := _ACT_AS.search(text):
        account = acting[1] or service_account or "SERVICE_ACCOUNT"
        return RemoteError(
            f"these credentials may not run jobs as {account}",
            where=place,
            actual=shown,
            hint=f"gcloud iam service-accounts add-iam-policy-binding {account} "
            f"--member=user:YOU --role=roles/iam.serviceAccountUser "
            f"--project={project}",
        )
    permission = _PERMISSION.search(text)
    area = permission[1].partition(".")[0] if permission else ""
    role = _ROLES.get(area, "roles/aiplatform.user")
    return RemoteError(
        "a permission is missing" + (f": {permission[1]}" if permission else ""),
        where=place,
        actual=shown,
        hint=f"gcloud projects add-iam-policy-binding {project} --member=user:YOU "
        f"--role={role}",
    )
