"""What TensorFlow keeps until its process ends."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from sluice.patches.tensorflow import holds_accelerator

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("is_initialized", "kinds", "holds"),
    [
        (True, ["CPU"], False),
        (True, ["CPU", "GPU"], True),
        (True, ["CPU", "TPU"], True),
        (False, ["CPU", "GPU"], False),
    ],
)
def test_accelerators_are_held_once_tensorflow_has_its_devices(
    is_initialized, kinds, holds, monkeypatch
):
    context = SimpleNamespace(
        _initialized=is_initialized,
        list_logical_devices=lambda: [SimpleNamespace(device_type=x) for x in kinds],
    )
    module = SimpleNamespace(_context=context)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)
    assert holds_accelerator() is holds


def test_no_accelerator_is_held_without_tensorflow(monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorflow.python.eager.context", raising=False)
    assert not holds_accelerator()
