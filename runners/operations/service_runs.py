"""Finds the service of a run, and brings the records of its runs up to date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config, stored_config
from runners.cloud.service import Service, ServiceJob
from runners.cloud.submitted_job import is_service_run, record_uri_of, run_id_of
from sluice.errors import (
    ConfigError,
    RemoteError,
    SluiceError,
    UsageError,
    WorkspaceError,
)
from sluice.record.load_record import load_record
from sluice.storage.storage import storage_for
from sluice.workspace import Workspace, private_umask

# Runs that are looked up in a service.
_LISTED = 20


def service_for(config: Config, timeout_s: float | None = None) -> Service:
    """Returns the service of a config's ``cloud`` section; asks it nothing.

    Args:
      config: of the pipeline.
      timeout_s: after which a request is not repeated; None for some minutes.

    Raises:
      ConfigError: the section does not say where it is.
      UsageError: the package of its client is not installed.
    """
    from runners.cloud.compile_spec import check_cloud

    check_cloud(config)
    cloud = config.cloud
    assert cloud is not None
    if cloud.engine == "kubeflow":
        # First, since it says which package is missing.
        import runners.kubeflow.client  # noqa: F401
        from runners.kubeflow.service import KubeflowService

        return KubeflowService(cloud, config.name, timeout_s)
    from runners.vertex.client import VertexService
    from sluice.vertex_ai import Backoff

    if cloud.region is None:
        raise ConfigError(
            "the config names no region",
            where="cloud.region",
            expected="such as europe-west4",
            hint="--set cloud.region=europe-west4",
        )
    return VertexService(
        cloud.project,
        cloud.region,
        service_account=cloud.service_account,
        network=cloud.network,
        backoff=None if timeout_s is None else Backoff(total_s=timeout_s),
    )


def service_of(run_dir: Path, timeout_s: float | None = None) -> Service:
    """Returns the service that runs a submitted run; as ``service_for``.

    Raises:
      UsageError: the run's config cannot be read.
    """
    try:
        return service_for(read_stored_config(run_dir / "config.json"), timeout_s)
    except FileNotFoundError as error:
        raise UsageError(
            f"the config of run {run_dir.name} is missing, which names its service",
            where=run_dir / "config.json",
        ) from error


def refresh_runs(workspace: Workspace) -> Iterator[str]:
    """Refreshes the records of all open runs in a service.

    Yields:
      A warning per run whose service does not answer; its record is as it was.
    """
    for run_dir in open_service_runs(workspace):
        # It reads specs and documents: only where there is such a run.
        from runners.cloud.refresh import refresh
        from sluice.storage.gcs_storage import NO_ANSWER_S, giving_up_soon

        try:
            with giving_up_soon():
                refresh(run_dir, service_of(run_dir, NO_ANSWER_S))
        except SluiceError as error:
            yield f"run {run_dir.name} is shown as of its last refresh: {error.what}"


def import_runs(config: Config, workspace: Workspace) -> Iterator[str]:
    """Adds the newest runs of a pipeline's service that the workspace does not have.

    They were submitted from other machines, or by a schedule.

    Yields:
      A warning where the service or its bucket does not answer.
    """
    if config.cloud is None:
        return
    # The client takes a second to import.
    from sluice.storage.gcs_storage import NO_ANSWER_S, giving_up_soon

    known = set(workspace.run_ids())
    try:
        service = service_for(config, NO_ANSWER_S)
        for listed in service.list(config.name, _LISTED):
            run_id = run_id_of(listed)
            # A listing has no specs.
            if run_id not in known and (job := service.get(listed.name)) and job.spec:
                try:
                    with giving_up_soon():
                        _import_run(config, workspace, run_id, service, job)
                except (UsageError, WorkspaceError) as error:
                    yield f"run {run_id} of the service is left out: {error.what}"
    except SluiceError as error:
        yield f"runs of other machines and of schedules are missing: {error.what}"


def _import_run(
    config: Config, workspace: Workspace, run_id: str, service: Service, job: ServiceJob
) -> None:
    from runners.cloud.refresh import begin_elsewhere, refresh

    uri = f"{record_uri_of(config, run_id)}/config.json"
    try:
        stored = json.loads(storage_for(uri).read(uri))
    except FileNotFoundError:
        # A scheduled run writes it at its end.
        stored = stored_config(config)
    except OSError as error:
        raise RemoteError("the bucket cannot be read", where=uri) from error
    except ValueError as error:
        text = "its config in the bucket is damaged"
        raise WorkspaceError(text, where=uri, actual=str(error)) from error
    # Not the folder on the machine that submitted it.
    stored["root"] = str(config.root)
    target = workspace.run_dir(run_id)
    with private_umask(config.private):
        workspace.prepare(private=config.private)
        with TemporaryDirectory(prefix=".import-", dir=workspace.root) as folder:
            run_dir = Path(folder) / run_id
            run_dir.mkdir()
            begin_elsewhere(run_dir, stored, service, job)
            # It fails where another process has imported the run.
            with suppress(OSError):
                run_dir.rename(target)
        refresh(target, service)


def service_run_dirs(workspace: Workspace) -> list[Path]:
    """Returns the folders of all runs in a service, oldest first."""
    run_dirs = map(workspace.run_dir, workspace.run_ids())
    return [run_dir for run_dir in run_dirs if is_service_run(run_dir)]


def open_service_runs(workspace: Workspace) -> list[Path]:
    """Returns the folders of open runs in a service, newest first."""
    found = []
    for run_id in reversed(workspace.run_ids()):
        run_dir = workspace.run_dir(run_id)
        try:
            is_open = (
                is_service_run(run_dir) and load_record(run_dir).status == "running"
            )
        except SluiceError:
            continue
        if is_open:
            found.append(run_dir)
    return found
