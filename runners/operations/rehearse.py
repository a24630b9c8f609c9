"""Operation: rehearses a compiled pipeline, and compares it with local runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data, choose_spans
from reports.read_run import read_run
from runners.cloud.cloud_locations import Upload
from runners.cloud.compile_spec import compile_config
from runners.cloud.job_inputs import job_parameters, upload
from runners.cloud.kubeflow_spec import is_for_kubeflow
from runners.cloud.spec import Spec, load_spec, read_spec
from runners.engine import Engine, Observer
from runners.operations.lock_workspace import lock_workspace
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.rehearsed_run import RehearsedRun
from runners.operations.run import RunRequest, run
from runners.operations.validate import validate
from runners.rehearsal.compare_runs import (
    Difference,
    baseline_differences,
    compare_runs,
)
from runners.rehearsal.data_rounds import files_by_round, link_files
from runners.rehearsal.emulated_service import (
    buckets_of,
    emulated_service,
    upload_files,
)
from runners.rehearsal.replace_services import needs_other_machines
from sluice.errors import ExitCode, UsageError
from sluice.project import current_project
from sluice.record.events import Event
from sluice.record.run_record import REHEARSAL, RunRecord
from sluice.storage.storage import is_remote
from sluice.workspace import Workspace, locate, private_umask

_ROOT = "gs://rehearsal/sluice"
_ALL_SPANS = 1_000_000
# Python types of the JSON values of KFP's types of parameters; others are text.
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "NUMBER_INTEGER": (int,),
    "NUMBER_DOUBLE": (int, float),
    "BOOLEAN": (bool,),
    "LIST": (list,),
    "STRUCT": (dict,),
}


@dataclass(frozen=True, kw_only=True)
class RehearseRequest(PipelineRequest):
    """Request to rehearse a pipeline.

    Attributes:
      name: a config's name or path, or a file that ``sluice compile`` wrote.
      command: the command line or the caller, for the record.
      rounds: how many runs, one after another; None for two of a schedule, else one.
      scheduled: compile for a schedule; None if the config has ``cloud.schedule``.
      workers: number of tasks to run in parallel; None for one per core.
      image: run the tasks in this image by Docker; None for plain processes.
      tolerance: the largest difference of a metric from a local run; None not to run
        the pipeline locally.
      parameters: of the pipeline, ``NAME=VALUE``.
      uploads: what to copy into the emulated buckets first, ``PATH=gs://...``.
      wait: whether to wait for another run to end.
    """

    command: str = "runners.operations.rehearse"
    rounds: int | None = None
    scheduled: bool | None = None
    workers: int | None = None
    image: str | None = None
    tolerance: float | None = 0.02
    parameters: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    wait: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it names a compiled pipeline, not a config."""
        path = Path(self.name)
        if path.suffix in (".yaml", ".yml") and path.is_file():
            return "deploymentSpec" in path.read_text(errors="replace")
        return path.suffix == ".json"


@dataclass(frozen=True)
class Rehearsal:
    """Result of a rehearsal.

    Attributes:
      records: of the rehearsed runs, one per round.
      local: of the local runs that they were compared with.
      differences: by round.
    """

    records: tuple[RunRecord, ...]
    local: tuple[RunRecord, ...] = ()
    differences: tuple[tuple[Difference, ...], ...] = ()

    @property
    def exit_code(self) -> int:
        """That of the first run that has failed; 7 if one differs from a local run."""
        codes = [record.exit_code or 0 for record in self.records]
        differs = int(ExitCode.NODE) if any(self.differences) else 0
        return next(filter(None, codes), differs)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "schema_version": 1,
            "exit_code": self.exit_code,
            "rounds": [record.to_dict() for record in self.records],
            "local": [record.to_dict() for record in self.local],
            "differences": [[asdict(item) for item in one] for one in self.differences],
        }


