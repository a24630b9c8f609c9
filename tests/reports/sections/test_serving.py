"""The section Serving: signatures with a request, size, versions in the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reports.read_run import RunData
from reports.run_page import render_run
from reports.sections.serving import build, shape
from sluice.record.run_record import PushRecord

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]
NOT_PUSHED = [PushRecord("/serving", "blocked")]


def model(request: Any = None) -> dict[str, Any]:
    return {
        "size_bytes": 3_000_000,
        "files": [{"path": "saved_model.pb", "size_bytes": 2_000_000}],
        "files_left_out": 2,
        "tensorflow_version": "2.16.2",
        "parameters": 1000,
        "trainable_parameters": 900,
        "signatures": [
            {
                "name": "serving_default",
                "inputs": [{"name": "examples", "dtype": "string", "shape": [None]}],
                "outputs": [{"name": "<p>", "dtype": "float32", "shape": [None, 1]}],
                "example_request": request,
            }
        ],
    }


def test_a_signature_with_its_request(run_with: RunWith) -> None:
    request = {"signature_name": "serving_default", "instances": [{"fare": 1.5}]}
    run = run_with({"model": model(request)})
    view = build(run)
    assert view is not None
    assert view.facts == [("Version 3", "pushed: /serving/3")]
    assert [tile[1:] for tile in view.tiles] == [
        ("3 MB", "3 files"),
        ("1,000", "900 trainable"),
        ("2.16.2", "wrote it"),
    ]
    (signature,) = view.signatures
    assert json.loads(signature.request or "") == request
    assert signature.tensors.rows == [
        ("input", "examples", "string", "[?]"),
        ("output", "<p>", "float32", "[?, 1]"),
    ]
    assert view.files is not None and view.files.caption.endswith("; 2 more")
    page = render_run(run)
    assert "&#34;fare&#34;: 1.5" in page and "&lt;p&gt;" in page


def test_a_model_that_was_not_pushed(run_with: RunWith) -> None:
    view = build(run_with({"model": model("x" * 5000)}, pushes=NOT_PUSHED))
    assert view is not None and view.facts == []
    assert view.signatures[0].request is None


def test_without_a_model_there_is_no_section(run_with: RunWith) -> None:
    assert build(run_with(pushes=NOT_PUSHED)) is None


def test_an_artifact_without_a_saved_model(run_with: RunWith) -> None:
    empty = {"size_bytes": 0, "files": [], "model_dir": None}
    view = build(run_with({"model": empty}))
    assert view is not None and view.signatures == [] and view.files is None


def test_unknown_shapes() -> None:
    assert [shape(None), shape([]), shape([None, 3])] == ["?", "[]", "[?, 3]"]
