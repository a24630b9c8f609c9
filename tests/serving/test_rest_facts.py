"""Requests and answers of TensorFlow Serving's own tests, and their status.

They are facts from tensorflow/serving: ``util/json_tensor_test.cc``,
``model_servers/http_rest_api_handler_test.cc``, ``http_rest_api_util_test.cc`` and
``tensorflow_model_server_test.py``. Where those look at protos, a signature here
returns its inputs. Errors are compared by status, and by the words of TensorFlow
Serving that ours have, too.
"""

import json
import math
from typing import Any

import pytest

from tests.kit.half_plus_two import client_of, make_core, run_async, save_half_plus_two

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("tf")]
MODEL = "/v1/models/half"
PREDICT = f"{MODEL}:predict"
NAMED: dict[str, Any] = {
    "int_tensor": [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]],
    "str_tensor": [["foo", "bar"], ["baz", "bat"]],
    "str_tensor_bytes": [
        [{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}],
        [{"b64": "dGY="}, {"b64": "c2VydmluZw=="}],
    ],
    "float_tensor": [[1.0, math.nan], [2.0, math.inf]],
    "dbl_tensor": [[math.nan], [2.0]],
}
ROWS = [{name: values[row] for name, values in NAMED.items()} for row in range(2)]


def one(kind: str, value: object, key: str = "instances"):
    """A request for the signature that returns its only input, of one type."""
    return {"signature_name": kind, key: value}


def other(row: int, **values: object):
    rows = [dict(item) for item in ROWS]
    rows[row] |= values
    return {"signature_name": "echo", "instances": rows}


