"""Operation: runs the compiled pipeline here, as its service would."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.checks.before_run import check_before_run
from pipeline.checks.check_service import cloud_of
from pipeline.config.cloud import CloudBeam, CloudPush
from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.graph.choose_spans import choose_spans
from runners.cloud.job_inputs import cloud_locations, job_parameters, upload
from runners.cloud.spec import read_spec
from runners.engine import Observer
from runners.local.write_report import write_report
from runners.operations.compile import compile_checked
from runners.operations.find_run import workspace_of
from runners.operations.prepared_run import PreparedRun, lock_workspace
from runners.rehearsal.run_job import Rehearsal, run_job
from sluice.errors import UsageError
from sluice.record.run_record import REHEARSAL, RunOptions, RunRecord
from sluice.storage.storage import is_remote
from sluice.workspace import Workspace, private_umask

# For keys of the section ``cloud`` that nobody has filled in yet.
_PLACES = {
    "root": "gs://rehearsal/sluice",
    "image": "rehearsal.invalid/sluice",
    "project": "rehearsal",
    "region": "us-central1",
}
_ELSEWHERE = ("accelerator", "machine_type", "workers", "tpu")
_OF_OTHER_MACHINES = ("tpu", "multi_worker", "parameter_server")


def rehearse(
    name: str,
    *,
    profile: str | None = None,
    overrides: Sequence[str] = (),
    command: str = "runners.operations.rehearse",
    observer: Observer | None = None,
) -> RunRecord:
    """Runs the compiled job task after task, with a folder in place of buckets.

    Args:
      name: a config's name or path.
      profile: with a section ``cloud``.
      overrides: ``KEY=VALUE``, of the config.
      command: the command line or the caller, for the record.
      observer: of the run.

    Raises:
      UsageError: the config is wrong, or its data is in a bucket.
      LockedError: another run of the pipeline is in progress.
    """
    observer = observer or Observer()
    load = partial(load_config, name, profile=profile)
    config = load(overrides=overrides)
    cloud = cloud_of(config)
    if is_remote(config.data.dir):
        raise UsageError(
            "a rehearsal reaches no bucket, so it needs a local copy of the data",
            where=config.data.dir,
            hint="--set data.dir=DIR",
        )
    values = {key: getattr(cloud, key) or value for key, value in _PLACES.items()}
    places = [f"cloud.{key}={value}" for key, value in values.items()]
    places.append(f"data.dir={values['root']}/{config.name}/data")
    in_cloud = check_before_run(load(overrides=(*overrides, *places)), in_service=True)
    workspace = workspace_of(config)
    workspace.prepare(private=config.private)
    locking = lock_workspace(workspace, command, False, observer)
    with private_umask(config.private), locking:
        return _rehearse(config, in_cloud, workspace, command, observer)


def _on_this_machine(config: Config) -> tuple[Config, list[str]]:
    """Returns a config without services, machines and accelerators, and the notes."""
    cloud, notes = cloud_of(config), []
    parts: dict[str, object] = {}
    if any(getattr(x, key) for x in cloud.nodes.values() for key in _ELSEWHERE):
        notes.append("machines and accelerators are not rehearsed: nodes take this one")
        bare = dict.fromkeys(_ELSEWHERE)
        parts["nodes"] = {
            name: given.model_copy(update=bare) for name, given in cloud.nodes.items()
        }
    if cloud.beam.runner == "dataflow":
        notes.append("Dataflow is not rehearsed: nodes run Beam in their own tasks")
        parts["beam"] = CloudBeam()
    if cloud.push.registry:
        notes.append("registry and endpoint are not rehearsed: the bucket is pushed to")
        parts["push"] = CloudPush()
    instead = {}
    strategy, precision = config.train.strategy, config.train.precision
    if strategy in _OF_OTHER_MACHINES and not config.train.processes:
        instead["strategy"] = "one_device"
    if precision == "mixed_float16":  # Takes minutes per epoch on a CPU.
        instead["precision"] = "float32"
    for key, value in instead.items():
        given = getattr(config.train, key)
        notes.append(f"train.{key} {given} is not rehearsed: {value} takes its place")
    changed = {
        "cloud": cloud.model_copy(update=parts),
        "train": config.train.model_copy(update=instead),
    }
    return config.model_copy(update=changed), notes


def _rehearse(
    config: Config,
    in_cloud: Config,
    workspace: Workspace,
    command: str,
    observer: Observer,
) -> RunRecord:
    """Compiles a config, and runs the job with ``gs://`` replaced by a folder."""

    def here(address: str) -> str:
        return address.replace("gs://", f"{workspace.root / REHEARSAL}/")

    in_cloud, notes = _on_this_machine(in_cloud)
    cloud = cloud_of(in_cloud)
    data = Path(here(in_cloud.data.dir))
    data.parent.mkdir(parents=True, exist_ok=True)
    data.unlink(missing_ok=True)
    data.symlink_to(config.data_dir.resolve())
    observer.on_note("compiling the pipeline for its service")
    compiled = compile_checked(in_cloud, scheduled=cloud.selects_spans)
    for item in compiled.uploads:
        upload(replace(item, uri=here(item.uri)))
    job = json.loads(here(json.dumps(compiled.job)))
    serving_dir = here(cloud_locations(in_cloud).serving_dir)
    read = in_cloud.data.model_copy(update={"dir": str(data)})
    here_too = in_cloud.model_copy(update={"data": read})
    prepared = PreparedRun(here_too, choose_spans(here_too), workspace, serving_dir)
    values = job["runtimeConfig"].setdefault("parameterValues", {})
    if not cloud.selects_spans:
        # As `sluice submit` does.
        inputs_uri = here(cloud_locations(in_cloud).inputs_uri)
        values |= job_parameters(job, serving_dir, inputs_uri, prepared.choice)
    record = prepared.begin(RunOptions(), command, {REHEARSAL: ""})
    record.notes += notes
    prepared.save(record)
    prepared.record_inputs(record)
    run_dir, is_kubeflow = workspace.run_dir(record.run_id), cloud.engine == "kubeflow"
    rehearsal = Rehearsal(read_spec(job), record, run_dir, config.root, is_kubeflow)
    run_job(rehearsal, observer)
    write_report(record, run_dir)
    return record
