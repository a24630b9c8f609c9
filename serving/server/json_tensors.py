"""JSON of TensorFlow Serving's REST to tensors and examples, and back.

The formats are those of TensorFlow Serving's ``util/json_tensor.cc``; the texts of
errors begin as its do. Python's parser allows NaN and Infinity, as does TensorFlow
Serving's, and both ignore what follows the first value.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from serving.server.servable import Input, Signature, Tensors
from serving.server.status import Code, StatusError, invalid

Format = Literal["instances", "inputs"]
_KEY_OF_ANSWER = {"instances": "predictions", "inputs": "outputs"}
_DECODER = json.JSONDecoder()
_SHOWN = 256
# Python's types of a value, by the kind of NumPy's type.
_ALLOWED: dict[str, set[type]] = {
    "f": {int, float},
    "i": {int},
    "u": {int},
    "b": {bool},
    "O": {str, dict},
}


def parse(body: bytes) -> dict[str, Any]:
    """Returns the object in a body.

    Raises:
      StatusError: INVALID_ARGUMENT, there is none, or the signature's name is no text.
    """
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    try:
        text = body.decode()
        start = len(text) - len(text.lstrip(" \t\r\n"))
        request, _ = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        reason = "Nested too deeply" if deep else f"Invalid value. {error}"
        raise invalid(f"JSON Parse error: {reason}") from None
    if not isinstance(request, dict):
        raise invalid(f"JSON Value: {_show(request)} Is not object")
    if not isinstance(request.get("signature_name", ""), str):
        raise invalid(
            f"JSON Value: {_show(request)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return request


def tensors_of(
    request: Mapping[str, Any], signature: Signature
) -> tuple[dict[str, np.ndarray], Format]:
    """Returns the tensors of a parsed request, and the format of its answer.

    Raises:
      StatusError: INVALID_ARGUMENT, with the first element or input that is wrong.
    """
    if "instances" in request and "inputs" in request:
        raise invalid(
            f"JSON Value: {_show(request)} Not formatted correctly expecting only "
            "one of 'inputs' or 'instances' keys to exist"
        )
    if "instances" in request:
        return _tensors_of_rows(request["instances"], signature.inputs), "instances"
    if "inputs" in request:
        return _tensors_of_columns(request["inputs"], signature.inputs), "inputs"
    raise invalid("Missing 'inputs' or 'instances' key")


def _tensors_of_rows(rows: Any, inputs: Mapping[str, Input]) -> dict[str, np.ndarray]:
    if not isinstance(rows, list):
        raise invalid(
            f"JSON Value: {_show(rows)} Expecting 'instances' to be a list/array"
        )
    if not rows:
        raise invalid("JSON Value: [] No values in 'instances' array")
    if not isinstance(rows[0], dict) and len(inputs) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple "
            "input tensors required as per tensorinfo_map"
        )
    if not _is_object(rows[0]):
        for index, row in enumerate(rows):
            if _is_object(row):
                raise invalid(
                    f"Expecting value/list but got object at item {index} of input list"
                )
        [(name, item)] = inputs.items()
        return {name: _column(rows, item, "")}
    for index, row in enumerate(rows):
        if not _is_object(row):
            raise invalid(
                f"Expecting object but got list at item {index} of input list"
            )
        if unknown := row.keys() - inputs.keys():
            raise _at(index, f" key: {min(unknown)}", "it is no input of the signature")
        if row.keys() != inputs.keys():
            raise invalid(
                f"Failed to process element: {index} of 'instances' list. JSON object: "
                f"{_show(row)} keys must be equal to: {','.join(inputs)}"
            )
    return {
        name: _column([row[name] for row in rows], item, f" key: {name}")
        for name, item in inputs.items()
    }


def _column(values: list[Any], item: Input, key: str) -> np.ndarray:
    """Returns values of rows as one tensor; the first one's shape holds for all."""
    try:
        return _tensor(values, item)
    except StatusError as error:
        shape: tuple[int, ...] | None = None
        for index, value in enumerate(values):
            try:
                tensor = _tensor(value, item)
            except StatusError as of_one:
                raise _at(index, key, of_one.message) from None
            shape = tensor.shape if shape is None else shape
            if tensor.size != np.prod(shape):
                sizes = f"{int(np.prod(shape))} but got: {tensor.size}"
                raise _at(index, key, f"Expecting tensor size: {sizes}") from None
            if tensor.shape != shape:
                shapes = f"{[*shape]} but got: {[*tensor.shape]}"
                raise _at(index, key, f"Expecting shape {shapes}") from None
        raise error


def _at(index: int, key: str, reason: str) -> StatusError:
    return invalid(
        f"Failed to process element: {index}{key} of 'instances' list. Error: "
        f"INVALID_ARGUMENT: {reason}"
    )