HELLO = [{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}]
PAIRS = [
    # Handler: predict, by version, with a signature and by columns.
    (
        {"instances": [[1.0, 2.0], [3.0, 4.0]]},
        {"predictions": [[2.5, 3.0], [3.5, 4.0]]},
    ),
    ({"instances": [1.0, 2.0]}, {"predictions": [2.5, 3.0]}),
    (
        {"signature_name": "serving_default", "instances": [3.0, 4.0]},
        {"predictions": [3.5, 4.0]},
    ),
    (
        {"signature_name": "serving_default", "inputs": [3.0, 4.0]},
        {"outputs": [3.5, 4.0]},
    ),
    # One input.
    (
        one("int32", [[1, 2], [3, 4], [5, 6]]),
        {"predictions": [[1, 2], [3, 4], [5, 6]]},
    ),
    (
        one("float32", [1, 2.0, 3, 4, 5.003, 0.007, 0.0]),
        {"predictions": [1.0, 2.0, 3.0, 4.0, 5.003, 0.007, 0.0]},
    ),
    (
        one("float64", [1.0, 2, 3, 4, 0.662, 0, 0.0]),
        {"predictions": [1.0, 2.0, 3.0, 4.0, 0.662, 0.0, 0.0]},
    ),
    (json.dumps(one("int32", [[1, 2]])) + "X", {"predictions": [[1, 2]]}),
    (one("string", HELLO), {"predictions": ["hello", "world"]}),
    (one("string", [[x] for x in HELLO]), {"predictions": [["hello"], ["world"]]}),
    (
        one("string", [{"value": [[x] for x in HELLO]}]),
        {"predictions": [[["hello"], ["world"]]]},
    ),
    (one("string", HELLO[0], "inputs"), {"outputs": "hello"}),
    (one("int32", {"value": [[[1, 2]]]}, "inputs"), {"outputs": [[[1, 2]]]}),
    (one("int32", [[[1, 2]]], "inputs"), {"outputs": [[[1, 2]]]}),
    (one("int32", [1, 2, 3, 4, 5]), {"predictions": [1, 2, 3, 4, 5]}),
    (one("int32", [[], []]), {"predictions": [[], []]}),
    (one("bool", [True, False]), {"predictions": [True, False]}),
    # Several inputs.
    ({"signature_name": "echo", "instances": ROWS}, {"predictions": ROWS}),
    ({"signature_name": "echo", "inputs": NAMED}, {"outputs": NAMED}),
]
TEXTS = [
    (
        one("float32", [[9e6, 999999, 0.5], [0.0003, 0.00003, 555557.5]]),
        "[[9000000.0, 999999.0, 0.5], [0.0003, 3e-05, 555557.5]]",
    ),
    (
        '{"signature_name": "float32", "instances": [[NaN, Infinity], [3, -Infinity]]}',
        "[[NaN, Infinity], [3.0, -Infinity]]",
    ),
    (one("float32", [0.2, 0.1234567]), "[0.2, 0.1234567]"),
    (one("float64", [0.1 + 0.2, 0.2]), "[0.30000000000000004, 0.2]"),
]
DEEP = "[" * 100_000
ERRORS = [
    ("", "JSON Parse error: The document is empty"),
    ("instances = [1, 2]", "JSON Parse error: Invalid value"),
    ("[]", "Is not object"),
    ('{"instances": ' + DEEP, "JSON Parse error"),
    (b'{"instances": "\xff"}', "JSON Parse error"),
    ({"signature_name": 5, "instances": [1]}, "must be a string value"),
    ({"instances": [1.0], "inputs": [1.0]}, "Not formatted correctly"),
    ({}, "'inputs' or 'instances' key"),
    ({"instances": []}, "No values in"),
    ({"instances": {"x": 1.0}}, "'instances'"),
    ({"signature_name": "nothing", "instances": [1]}, "not found"),
    (one("int32", [[1, 2], [3, 4], [5, 6, 7]]), "Expecting tensor size"),
    (one("int32", [[1, 2], [3, 4], [[5, 6]]]), "Expecting"),
    (one("int32", [1, [1]]), ""),
    (one("int32", [[1], 1]), ""),
    (one("int32", [[1, 2], ["a", "b"]]), "not of expected type"),
    (one("int32", [1.0]), "not of expected type"),
    (one("int32", [True]), "not of expected type"),
    (one("int32", [None]), "not of expected type"),
    (one("int32", [2**31]), "not of expected type"),
    (one("uint8", [300]), "not of expected type"),
    (one("uint8", [-1]), "not of expected type"),
    (one("int64", [2**63]), "not of expected type"),
    (one("bool", [1]), "not of expected type"),
    (one("float32", ["1"]), "not of expected type"),
    (one("float32", [{"b64": "aGVsbG8="}]), "not of expected type"),
    (one("string", [1]), "not of expected type"),
    (one("string", ["\ud800"]), "not of expected type"),
    (one("string", [{"b64": "!"}]), "Unable to base64 decode"),
    (one("string", [{"b64": "abcde"}]), "Unable to base64 decode"),
    (one("string", [["a", {"b64": 1}]]), "not formatted correctly for base64"),
    (one("string", [["baz"], {"value": ["baz"]}]), ""),
    (other(1, int_tensor=[[[7, 8], [9, 0], [1, 2]]]), "Expecting"),
    (other(1, int_tensor=[[7, 8], [9, 0]]), "Expecting tensor size"),
    (other(1, more=1), "keys must be equal to"),
    (
        {"signature_name": "echo", "instances": [ROWS[0], [1, 20, 30]]},
        "Expecting object but got list",
    ),
    ({"signature_name": "echo", "instances": [[1]]}, "plain list"),
    (
        {"signature_name": "echo", "inputs": {"int_tensor": [1]}},
        "Missing named input",
    ),
    ({"signature_name": "rows", "instances": [-1.0]}, "assertion failed"),
    ({"signature_name": "rows", "instances": [[1.0]]}, "expects float32 (None,)"),
    # Rows of an answer must be of one number.
    ({"signature_name": "total", "instances": [1.0, 2.0]}, "inconsistent batch size"),
]
REGRESS = {"signature_name": "regress_x_to_y"}
CLASSIFY = {"signature_name": "classify_x_to_y"}
EXAMPLES = [
    ("regress", {**REGRESS, "examples": [{"x": 80.0}]}, {"results": [42.0]}),
    ("regress", {**REGRESS, "examples": [{"x": [2.0]}]}, {"results": [3.0]}),
    ("classify", {**CLASSIFY, "examples": [{"x": 20.0}]}, {"results": [[["", 12.0]]]}),
    ("classify", {**CLASSIFY, "examples": [{"x": 10.0}]}, {"results": [[["", 7.0]]]}),
    (
        "regress",
        # A context stands for what an example lacks.
        {**REGRESS, "context": {"x": 10.0}, "examples": [{"x": 80.0}, {}]},
        {"results": [42.0, 7.0]},
    ),
    (
        "regress",
        f'{json.dumps(REGRESS)[:-1]}, "examples": [{{"x": NaN}}, {{"x": -Infinity}}]}}',
        {"results": [math.nan, -math.inf]},
    ),
]
NAMES = {"names": ["foo"]}
EXAMPLE_ERRORS = [
    ({"signature_name": ["hello"], "examples": [NAMES]}, "must be a string"),
    ({"context": [NAMES], "examples": [NAMES]}, "Example must be JSON object"),
    ({"examples": NAMES}, "list/array"),
    ({"examples": []}, "list/array"),
    ({"examples": [[NAMES]]}, "Example must be JSON object"),
    (
        {"examples": [{"names": [10, None]}]},
        "names has element with unexpected JSON type",
    ),
    ({"examples": [{"names": [10, 10.0]}]}, "feature: names expecting type: int64"),
    ({"examples": [{"names": [10, {"test": 10}]}]}, "names"),
    (
        {"examples": [{"names": [[10], 20]}]},
        "names has element with unexpected JSON type",
    ),
    (
        {"examples": [{"names": [20, 18446744073709551603]}]},
        "Only int64_t is supported",
    ),
    ({"signature_name": "rows", "examples": [{"x": 1.0}]}, "is not for"),
    ({"examples": [{"x": 1}], **REGRESS, "signature_name": "none"}, "not found"),
]
PATHS = [
    ("GET", "/v1/foo", 400, "Malformed request"),
    ("POST", "/v1/foo", 400, "Malformed request"),
    ("GET", "/v1/models", 400, "Missing model name"),
    ("POST", "/v1/models", 400, "Malformed request"),
    ("GET", PREDICT, 400, "Malformed request"),
    ("PUT", PREDICT, 400, "Malformed request"),
    ("POST", "/v1/models/foo/version/50:predict", 400, "Malformed request"),
    ("POST", "/v1/models/foo/versions/HELLO:regress", 400, "Malformed request"),
    ("POST", "/v1/models/foo/versions/1/labels/a:regress", 400, "Malformed request"),
    ("POST", f"/v1/models/foo/versions/{2**64 - 1}:regress", 400, "convert version"),
    ("POST", "/v1/models/foo/metadata", 400, "Malformed request"),
    ("POST", "/v1/models/foo:predict", 404, "not found"),
    ("POST", "/v1/models/foo/versions/50:predict", 404, "not found"),
    ("POST", f"{MODEL}/versions/99:predict", 404, "not found"),
    ("POST", f"{MODEL}/labels/latest:predict", 400, "version label: latest"),
    ("GET", "/v1/models/foo", 404, "Could not find any versions of model foo"),
    ("GET", f"{MODEL}/versions/99", 404, "Could not find"),
    ("GET", "/v1/models/a%21%2Fb", 404, "model a!/b"),
]


