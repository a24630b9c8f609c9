"""JSON of TensorFlow Serving's REST to tensors and examples, and back.

The formats are those of TensorFlow Serving's ``util/json_tensor.cc``. Python's parser
takes NaN and Infinity, as does TensorFlow Serving's, and both ignore what follows the
first value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from serving.server.status import Code, StatusError, invalid
from serving.signatures import as_json

_ANSWER_KEYS = {"instances": "predictions", "inputs": "outputs"}
# Types of JSON's values, by the kind of NumPy's type.
_TYPES: dict[str, set[type]] = {
    "f": {int, float},
    "i": {int},
    "u": {int},
    "b": {bool},
    "O": {str, dict},
}
_FEATURE_KINDS = {
    bool: "int64_list",
    int: "int64_list",
    float: "float_list",
    str: "bytes_list",
    dict: "bytes_list",
}


def parse(body: bytes) -> dict[str, Any]:
    """Returns the object in a body; raises StatusError if there is none."""
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    try:
        request, _ = json.JSONDecoder().raw_decode(body.decode().lstrip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        raise invalid(f"JSON Parse error: Invalid value. {error}") from None
    if not isinstance(request, dict):
        raise invalid(f"JSON Value: {_show(request)} Is not object")
    if not isinstance(request.get("signature_name", ""), str):
        raise invalid("'signature_name' key must be a string value.")
    return request


def tensors_of(
    request: Mapping[str, Any], inputs: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], str]:
    """Returns the tensors of a request, and the key that they had.

    Args:
      request: parsed.
      inputs: the ``tf.TensorSpec`` of each.

    Raises:
      StatusError: INVALID_ARGUMENT, with the input or element that is wrong.
    """
    keys = request.keys() & _ANSWER_KEYS.keys()
    if len(keys) != 1:
        which = "expecting only one of" if keys else "Missing"
        raise invalid(f"Not formatted correctly {which} 'inputs' or 'instances' key")
    [key] = keys
    value = request[key]
    rows = value if key == "instances" else [value]
    if not isinstance(rows, list) or not rows:
        raise invalid("No values in 'instances' array, or it is no list/array")
    if _is_object(rows[0]):
        columns = _columns(rows, inputs) if key == "instances" else value
        missing = [name for name in inputs if name not in columns]
        if missing:
            raise invalid(f"Missing named input: {missing[0]} in 'inputs' object.")
    elif len(inputs) == 1:
        columns = dict.fromkeys(inputs, value)
    else:
        raise invalid(
            f"{key} is a plain list, but expecting list of objects as multiple input "
            f"tensors are required: {', '.join(inputs)}"
        )
    return {name: _tensor(name, columns[name], inputs[name]) for name in inputs}, key


def _columns(rows: list[Any], inputs: Mapping[str, Any]) -> dict[str, list[Any]]:
    for index, row in enumerate(rows):
        if not _is_object(row):
            raise invalid(
                f"Expecting object but got list at item {index} of input list"
            )
        if row.keys() != inputs.keys():
            raise invalid(
                f"Failed to process element: {index} of 'instances' list. JSON object: "
                f"{_show(row)} keys must be equal to: {','.join(inputs)}"
            )
    return {name: [row[name] for row in rows] for name in inputs}


def _tensor(name: str, value: Any, spec: Any) -> np.ndarray:
    """Returns nested lists as a tensor, of the shape of the first elements."""
    dtype = np.dtype(spec.dtype.as_numpy_dtype)
    if dtype.kind not in _TYPES:
        raise StatusError(Code.UNIMPLEMENTED, f"{name}: JSON has no {spec.dtype.name}")
    shape: list[int] = []
    values = [value]
    while values and isinstance(values[0], list):
        shape.append(len(values[0]))
        for part in values:
            if not isinstance(part, list) or len(part) != shape[-1]:
                raise invalid(
                    f"{name}: JSON Value: {_show(part)} Expecting tensor size: "
                    f"{shape[-1]} as of the first element at level {len(shape)}"
                )
        values = [*chain.from_iterable(values)]
    for kind in {*map(type, values)} - _TYPES[dtype.kind]:
        raise _type_error(name, next(x for x in values if type(x) is kind), spec)
    try:
        if dtype.kind == "O":
            values = [*map(_bytes_of, values)]
        with np.errstate(over="ignore"):
            tensor = np.array(values, dtype)
    except (OverflowError, UnicodeEncodeError):
        raise _type_error(name, values, spec) from None
    # NumPy 1 takes integers that do not fit.
    if dtype.kind in "iu" and tensor.tolist() != values:
        raise _type_error(name, values, spec)
    return tensor.reshape(shape)


def _type_error(name: str, value: Any, spec: Any) -> StatusError:
    what = f"{name}: JSON Value: {_show(value)} is not of expected type"
    return invalid(f"{what}: {spec.dtype.name}")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and [*value] != ["b64"]


def _bytes_of(value: str | dict[str, Any]) -> bytes:
    """Returns the bytes of a text, or of ``{"b64": ...}``, padded or not."""
    if isinstance(value, str):
        return value.encode()
    text = value.get("b64")
    if len(value) != 1 or not isinstance(text, str):
        raise invalid(f"JSON Value: {_show(value)} not formatted correctly for base64")
    try:
        text = text.rstrip("=")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise invalid("Unable to base64 decode") from None


def json_of(outputs: Mapping[str, np.ndarray], key: str) -> bytes:
    """Returns the answer to a request with a key; a single output has no name.

    Raises:
      StatusError: INVALID_ARGUMENT, JSON lacks a type, or rows are not of one number.
    """
    by_row = key == "instances"
    sizes = {value.shape[:1] for value in outputs.values()}
    if by_row and (len(sizes) != 1 or () in sizes):
        shapes = {name: value.shape for name, value in outputs.items()}
        raise invalid(f"outputs have inconsistent batch size: {shapes}")
    columns = {
        name: _values(tensor, name.endswith("_bytes"))
        for name, tensor in outputs.items()
    }
    answer: Any = columns
    if len(columns) == 1:
        [answer] = columns.values()
    elif by_row:
        rows = zip(*columns.values(), strict=True)
        answer = [dict(zip(columns, row, strict=True)) for row in rows]
    text = json.dumps({_ANSWER_KEYS[key]: answer}, ensure_ascii=False)
    # Text that is not UTF-8 goes out as the model returned it.
    return text.encode(errors="surrogateescape")


def _values(tensor: np.ndarray, as_bytes: bool) -> Any:
    """Returns nested lists; floats with the fewest digits that are exact."""
    kind = tensor.dtype.kind
    if kind == "O":
        show = as_json if as_bytes else _text
        return np.vectorize(show, [object])(tensor).tolist()
    if kind not in "fiub":
        raise invalid(f"Failed to write JSON value for tensor type: {tensor.dtype}")
    is_short = kind == "f" and tensor.dtype.itemsize < 8
    return (tensor.astype(str).astype(float) if is_short else tensor).tolist()


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")


def fill_examples(request: Mapping[str, Any], source: Any) -> None:
    """Fills the ``Input`` of a request with its examples and their context.

    Raises:
      StatusError: INVALID_ARGUMENT, with the feature that is wrong.
    """
    examples = request.get("examples")
    if not isinstance(examples, list) or not examples:
        raise invalid("Expecting 'examples' value to be a list/array with elements")
    target = source.example_list
    if "context" in request:
        target = source.example_list_with_context
        _fill_example(request["context"], target.context)
    for value in examples:
        _fill_example(value, target.examples.add())


def _fill_example(value: Any, example: Any) -> None:
    if not isinstance(value, dict):
        raise invalid(f"Example must be JSON object but got JSON {_show(value)}")
    for name, content in value.items():
        feature = example.features.feature[name]
        for item in content if isinstance(content, list) else [content]:
            kind = _FEATURE_KINDS.get(type(item))
            if kind is None:
                what = f"Feature: {name} has element with unexpected JSON type"
                raise invalid(f"{what}: {_show(item)}")
            if kind != (feature.WhichOneof("kind") or kind):
                what = f"Unexpected element type in feature: {name} expecting type"
                raise invalid(f"{what}: {feature.WhichOneof('kind')}")
            is_bytes = kind == "bytes_list"
            try:
                added = _bytes_of(item) if is_bytes else item
                getattr(feature, kind).value.append(added)
            except ValueError:  # Also of a text with half a surrogate pair.
                what = f"Feature: {name} has an element out of range. Only int64_t is"
                raise invalid(f"{what} supported.") from None


def json_of_classes(response: Any) -> bytes:
    """Returns the JSON of a ``ClassificationResponse``."""
    rows = [
        [[item.label, *_floats([item.score])] for item in row.classes]
        for row in response.result.classifications
    ]
    return json.dumps({"results": rows}).encode()


def json_of_values(response: Any) -> bytes:
    """Returns the JSON of a ``RegressionResponse``."""
    values = [item.value for item in response.result.regressions]
    return json.dumps({"results": _floats(values)}).encode()


def _floats(values: list[float]) -> list[float]:
    return _values(np.array(values, np.float32), False)


def _show(value: Any) -> str:
    try:
        return json.dumps(value)[:256]
    except RecursionError:
        return "(nested deeply)"
