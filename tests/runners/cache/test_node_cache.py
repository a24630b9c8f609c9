"""The cache in TFX's launcher: keys, lookup, valid outputs."""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

import re
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from runners.cache.history import last_parts
from runners.cache.node_cache import WouldRun
from sluice.storage.contents import Contents
from tests.runners.cache.launched_nodes import Runs

tf = pytest.mark.tf


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs(tmp_path)
    monkeypatch.syspath_prepend(str(runs.modules))
    for name in ("nodes_of_mine", "used"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return runs


@tf
def test_beam_arguments_and_pipeline_root_do_not_count(runs: Runs) -> None:
    runner = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    arguments = [runner, "--sdk_container_image=unused"]
    assert runs(runs.nodes.Beam(), beam_args=arguments) == {"Beam": "ran"}
    arguments.append("--direct_num_workers=1")
    runs.root = runs.folder / "elsewhere"
    assert runs(runs.nodes.Beam(), beam_args=arguments) == {"Beam": "cached"}
    assert runs.told("Beam") == []


@tf
def test_a_schema_edited_in_place_is_imported_again(runs: Runs) -> None:
    from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen

    schema = runs.folder / "schema.pbtxt"
    schema.write_text("")

    def run() -> str:
        return runs(ImportSchemaGen(schema_file=str(schema)))["ImportSchemaGen"]

    assert [run(), run()] == ["ran", "cached"]
    schema.write_text('feature { name: "fare" }')
    assert run() == "ran"
    assert runs.told("ImportSchemaGen") == ["file schema.pbtxt: content changed"]


@tf
def test_only_the_code_that_a_function_imports_counts(runs: Runs) -> None:
    def run(count: int = 2) -> str:
        return runs(runs.nodes.Write(count=count))["Write"]

    assert [run(), run()] == ["ran", "cached"]
    (runs.modules / "unused.py").write_text("TEXT = 'b'\n")
    assert run() == "cached"
    assert runs.cache.reason is None
    (runs.modules / "used.py").write_text("TEXT = 'b'\n")
    assert run() == "ran"
    assert runs.cache.reason == "no earlier execution has the same key"
    assert runs.told("Write") == ["code: used changed"]
    assert run(count=3) == "ran"
    assert runs.told("Write") == ["property count: 2 -> 3"]


@tf
@pytest.mark.parametrize("packed", [True, False])
def test_a_test_beside_a_module_file_does_not_count(
    runs: Runs, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not packed:
        monkeypatch.setenv("UNSUPPORTED_DO_NOT_PACKAGE_USER_MODULES", "1")
    folder = runs.folder / "udf"
    folder.mkdir()
    for name in ("model", "layers", "model_test"):
        (folder / f"{name}.py").write_text("")
    (folder / "model.py").write_text("import layers\n")

    def run() -> str:
        return runs(runs.nodes.Train(str(folder / "model.py")))["Train"]

    assert [run(), run()] == ["ran", "cached"]
    (folder / "model_test.py").write_text("# touched\n")
    assert run() == "cached"
    assert len(list(runs.root.glob("_wheels/*.whl"))) == (2 if packed else 0)
    (folder / "layers.py").write_text("# edited\n")
    assert run() == "ran"
    assert runs.told("Train") == ["code: layers changed"]


@tf
def test_a_candidate_that_becomes_the_baseline_does_not_count(runs: Runs) -> None:
    from tfx.dsl.components.common.importer import Importer
    from tfx.types import standard_artifacts

    def model(version: str, node: str) -> Any:
        path = runs.folder / version
        path.mkdir(exist_ok=True)
        (path / "weights").write_text(version)
        return Importer(
            source_uri=str(path), artifact_type=standard_artifacts.Model
        ).with_id(node)

    def run(candidate: str, baseline: str) -> str:
        models = [model(candidate, "Candidate"), model(baseline, "Baseline")]
        judge = runs.nodes.Judge(
            model=models[0].outputs["result"],
            baseline_model=models[1].outputs["result"],
        )
        return runs(*models, judge)["Judge"]

    assert run("v2", "v1") == "ran"
    assert run("v2", "v2") == "cached"
    assert run("v2", "v2") == "cached"
    assert run("v2", "v3") == "ran"
    assert run("v2", "v1") == "cached"
    assert run("v3", "v3") == "ran"
    (runs.folder / "v3" / "weights").write_text("written by another program")
    assert run("v2", "v1") == "cached"


@tf
def test_outputs_with_a_missing_file_are_not_used(runs: Runs) -> None:
    def run() -> str:
        return runs(runs.nodes.Write())["Write"]

    assert run() == "ran"
    (first,) = (runs.root / "Write" / "out").iterdir()
    (first / "0").unlink()
    assert run() == "ran"
    reason = r"its outputs cannot be used again: .*/1 held 2 files \(2 bytes\), now 1"
    assert re.match(reason, runs.cache.reason or "")
    assert run() == "cached"
    shutil.rmtree(runs.root)
    assert run() == "ran"
    assert "is missing" in (runs.cache.reason or "")


@tf
def test_empty_outputs_are_used(runs: Runs) -> None:
    first, second = (runs(runs.nodes.Nothing())["Nothing"] for _ in range(2))
    assert [first, second] == ["ran", "cached"]
    (output,) = (runs.root / "Nothing" / "out").iterdir()
    contents = Contents.read(str(output))
    assert contents is not None
    assert contents.files == 0


@tf
def test_without_the_cache_everything_runs(runs: Runs) -> None:
    assert runs(runs.nodes.Write()) == {"Write": "ran"}
    assert runs(runs.nodes.Write(), use_cache=False) == {"Write": "ran"}
    assert runs.cache.reason == "told not to use the cache"
    assert runs(runs.nodes.Write(), enable_cache=False) == {"Write": "ran"}
    assert runs.cache.reason == "its cache is turned off"


@tf
def test_failed_executions_are_not_used(runs: Runs) -> None:
    from tfx.orchestration import metadata

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            runs(runs.nodes.Refuse())
    with metadata.Metadata(runs.connection()) as handle:
        assert last_parts(handle.store, "other", "Refuse") is None
        assert last_parts(handle.store, "other", "Nowhere") is None


@tf
def test_a_planned_lookup_executes_nothing(runs: Runs) -> None:
    runs(runs.nodes.Write(count=2))
    copy = runs.folder / "copy.db"
    shutil.copy(runs.folder / "metadata.db", copy)
    assert runs(runs.nodes.Write(count=2), db=copy, plan=True) == {"Write": "cached"}
    cases: list[tuple[int, dict[str, Any]]] = [
        (9, {}),
        (2, {"use_cache": False}),
        (2, {"enable_cache": False}),
    ]
    for count, options in cases:
        with pytest.raises(WouldRun) as planned:
            runs(runs.nodes.Write(count=count), db=copy, plan=True, **options)
        assert str(planned.value) == runs.cache.reason
        assert runs.cache.parts and runs.cache.parts["properties"] == {"count": count}
    assert len(list((runs.root / "Write" / "out").iterdir())) == 1


@tf
def test_a_key_may_be_registered_concurrently(runs: Runs) -> None:
    from tfx.orchestration import metadata

    from runners.cache.node_cache import _register

    with metadata.Metadata(runs.connection()):
        pass
    barrier, found = threading.Barrier(4), []

    def register() -> None:
        with metadata.Metadata(runs.connection()) as handle:
            barrier.wait()
            found.append(_register(handle, "key", {"node": {}}))

    writers = [threading.Thread(target=register) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len({context.id for context in found}) == 1
    assert len(found) == 4