@pytest.fixture(scope="module")
def core(tf, tmp_path_factory):
    root = tmp_path_factory.mktemp("half") / "123"
    return make_core({"half": save_half_plus_two(root)})


@pytest.fixture(scope="module")
def ask(core):
    async def request(method, path, body):
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        async with client_of(core) as client:
            answer = await client.request(method, path, content=content)
        assert answer.headers["content-type"] == "application/json"
        return answer.status_code, answer.text

    return lambda *asked: run_async(request(*asked))


def in_order(value):
    """Returns JSON as text, which is equal also where there is a NaN."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(("body", "expected"), PAIRS)
def test_answers(ask, body, expected):
    status, text = ask("POST", PREDICT, body)
    assert (status, in_order(json.loads(text))) == (200, in_order(expected))


@pytest.mark.parametrize(("body", "expected"), TEXTS)
def test_numbers_as_text(ask, body, expected):
    assert ask("POST", PREDICT, body) == (200, f'{{"predictions": {expected}}}')


@pytest.mark.parametrize(("body", "words"), ERRORS)
def test_errors(ask, body, words):
    status, text = ask("POST", PREDICT, body)
    error = json.loads(text)
    assert status == 400 and [*error] == ["error"] and words in error["error"], text


@pytest.mark.parametrize(("method", "body", "expected"), EXAMPLES)
def test_examples(ask, method, body, expected):
    status, text = ask("POST", f"{MODEL}/versions/123:{method}", body)
    assert (status, in_order(json.loads(text))) == (200, in_order(expected))


@pytest.mark.parametrize("method", ["classify", "regress"])
@pytest.mark.parametrize(("body", "words"), EXAMPLE_ERRORS)
def test_errors_of_examples(ask, method, body, words):
    status, text = ask("POST", f"{MODEL}:{method}", body)
    assert status == 400 and words in json.loads(text)["error"], text


@pytest.mark.parametrize(("method", "path", "status", "words"), PATHS)
def test_paths(ask, method, path, status, words):
    answered, text = ask(method, path, '{"instances": [1.0]}')
    assert answered == status and words in json.loads(text)["error"], text


def test_type_that_json_lacks(ask):
    body = {"signature_name": "complex64", "instances": [1]}
    assert ask("POST", PREDICT, body)[0] == 501


def test_status_and_metadata(ask):
    state = {
        "version": "123",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    for path in (MODEL, f"{MODEL}/versions/123"):
        status, text = ask("GET", path, "")
        assert (status, json.loads(text)) == (200, {"model_version_status": [state]})
    metadata = json.loads(ask("GET", f"{MODEL}/metadata", "")[1])
    spec = {"name": "half", "version": "123", "signature_name": ""}
    assert metadata["model_spec"] == spec
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "regress_x_to_y", "echo"} <= signatures.keys()
    assert signatures["rows"]["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert signatures["rows"]["method_name"] == "tensorflow/serving/predict"
