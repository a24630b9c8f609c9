"""The cache in TFX's launcher: what runs again after which change."""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

import importlib
import json
import shutil
import sys

import pytest

from sluice import code_fingerprint
from sluice.errors import UsageError

pytestmark = pytest.mark.tf

NODES = """
from tfx.dsl.component.experimental.annotations import (
    InputArtifact, OutputArtifact, Parameter,
)
from tfx.dsl.component.experimental.decorators import component
from tfx.types import standard_artifacts


@component
def Write(
    out: OutputArtifact[standard_artifacts.Examples],
    count: Parameter[int] = 2,
    fingerprint: Parameter[str] = "",
):
    for number in range(count):
        with open(f"{out.uri}/{number}", "w") as file:
            file.write("a")


@component
def Judge(
    model: InputArtifact[standard_artifacts.Model],
    out: OutputArtifact[standard_artifacts.ModelEvaluation],
    baseline_model: InputArtifact[standard_artifacts.Model] = None,
    compared_with: Parameter[str] = "",
):
    pass


@component
def Train(
    base_model: InputArtifact[standard_artifacts.Model],
    out: OutputArtifact[standard_artifacts.Model],
    run_fn: Parameter[str],
):
    pass


@component
def Refuse():
    raise ValueError("no")
"""


class Runs:
    """Launches the nodes of a pipeline in this process, with ``NodeCache``."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.cache = None
        (folder / "nodes_of_mine.py").write_text(NODES)

    @property
    def nodes(self):
        return importlib.import_module("nodes_of_mine")

    def __call__(self, *components, enable_cache=True, **options):
        """Returns ``ran`` or ``cached`` of the last node."""
        from tfx.orchestration import metadata
        from tfx.orchestration.pipeline import Pipeline
        from tfx.orchestration.portable import launcher, tfx_runner

        from runners.cache.node_cache import NodeCache
        from runners.local.node_job import launch
        from runners.local.prepare import substitute_run_id

        self.count += 1
        connection = metadata.sqlite_metadata_connection_config(
            str(self.folder / "metadata.db")
        )
        pipeline = Pipeline(
            pipeline_name="other",
            pipeline_root=str(self.folder / "root"),
            metadata_connection_config=connection,
            components=list(components),
            enable_cache=enable_cache,
        )
        ir = tfx_runner._make_pipeline_proto(pipeline)  # As IrBasedRunner does.
        substitute_run_id(ir, f"run-{self.count}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launcher, "cache_utils", None)
            for node in ir.nodes:
                self.cache = NodeCache([self.folder], **options)
                launch(ir, node.pipeline_node.node_info.id, self.cache)
        with metadata.Metadata(connection) as handle:
            last = max(handle.store.get_executions(), key=lambda item: item.id)
        return {3: "ran", 5: "cached"}[last.last_known_state]

    def models(self, *names):
        """Returns Importers of models."""
        from tfx.dsl.components.common.importer import Importer
        from tfx.types import standard_artifacts

        found = []
        for number, name in enumerate(names):
            path = self.folder / name
            path.mkdir(exist_ok=True)
            importer = Importer(
                source_uri=str(path), artifact_type=standard_artifacts.Model
            )
            found.append(importer.with_id(f"Model{number}"))
        return found


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nodes_of_mine", raising=False)
    return Runs(tmp_path)


def test_a_node_runs_again_when_a_property_changes_or_its_outputs_are_gone(runs):
    write = runs.nodes.Write
    assert [runs(write()), runs(write()), runs(write())] == ["ran", "cached", "cached"]
    assert runs.cache.reason is None
    assert runs(write(count=0)) == "ran"
    assert runs.cache.reason == "its key is new"
    assert runs(write(count=0)) == "cached", "empty outputs are outputs"
    assert runs(write(), use_cache=False) == "ran"
    assert runs.cache.reason == "told not to use the cache"
    assert runs(write(), enable_cache=False) == "ran"
    assert runs.cache.reason == "its cache is turned off"
    shutil.rmtree(runs.folder / "root")
    assert runs(write()) == "ran"
    assert runs.cache.reason == "its outputs are missing"


def test_failed_executions_are_not_used(runs):
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            runs(runs.nodes.Refuse())


def test_a_planned_lookup_executes_nothing(runs):
    from runners.cache.node_cache import WouldRun

    runs(runs.nodes.Write())
    assert runs(runs.nodes.Write(), plan=True) == "cached"
    for count, options in ((9, {}), (2, {"use_cache": False})):
        with pytest.raises(WouldRun) as planned:
            runs(runs.nodes.Write(count=count), plan=True, **options)
        assert str(planned.value) == runs.cache.reason
        assert runs.cache.key and runs.cache.properties["count"] == count
    assert len(list((runs.folder / "root" / "Write" / "out").iterdir())) == 1
    # Explaining the nodes behind it goes on with its last outputs.
    assert runs(runs.nodes.Write(count=9), plan=True, stand_in=1) == "cached"
    assert runs.cache.reason == "its key is new"


def test_a_baseline_that_is_the_candidate_does_not_count(runs):
    """Nor what describes it; otherwise each run after a push would judge anew."""

    def judge(candidate, baseline, about):
        models = runs.models(candidate, *filter(None, [baseline]))
        inputs = {"model": models[0].outputs["result"]}
        if baseline:
            inputs["baseline_model"] = models[1].outputs["result"]
        return runs(*models, runs.nodes.Judge(**inputs, compared_with=about))

    assert judge("v2", "v1", "v1") == "ran"
    assert judge("v2", None, '{"name": null, "skipped": []}') == "ran"
    assert judge("v2", "v2", "itself") == "cached"
    assert judge("v2", "v2", "itself, pushed") == "cached"
    assert judge("v2", None, '{"name": null, "skipped": ["v1"]}') == "ran"
    assert judge("v2", "v1", "v1") == "cached"
    assert judge("v2", "v3", "v3") == "ran"
    (runs.folder / "v2" / "weights").write_text("written by another program")
    assert judge("v2", "v3", "v3") == "ran"


def test_a_model_that_a_warm_start_finds_does_not_count(runs):
    def train(first_weights, **options):
        (model,) = runs.models(first_weights)
        base = model.outputs["result"]
        return runs(model, runs.nodes.Train(base_model=base, **options))

    ours = {"run_fn": "pipeline.training.run_fn.run_fn"}
    assert [train("v1", **ours), train("v2", **ours)] == ["ran", "cached"]
    assert [train("v1", run_fn="mine"), train("v2", run_fn="mine")] == ["ran", "ran"]


def test_code_that_was_edited_during_the_run_is_not_published(runs):
    """Under the fingerprint of the code before; the node imports what is there now."""
    module = runs.folder / "layers.py"
    module.write_text("A = 1\n")
    code = code_fingerprint.digests_of(["layers"], [runs.folder])
    write = runs.nodes.Write(fingerprint=json.dumps({"code": code, "packages": {}}))
    module.write_text("A = 2\n")
    with pytest.raises(UsageError, match="its code was edited during the run") as error:
        runs(write)
    assert error.value.examples == ("layers",)


class Pushed:
    """A PushedModel as far as ``still_served`` looks at it."""

    def __init__(self, destination, digest=""):
        self.destination, self.digest = destination, digest

    def get_int_custom_property(self, name):
        return 1 if self.destination else 0

    def get_string_custom_property(self, name):
        return str(self.destination if name == "pushed_destination" else self.digest)


def test_a_push_counts_while_it_is_the_newest_and_undamaged(tmp_path):
    from runners.cache.node_cache import still_served
    from serving.local_store import LocalModelStore

    def publish(content):
        folder = tmp_path / content
        folder.mkdir(exist_ok=True)
        (folder / "saved_model.pb").write_text(content)
        return LocalModelStore(tmp_path / "serving").publish(folder, facts={})

    first = publish("a")
    assert still_served(Pushed(first.uri))
    second = publish("b")
    assert not still_served(Pushed(first.uri, first.digest))
    assert still_served(Pushed(second.uri, second.digest))
    (tmp_path / "serving" / "2" / "saved_model.pb").write_text("damaged")
    assert not still_served(Pushed(second.uri, second.digest))

    shutil.rmtree(tmp_path / "serving")
    assert not still_served(Pushed(first.uri, first.digest))
    other = publish("c")
    assert other.uri == first.uri
    assert not still_served(Pushed(first.uri, first.digest)), "of another model"
    (tmp_path / "serving" / ".versions" / "1.json").unlink()
    assert not still_served(Pushed(other.uri, other.digest)), "without its record"

    by_another = tmp_path / "theirs" / "1700000000"
    by_another.mkdir(parents=True)
    for place in (by_another, "bq://p.d.model", "projects/1/models/2", ""):
        assert still_served(Pushed(place)), place