def rehearse(
    request: RehearseRequest,
    observer: Observer | None = None,
    local_engine: Engine | None = None,
) -> Rehearsal:
    """Runs a compiled pipeline on this machine as its service would.

    The service is empty at the beginning: no artifacts, no cache, no buckets but those
    that the pipeline names. Each round is a run of it.

    Args:
      request: what to rehearse.
      observer: of all runs; None for none.
      local_engine: executes the local runs; None for one of this machine.

    Raises:
      UsageError: the request, the config, the data or the compiled file is wrong.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    if request.is_file:
        return _rehearse_file(request, observer)
    return _ConfigRehearsal(request, observer, local_engine).run()


def _rehearse_file(request: RehearseRequest, observer: Observer) -> Rehearsal:
    spec = load_spec(Path(request.name))
    root = current_project(Path.cwd())
    workspace = locate(root, spec.name, request.workspace_dir)
    workspace.prepare()
    values = _parameters(request, spec)
    uploads = [_upload_of(text) for text in request.uploads]
    records: list[RunRecord] = []
    with (
        lock_workspace(workspace, request.command, request.wait, observer) as locked,
        emulated_service(
            workspace.root / REHEARSAL,
            root,
            buckets_of(spec.job, *(item.uri for item in uploads)),
            image=request.image,
            for_kubeflow=is_for_kubeflow(spec),
        ) as engine,
    ):
        for item in uploads:
            _upload(item, observer)
        for number in range(1, (request.rounds or 1) + 1):
            once = RehearsedRun(
                request.command, request.workers, spec, workspace, root, locked, number
            )
            records.append(once.run(engine, observer, values))
            if records[-1].exit_code:
                break
    return Rehearsal(tuple(records))


class _ConfigRehearsal:
    """Rehearsal of a config: compiled, rehearsed, run locally, compared."""

    def __init__(
        self, request: RehearseRequest, observer: Observer, engine: Engine | None
    ) -> None:
        self._request, self._observer, self._engine = request, observer, engine
        self._config = config = request.validated_config()
        if is_remote(config.data.dir):
            raise UsageError(
                "a rehearsal cannot read the data: it reaches no real bucket",
                where=config.origin.file,
                expected="a local copy, which it uploads to an emulated bucket",
                actual=config.data.dir,
                hint="--set data.dir=DIR",
            )
        cloud = config.cloud
        root = cloud.root if cloud and cloud.root else _ROOT
        self._data_uri = f"{root}/{config.name}/data"
        overrides = (f"cloud.root={root}", f"data.dir={self._data_uri}")
        self._in_cloud = replace(
            request, overrides=(*request.overrides, *overrides)
        ).validated_config()
        scheduled = request.scheduled
        if scheduled is None:
            scheduled = bool(cloud and cloud.schedule)
        self._scheduled = scheduled
        self._rounds = request.rounds or (2 if scheduled else 1)
        self._all_data = _all_data(config)
        self._files = files_by_round(self._all_data, self._rounds)
        self._workspace = request.workspace_of(config)

    def run(self) -> Rehearsal:
        config, workspace, request = self._config, self._workspace, self._request
        workspace.prepare(private=config.private)
        observer = self._observer
        self._check_training()
        observer.on_note("compiling the pipeline for its service")
        compiled = compile_config(self._in_cloud, scheduled=self._scheduled)
        cloud = self._in_cloud.cloud
        assert cloud is not None
        spec = read_spec(compiled.job)
        asked = _parameters(request, spec)
        locking = lock_workspace(workspace, request.command, request.wait, observer)
        records: list[RunRecord] = []
        with private_umask(config.private), locking as locked:
            with emulated_service(
                workspace.root / REHEARSAL,
                config.root,
                buckets_of(compiled.job, *(item.uri for item in compiled.uploads)),
                image=request.image,
                for_kubeflow=cloud.engine == "kubeflow",
            ) as engine:
                for item in compiled.uploads:
                    _upload(item, observer)
                for number in range(1, self._rounds + 1):
                    self._upload_data(number)
                    once = RehearsedRun(
                        request.command,
                        request.workers,
                        spec,
                        workspace,
                        config.root,
                        locked,
                        number,
                        self._in_cloud,
                    )
                    choice, given = None, {}
                    if not self._scheduled:
                        # As `sluice submit` does.
                        choice = choose_spans(self._in_cloud)
                        given = job_parameters(compiled.job, self._in_cloud, choice)
                    values = {**given, **asked}
                    records.append(once.run(engine, observer, values, choice))
                    if records[-1].exit_code:
                        break
            stopped = records[-1].status == "interrupted"
            if stopped or request.tolerance is None:
                return Rehearsal(tuple(records))
            local = [self._run_locally(number) for number in range(1, len(records) + 1)]
            differences = list(self._compare(records, local, request.tolerance))
        return Rehearsal(tuple(records), tuple(local), tuple(differences))

    def _check_training(self) -> None:
        """Checks what a TPU would refuse, since the rehearsed training has none.

        Raises:
          RehearsalError: it would refuse the training.
        """
        if self._config.train.strategy == "tpu":
            self._observer.on_note("compiling the training for a TPU")
            request = PipelineRequest(
                name=self._request.name,
                profile=self._request.profile,
                # The linter asks for more than a rehearsal needs.
                overrides=(*self._request.overrides, "cloud=null"),
                workspace_dir=self._request.workspace_dir,
            )
            for warning in validate(request, "tpu").warnings:
                self._observer.on_warning(warning)

    def _upload_data(self, number: int) -> None:
        """Uploads the files that have arrived since the last round."""
        before = set(self._files[number - 2]) if number > 1 else set()
        new = [name for name in self._files[number - 1] if name not in before]
        folder = Path(self._all_data.base)
        upload_files(folder, new, self._data_uri)
        if new:
            text = (
                f"uploads {len(new)} files of {folder} to {self._data_uri} (emulated)"
            )
        else:
            text = f"round {number} has no new data: all spans are there"
        self._observer.on_note(text)

    def _run_locally(self, number: int) -> RunRecord:
        """Runs the same config on the same data in a workspace of its own."""
        folder = self._workspace.root / REHEARSAL / "local"
        overrides = list(self._request.overrides)
        if self._files[0] != self._files[-1]:
            data = folder / "data"
            link_files(Path(self._all_data.base), self._files[number - 1], data)
            overrides.append(f"data.dir={data}")
        if needs_other_machines(self._config.train.model_dump()):
            overrides.append("train.strategy=one_device")
        if self._config.push.serving_dir is not None:
            overrides.append(f"push.serving_dir={folder / 'serving'}")
        self._observer.on_note(f"the same locally, to compare with (round {number})")
        request = RunRequest(
            name=self._request.name,
            profile=self._request.profile,
            overrides=tuple(overrides),
            workspace_dir=str(folder),
            command=self._request.command,
            workers=self._request.workers,
        )
        return run(request, _RunsOnly(self._observer), self._engine)

    def _compare(
        self, records: list[RunRecord], local: list[RunRecord], tolerance: float
    ) -> Iterator[tuple[Difference, ...]]:
        here = Workspace(self._workspace.root / REHEARSAL / "local" / self._config.name)
        for index, (rehearsed, alike) in enumerate(zip(records, local, strict=True)):
            with (
                read_run(self._workspace.run_dir(rehearsed.run_id)) as after,
                read_run(here.run_dir(alike.run_id)) as before,
            ):
                found = compare_runs(before, after, tolerance)
            assert self._in_cloud.cloud is not None
            if self._in_cloud.cloud.engine == "vertex":
                found += baseline_differences(records[: index + 1])
            yield found


class _RunsOnly(Observer):
    """Passes on what happens in a local run, but no commands to type next."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def on_event(self, event: Event, record: RunRecord) -> None:
        self._observer.on_event(event, record)

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        self._observer.on_progress(node, facts)

    def on_tick(self) -> None:
        self._observer.on_tick()

    def on_note(self, text: str) -> None:
        self._observer.on_note(text)