def _tensors_of_columns(
    value: Any, inputs: Mapping[str, Input]
) -> dict[str, np.ndarray]:
    if _is_object(value):
        for name in inputs:
            if name not in value:
                raise invalid(f"Missing named input: {name} in 'inputs' object.")
        return {name: _tensor(value[name], item) for name, item in inputs.items()}
    if len(inputs) > 1:
        raise invalid(
            "inputs is a plain value/list, but expecting an object as multiple input "
            "tensors required as per tensorinfo_map"
        )
    [(name, item)] = inputs.items()
    return {name: _tensor(value, item)}


def _tensor(value: Any, item: Input) -> np.ndarray:
    """Returns nested lists as a tensor, of the shape of the first elements."""
    shape: list[int] = []
    values = [value]
    while values and isinstance(values[0], list):
        size = len(values[0])
        for part in values:
            if not isinstance(part, list):
                raise invalid(
                    f"JSON Value: {_show(part)} found at incorrect level: "
                    f"{len(shape)} in the JSON DOM."
                )
            if len(part) != size:
                raise invalid(
                    f"Encountered list at unexpected size: {len(part)} at level: "
                    f"{len(shape)} expected size: {size}"
                )
        shape.append(size)
        values = [*chain.from_iterable(values)]
    allowed = _ALLOWED.get(item.dtype.kind)
    if allowed is None:
        what = f"Conversion of JSON Value to type: {item.dtype_name}"
        raise StatusError(Code.UNIMPLEMENTED, what)
    if wrong := {*map(type, values)} - allowed:
        first = next(x for x in values if type(x) in wrong)
        if isinstance(first, list):
            raise invalid(f"Encountered list at unexpected level: {len(shape)}")
        raise _type_error(first, item)
    if item.dtype.kind == "O":
        values = [x.encode() if isinstance(x, str) else _bytes_of(x) for x in values]
    try:
        with np.errstate(over="ignore"):
            tensor = np.array(values, item.dtype)
    except (OverflowError, UnicodeEncodeError):
        raise _type_error(values[0], item) from None
    if item.dtype.kind in "iu" and values:
        # NumPy 1 takes numbers that do not fit.
        bounds = np.iinfo(item.dtype)
        if min(values) < bounds.min or max(values) > bounds.max:
            raise _type_error(max(values, key=abs), item)
    return tensor.reshape(shape)


def _type_error(value: Any, item: Input) -> StatusError:
    return invalid(
        f"JSON Value: {_show(value)} is not of expected type: "
        f"{_NAMES.get(item.dtype_name, item.dtype_name)}"
    )


# As TensorFlow's ``DataTypeString``.
_NAMES = {"float32": "float", "float64": "double"}


