"""Arguments and outputs of components, read from source code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipeline.graph.component_source import read_component
from pipeline.graph.parameter_type import accepted_types

pytestmark = pytest.mark.unit

PARTS = """
import abc
import tfx.types
from tfx.dsl.components.base import base_component
from elsewhere import Imported
from .other import Other, Missing as Gone
from ..top import Top
from . import other

try:
    from .other import Other as Guarded
except ImportError:
    Guarded = None

@dsl.component(use_beam=True)
def Count(examples: InputArtifact, name: Parameter[str], out: OutputArtifact): ...

@component
def Returns(examples: InputArtifact) -> OutputDict(rows=int): ...

def plain(examples): ...

@other_decorator
def decorated(examples): ...

class Own(base_component.BaseComponent):
    def __init__(self, examples, *, limit=3): ...

class Inherits(Own): ...

class OfModule(other.Other): ...

class WithoutConstructor(base_component.BaseComponent): ...

class Unknown(Imported):
    def __init__(self, x): ...

class Plain(abc.ABC, dict): ...

class Artifact(tfx.types.Artifact): ...

def twice(examples): ...
twice = component(twice)
"""
OTHER = """
from tfx.dsl.components.base.base_component import BaseComponent as Base
class Other(Base):
    def __init__(self, x, **kwargs): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    for name in ("mine/__init__.py", "mine/deep/__init__.py"):
        (tmp_path / name).touch()
    (tmp_path / "mine" / "deep" / "parts.py").write_text(PARTS)
    (tmp_path / "mine" / "deep" / "other.py").write_text(OTHER)
    (tmp_path / "mine" / "top.py").write_text(OTHER.replace("Other", "Top"))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Count", ["examples", "name"]),
        ("Returns", ["examples"]),
        ("Own", ["examples", "limit"]),
        ("Inherits", ["examples", "limit"]),
        ("Other", ["x"]),
        ("Guarded", ["x"]),
        ("Top", ["x"]),
        ("OfModule", ["x"]),
        ("WithoutConstructor", ["spec", "custom_executor_spec"]),
        ("Unknown", ["x"]),
    ],
)
def test_arguments_of_a_component(root, name, arguments):
    found = read_component(root, f"mine.deep.parts:{name}")

    assert found and list(found.arguments) == arguments
    assert not found.not_component


@pytest.mark.parametrize("name", ["decorated", "Imported", "Gone", "twice", "nothing"])
def test_names_that_the_source_does_not_define_are_unknown(root, name):
    assert read_component(root, f"mine.deep.parts:{name}") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("plain", "a function without @component"),
        ("Plain", "a class without TFX's base class"),
        ("Artifact", "a class without TFX's base class"),
    ],
)
def test_functions_and_classes_that_are_no_components(root, name, reason):
    found = read_component(root, f"mine.deep.parts:{name}")

    assert found and found.not_component == reason
    line = next(
        number
        for number, text in enumerate(PARTS.splitlines(), 1)
        if text.startswith((f"def {name}(", f"class {name}("))
    )
    assert found.location == f"{root}/mine/deep/parts.py:{line}"


def test_outputs_are_those_of_the_annotations(root):
    count = read_component(root, "mine.deep.parts:Count")
    returns = read_component(root, "mine.deep.parts:Returns")

    assert count and count.outputs == ("out",)
    assert returns and returns.outputs is None


@pytest.mark.parametrize(
    "component",
    [
        "tfx.components:StatisticsGen",
        "tfx.v1.components:Trainer",
        "tfx.components.example_gen.csv_example_gen.component:CsvExampleGen",
        "components.pusher.component:Pusher",
    ],
)
def test_components_of_tfx_and_ours_are_components(root, component):
    found = read_component(root, component)

    assert found and not found.not_component


INPUT = "an output of a node, under 'inputs'"


@pytest.mark.parametrize(
    ("annotation", "accepted"),
    [
        ("int", {"a whole number"}),
        ("float", {"a whole number", "a decimal number"}),
        ("Parameter[float]", {"a decimal number"}),
        ("tfx.dsl.components.Parameter[str]", {"a string"}),
        ("str | None", {"a string", "null"}),
        ("Optional[Union[List[str], RuntimeParameter]]", {"a list", "null"}),
        ("'typing.Dict[str, int]'", {"a mapping"}),
        ("trainer_pb2.TrainArgs", {"a mapping", "a string"}),
        ("InputArtifact[Examples]", {INPUT}),
        ("Optional[types.BaseChannel]", {INPUT, "null"}),
        ("str | Path", None),
        ("Any", None),
        ("'not python'", None),
    ],
)
def test_types_of_values_that_an_annotation_accepts(annotation, accepted):
    assert accepted_types(ast.parse(annotation, mode="eval").body) == accepted
