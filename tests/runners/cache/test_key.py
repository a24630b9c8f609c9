"""The parts of a node's cache key: code, files, properties, inputs."""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from runners.cache.history import changes
from runners.cache.key import (
    InputArtifact,
    NodeFacts,
    code_roots,
    edited_since,
    key_of,
    key_parts,
    without_baseline,
)
from sluice.code_fingerprint import digests_of
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit

NODE = NodeFacts("taxi", "Step", "app.steps.Step", executor={"class": "app.steps.Do"})
MODEL = InputArtifact(9, "/artifacts/Trainer/model/9")


def _parts(root: Path, node: NodeFacts = NODE, **properties: object) -> dict:
    return key_parts(replace(node, properties=properties), [root])


def test_the_key_is_the_digest_of_all_parts(root: Path) -> None:
    parts = _parts(root, epochs=3)
    assert list(parts) == [
        "node",
        "code",
        "files",
        "properties",
        "inputs",
        "outputs",
        "packages",
    ]
    assert key_of(parts) == key_of(json.loads(json.dumps(parts)))
    for name in parts:
        assert key_of({**parts, name: {"other": 1}}) != key_of(parts)


def test_another_pipeline_has_another_key(root: Path) -> None:
    other = replace(NODE, pipeline="digits")
    assert key_of(_parts(root)) != key_of(_parts(root, other))


def test_the_code_is_what_executor_driver_and_named_functions_import(
    root: Path,
) -> None:
    node = replace(NODE, driver="app.driver.Driver")
    config = json.dumps({"train": {"model": "app.models:build"}})
    found = _parts(root, node, custom_config=config)["code"]
    assert list(found) == ["app", "app.driver", "app.maths", "app.models", "app.steps"]


@pytest.mark.parametrize(
    "text",
    ["app.models.build", "app.models:build", "app.models.Model.build", "app.models"],
)
def test_import_paths_are_recognized_in_each_form(root: Path, text: str) -> None:
    assert "app.models" in _parts(root, run_fn=text)["code"]


@pytest.mark.parametrize("text", ["app", "train", "app/models", "other.models.build"])
def test_other_words_are_not_import_paths(root: Path, text: str) -> None:
    assert "app.models" not in _parts(root, name=text)["code"]


def test_a_module_path_may_be_one_word(root: Path) -> None:
    (root / "evaluation.py").write_text("")
    assert "evaluation" in _parts(root, module_path="evaluation")["code"]


def test_code_of_tfx_counts_by_version(root: Path) -> None:
    node = replace(NODE, executor={"class": "tfx.components.trainer.executor.Executor"})
    parts = _parts(root, node)
    assert parts["code"] == {}
    assert {"tfx", "tensorflow", "tensorflow-model-analysis"} <= set(parts["packages"])


def test_invalid_python_is_an_error(root: Path) -> None:
    (root / "app/maths.py").write_text("def f(:\n")
    with pytest.raises(ConfigError, match=r"maths.py is not valid Python"):
        _parts(root)


def test_code_without_a_file_is_never_cached(root: Path) -> None:
    node = replace(NODE, executor={"class": "made_in_a_notebook.Do"})
    first, second = _parts(root, node), _parts(root, node)
    assert key_of(first) != key_of(second)
    assert changes(first, second) == [
        "code: made_in_a_notebook has no file, so the node always runs"
    ]


def test_the_script_that_was_run_counts_with_what_it_imports(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = root / "my-pipeline.py"
    script.write_text("import app.models\n")
    main = type(sys)("__main__")
    main.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    found = _parts(root, replace(NODE, executor={"class": "__main__.Do"}))["code"]
    assert list(found) == ["app", "app.models", "my-pipeline"]


def test_a_module_file_counts_with_what_it_imports(root: Path) -> None:
    node = replace(NODE, executor={})
    parts = _parts(root, node, module_file=str(root / "udf/train.py"))
    assert list(parts["code"]) == ["app", "app.maths", "layers", "train"]
    assert parts["properties"] == {"module_file": "train.py"}


def _wheel(path: Path, udf: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for file in udf.glob("*.py"):
            wheel.write(file, file.name)
    return f"train@{path}"


def test_a_packed_module_counts_with_what_it_imports_of_the_wheel(root: Path) -> None:
    node = replace(NODE, executor={})
    packed = _wheel(root / "_wheels/user_code-0.0+1.whl", root / "udf")
    before = _parts(root, node, module_path=packed)
    assert list(before["code"]) == ["app", "app.maths", "layers", "train"]

    (root / "udf/train_test.py").write_text("touched = True\n")
    touched = _wheel(root / "_wheels/user_code-0.0+2.whl", root / "udf")
    assert key_of(_parts(root, node, module_path=touched)) == key_of(before)

    (root / "udf/layers.py").write_text("units = 2\n")
    edited = _wheel(root / "_wheels/user_code-0.0+3.whl", root / "udf")
    after = _parts(root, node, module_path=edited)
    assert changes(before, after) == ["code: layers changed"]


def test_two_modules_with_one_name_both_count(root: Path) -> None:
    (root / "layers.py").write_text("# what app.steps imports\n")
    (root / "app/steps.py").write_text("import layers\n")
    module_file = str(root / "udf/train.py")
    before = _parts(root, module_file=module_file)
    for path in (root / "layers.py", root / "udf/layers.py"):
        path.write_text("changed = 1\n" + path.read_text())
        after = _parts(root, module_file=module_file)
        assert changes(before, after) == ["code: layers changed"]
        before = after


def test_the_fingerprint_lists_code_and_packages(root: Path) -> None:
    stamp = {"code": {"app.maths": "abc"}, "packages": {"tfx": "1.16.0"}}
    parts = _parts(root, fingerprint=json.dumps(stamp), run_fn="app.models.build")
    assert parts["code"] == {"app.maths": "abc"}
    assert parts["packages"] == {"tfx": "1.16.0"}
    assert parts["properties"] == {"run_fn": "app.models.build"}


def test_a_foreign_fingerprint_is_a_property(root: Path) -> None:
    parts = _parts(root, fingerprint='{"code": 1}')
    assert parts["properties"] == {"fingerprint": {"code": 1}}
    assert "app.steps" in parts["code"]


@pytest.mark.parametrize("nested", [False, True])
def test_a_file_counts_by_name_and_content(root: Path, nested: bool) -> None:
    def parts(path: Path) -> dict:
        text = json.dumps({"inner": [str(path)]}) if nested else str(path)
        return _parts(root, schema_file=text)

    schema = root / "schema.pbtxt"
    before = parts(schema)
    moved = root / "udf" / schema.name
    moved.write_text(schema.read_text())
    assert key_of(parts(moved)) == key_of(before)
    schema.write_text("feature { name: 'x' }")
    assert changes(before, parts(schema)) == ["file schema.pbtxt: content changed"]


def test_a_directory_counts_by_name(root: Path) -> None:
    parts = _parts(root, input_base=str(root / "app"))
    assert parts["files"] == {}
    assert parts["properties"] == {"input_base": str(root / "app")}


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 5000, "a\nb", "{not json"])
def test_unusual_strings_are_unchanged(root: Path, value: str) -> None:
    assert _parts(root, text=value)["properties"] == {"text": value}