def _is_bytes(value: Any) -> bool:
    return [*value] == ["b64"] and isinstance(value["b64"], str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not _is_bytes(value)


def _bytes_of(value: dict[str, Any]) -> bytes:
    """Decodes ``{"b64": ...}``, with or without its padding."""
    if not _is_bytes(value):
        raise invalid(
            f"JSON Value: {_show(value)} not formatted correctly for base64 data"
        )
    text = value["b64"].rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Unable to base64 decode") from None


def json_of(outputs: Tensors, answer: Format) -> bytes:
    """Returns the answer's JSON; a single output stands without its name.

    Raises:
      StatusError: INVALID_ARGUMENT, an output has a type that JSON has not; or outputs
        of the row format do not have the same number of rows.
    """
    if not outputs:
        raise invalid("Cannot convert empty tensor map to JSON")
    by_row = answer == "instances"
    if by_row:
        for name, tensor in outputs.items():
            if not tensor.ndim:
                raise invalid(f"Tensor name: {name} has no shape information")
        if len({len(tensor) for tensor in outputs.values()}) > 1:
            rows = {name: len(tensor) for name, tensor in outputs.items()}
            raise invalid(f"Tensors have inconsistent batch size: {rows}")
    columns: dict[str, list[str]] = {
        json.dumps(name): _texts(tensor, name.endswith("_bytes"), 1 if by_row else 0)
        for name, tensor in outputs.items()
    }
    parts = [
        f"{{{', '.join(map(': '.join, zip(columns, row, strict=True)))}}}"
        if len(columns) > 1
        else row[0]
        for row in zip(*columns.values(), strict=True)
    ]
    content = f"[{', '.join(parts)}]" if by_row else parts[0]
    # Text that is no UTF-8 goes out as the model returned it.
    return f'{{"{_KEY_OF_ANSWER[answer]}": {content}}}'.encode(errors="surrogateescape")


def _texts(tensor: np.ndarray, as_bytes: bool, axis: int) -> list[str]:
    """Returns the JSON of each part of a tensor along its first ``axis`` dimensions."""
    values, kind = tensor.ravel(), tensor.dtype.kind
    if kind == "f":
        texts = decimals(values)
    elif kind in "iu":
        texts = [*map(str, values.tolist())]
    elif kind == "b":
        texts = ["true" if value else "false" for value in values]
    elif kind == "O":
        texts = [_text_of(value, as_bytes) for value in values]
    else:
        raise invalid(
            f"Failed to write JSON value for tensor type: {tensor.dtype.name}"
        )
    shape = tensor.shape
    for level in range(tensor.ndim - 1, axis - 1, -1):
        size, count = shape[level], int(np.prod(shape[:level]))
        starts = range(0, count * size, size) if size else [0] * count
        texts = [f"[{', '.join(texts[start : start + size])}]" for start in starts]
    return texts


def _text_of(value: bytes | str, as_bytes: bool) -> str:
    value = value.encode() if isinstance(value, str) else value
    if as_bytes:
        return f'{{"b64": "{base64.b64encode(value).decode()}"}}'
    return json.dumps(value.decode(errors="surrogateescape"), ensure_ascii=False)


def decimals(values: np.ndarray) -> list[str]:
    """Returns floats as text: six digits, or as many as the type needs to be exact."""
    type_of, digits = values.dtype.type, 9 if values.dtype.itemsize <= 4 else 17
    texts = []
    for value in values.tolist():
        text = f"{value:.6g}"
        if value != value:
            text = "NaN"
        elif text in ("inf", "-inf"):
            text = text.replace("inf", "Infinity")
        else:
            if type_of(text) != value:
                text = f"{value:.{digits}g}"
            if "." not in text and "e" not in text:
                text += ".0"
        texts.append(text)
    return texts


def fill_examples(request: Mapping[str, Any], proto: Any) -> None:
    """Fills a ``ClassificationRequest`` or ``RegressionRequest``.

    Raises:
      StatusError: INVALID_ARGUMENT, with the first feature that is wrong.
    """
    proto.model_spec.signature_name = request.get("signature_name", "")
    has_context = "context" in request
    kind = "example_list_with_context" if has_context else "example_list"
    source = getattr(proto.input, kind)
    if has_context:
        _fill_example(request["context"], source.context)
    examples = request.get("examples")
    if not isinstance(examples, list) or not examples:
        raise invalid(
            f"JSON Value: {_show(request)} Expecting 'examples' value to be a "
            "list/array that is not empty"
        )
    for value in examples:
        _fill_example(value, source.examples.add())


def _fill_example(value: Any, example: Any) -> None:
    if not isinstance(value, dict):
        raise invalid(f"Example must be JSON object but got JSON {_type_name(value)}")
    for name, content in value.items():
        feature = example.features.feature[name]
        for item in content if isinstance(content, list) else [content]:
            _add(name, item, feature)


def _add(name: str, value: Any, feature: Any) -> None:
    kind = _KIND_OF.get(type(value))
    if kind is None or (isinstance(value, dict) and not _is_bytes(value)):
        raise invalid(
            f"Feature: {name} has element with unexpected JSON type: "
            f"{_type_name(value)}"
        )
    present = feature.WhichOneof("kind") or kind
    if present != kind:
        expected = present.removesuffix("_list")
        raise invalid(
            f"Unexpected element type in feature: {name} expecting type: {expected}"
        )
    if isinstance(value, dict):
        value = _bytes_of(value)
    elif isinstance(value, str):
        value = value.encode()
    try:
        getattr(feature, kind).value.append(value)
    except ValueError:
        raise invalid(
            f"Feature: {name} has uint64_t element. Only int64_t is supported."
        ) from None


_KIND_OF = {
    bool: "int64_list",
    int: "int64_list",
    float: "float_list",
    str: "bytes_list",
    dict: "bytes_list",
}
_TYPE_NAMES: Sequence[tuple[Any, str]] = (
    (type(None), "Null"),
    (dict, "Object"),
    (list, "Array"),
    (str, "String"),
)


def _type_name(value: Any) -> str:
    matches = (name for kind, name in _TYPE_NAMES if isinstance(value, kind))
    return next(matches, "Number")


def json_of_classes(result: Any) -> bytes:
    """Returns the JSON of a ``ClassificationResult``."""
    rows = [
        ", ".join(
            f"[{json.dumps(item.label)}, {score}]"
            for item, score in zip(row.classes, _scores(row.classes), strict=True)
        )
        for row in result.classifications
    ]
    return f'{{"results": [{", ".join(f"[{row}]" for row in rows)}]}}'.encode()


def _scores(classes: Any) -> list[str]:
    return decimals(np.array([item.score for item in classes], np.float32))


def json_of_values(result: Any) -> bytes:
    """Returns the JSON of a ``RegressionResult``."""
    values = np.array([item.value for item in result.regressions], np.float32)
    return f'{{"results": [{", ".join(decimals(values))}]}}'.encode()


def _show(value: Any) -> str:
    try:
        return json.dumps(value)[:_SHOWN]
    except RecursionError:
        return "(nested deeply)"
