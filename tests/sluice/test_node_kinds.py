"""Kinds of nodes and artifacts match TFX and our components."""

from __future__ import annotations

import pytest

import components
from sluice import node_kinds
from sluice.node_kinds import DOCUMENTS, VERDICTS, kind_of
from sluice.project import find_user_code, own_root

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("class_path", node_kinds._KINDS)
def test_each_kind_is_an_existing_class(class_path):
    module, _, name = class_path.rpartition(".")
    find_user_code(own_root(), f"{module}:{name}")
    assert kind_of(class_path).name == name


def test_artifact_types_exist():
    ours = {f"components.{name}" for name in components.ARTIFACT_TYPES}
    named = {*VERDICTS, *DOCUMENTS}
    assert {name for name in named if "." in name} == ours


def test_an_unknown_kind_has_no_traits():
    other = kind_of("mine.parts.MyDataGate")
    assert (other.name, other.gate, other.pushes) == ("MyDataGate", False, False)
    assert not other.takes_module_path
    assert kind_of("tfx.components.trainer.component.Trainer").takes_module_path