def _judge(model: InputArtifact, *baseline: InputArtifact) -> NodeFacts:
    return replace(NODE, inputs={"model": [model], "baseline_model": list(baseline)})


def test_the_candidate_as_baseline_equals_no_baseline(root: Path) -> None:
    alone, itself = (_parts(root, _judge(MODEL, *more)) for more in ((), (MODEL,)))
    assert key_of(alone) == key_of(itself)
    assert set(itself["inputs"]) == {"model"}


def test_another_baseline_counts(root: Path) -> None:
    other = _parts(root, _judge(MODEL, InputArtifact(2, "/artifacts/Trainer/model/2")))
    alone = _parts(root, _judge(MODEL))
    assert key_of(other) != key_of(alone)
    assert key_of(without_baseline(other)) == key_of(alone)


def test_the_description_of_the_baseline_counts(root: Path) -> None:
    """But not where it is the candidate itself, as in the first run after a push."""
    other = _judge(MODEL, InputArtifact(2, "/artifacts/Trainer/model/2"))
    keys = {key_of(_parts(root, other, compared_with=text)) for text in ("a", "b")}
    assert len(keys) == 2
    judged = _parts(root, _judge(MODEL), compared_with="none")
    itself = _parts(root, _judge(MODEL, MODEL), compared_with="itself")
    assert key_of(without_baseline(judged)) == key_of(itself)


def test_nodes_without_a_baseline_are_unchanged(root: Path) -> None:
    node = replace(NODE, inputs={"model": [MODEL], "examples": []})
    parts = _parts(root, node)
    assert parts["inputs"] == {"model": [{"id": 9, "uri": MODEL.uri}]}
    assert without_baseline(parts) == parts


@pytest.mark.parametrize("name", ["udf", "schema.pbtxt"])
def test_external_artifacts_count_by_content(root: Path, name: str) -> None:
    external = InputArtifact(3, str(root / name), is_external=True)
    node = replace(NODE, inputs={"data": [external]})
    before = _parts(root, node)
    (root / "udf/layers.py").write_text("units = 3\n")
    (root / "schema.pbtxt").write_text("")
    (line,) = changes(before, _parts(root, node))
    assert line.startswith("input data: the content of ")


def test_code_roots_exclude_installed_packages(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root / "udf"))
    monkeypatch.chdir(root / "app")
    found = code_roots()
    assert found[0] == root / "udf"
    assert {root / "app", own_root()} <= set(found)
    assert not any("site-packages" in path.parts for path in found)
    assert not any(path.name == f"python3.{sys.version_info[1]}" for path in found)
    assert code_roots([str(root / "udf"), "/nowhere"])[0] == root / "udf"


def test_code_edited_since_the_graph_was_compiled_is_found(root: Path) -> None:
    stamp = {"code": digests_of(["app.steps"], [root]), "packages": {"tfx": "1"}}
    node = replace(NODE, properties={"fingerprint": json.dumps(stamp)})
    assert edited_since(node, [root]) == []
    (root / "app" / "unused.py").write_text("MORE = 1\n")
    assert edited_since(node, [root]) == []
    (root / "app" / "maths.py").write_text("import math\n")
    assert edited_since(node, [root]) == ["app.maths"]
    assert edited_since(NODE, [root]) == []


def test_the_first_weights_of_our_training_are_no_part_of_its_key(root: Path) -> None:
    """Each training makes a newer model to start from: it would run again for ever."""
    cold = replace(NODE, properties={"run_fn": "pipeline.training.run_fn.run_fn"})
    warm = replace(cold, inputs={"base_model": [MODEL]})
    assert key_of(key_parts(warm, [root])) == key_of(key_parts(cold, [root]))
    # Another training may depend on it in its own way.
    own = replace(NODE, properties={"run_fn": "app.train.run_fn"})
    other = replace(own, inputs={"base_model": [MODEL]})
    assert key_of(key_parts(other, [root])) != key_of(key_parts(own, [root]))