def _all_data(config: Config) -> Window:
    """Returns all files of the config's data, of every complete span."""
    examples = config.examples.model_copy(update={"window": _ALL_SPANS})
    return choose_data(config.model_copy(update={"examples": examples}))


def _parameters(request: RehearseRequest, spec: Spec) -> dict[str, Any]:
    """Returns the values that the request gives to parameters of the pipeline."""
    given = {}
    for text in request.parameters:
        name, separator, value = text.partition("=")
        if not separator:
            raise UsageError(
                "this is not a parameter", expected="NAME=VALUE", actual=text
            )
        if name not in spec.parameters:
            raise UsageError(
                f"the pipeline has no parameter {name!r}",
                where=spec.name,
                expected=", ".join(sorted(spec.parameters)) or "no parameters",
                actual=text,
            )
        given[name] = _parse(text, value, spec.parameters[name].type)
    return given


def _parse(text: str, value: str, kind: str) -> Any:
    """Returns the value of a parameter of a type of KFP, such as NUMBER_INTEGER."""
    if kind not in _JSON_TYPES:
        return value
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = None
    types = _JSON_TYPES[kind]
    if type(parsed) not in types:
        raise UsageError(
            "this is no value of the parameter",
            expected=f"{kind}, written as JSON",
            actual=text,
        )
    return parsed


def _upload_of(text: str) -> Upload:
    path, separator, uri = text.rpartition("=")
    if not separator or not uri.startswith("gs://") or not Path(path).exists():
        raise UsageError(
            "this cannot be uploaded",
            expected="PATH=gs://BUCKET/NAME, an existing file or folder",
            actual=text,
        )
    return Upload(Path(path), uri)


def _upload(item: Upload, observer: Observer) -> None:
    upload(item)
    observer.on_note(f"uploads {item.path} to {item.uri} (emulated)")
