"""Answers of the server beside those of TensorFlow itself, and requests in batches."""

import asyncio
import json
import random
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

from tests.kit.half_plus_two import (
    client_of,
    listening,
    make_core,
    run_async,
    save_half_plus_two,
)

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("tf")]


@pytest.fixture(scope="module")
def half(tf, tmp_path_factory):
    return save_half_plus_two(tmp_path_factory.mktemp("half") / "123")


@pytest.fixture(scope="module")
def core(half, image_model_dir, tabular_model_dir):
    models = {"half": half, "tips": tabular_model_dir, "images": image_model_dir}
    return make_core(models)


def rows_of(source: random.Random, count: int):
    return {
        "miles": [
            source.choice([float("nan"), source.uniform(-5, 5)]) for _ in range(count)
        ],
        "riders": [
            source.choice([-(2**63), source.randrange(5)]) for _ in range(count)
        ],
        "payment": [source.choice(["", "Cash", "Kärtchen"]) for _ in range(count)],
    }


def test_same_as_tensorflow_in_both_formats_and_in_batches(tf, core, tabular_model_dir):
    """Requests of all sizes at once, which are joined, against single calls."""
    source = random.Random(1)
    requests = [rows_of(source, source.randrange(1, 9)) for _ in range(60)]
    batches: list[int] = []
    core.models["tips"].loaded.batcher._on_batch = batches.append

    async def send():
        async with client_of(core) as client:

            async def one(index, columns):
                body = {"signature_name": "predict_values", "inputs": columns}
                if index % 2:
                    names, rows = [*columns], zip(*columns.values(), strict=True)
                    body = {
                        "signature_name": "predict_values",
                        "instances": [
                            dict(zip(names, row, strict=True)) for row in rows
                        ],
                    }
                answer = await client.post(
                    "/v1/models/tips:predict", content=json.dumps(body)
                )
                return answer.json()

            return await asyncio.gather(*map(one, range(60), requests))

    answers = run_async(send())
    assert max(batches) > 32 and len(batches) < 30  # They were joined.
    model = tf.saved_model.load(str(tabular_model_dir))
    call = model.signatures["predict_values"]
    kinds = {"miles": tf.float32, "riders": tf.int64, "payment": tf.string}
    for index, (columns, answer) in enumerate(zip(requests, answers, strict=True)):
        expected = call(**{x: tf.constant(v, kinds[x]) for x, v in columns.items()})
        if index % 2:
            rows = answer["predictions"]
            answer = {"outputs": {x: [row[x] for row in rows] for x in expected}}
        labels = [[text.decode()] for [text] in expected["label"].numpy()]
        assert answer["outputs"]["label"] == labels
        probabilities = np.float32(answer["outputs"]["probabilities"])
        # In a batch, a value may be computed by another instruction of the processor.
        np.testing.assert_allclose(probabilities, expected["probabilities"], rtol=1e-6)


def test_bad_request_fails_alone(core):
    bodies = [
        {"signature_name": "rows", "instances": [value, 1.0]}
        for value in [2.0, -1.0, 4.0, -2.0, *range(20)]
    ]
    bodies.append({"signature_name": "rows", "instances": ["x"]})
    bodies.append({"signature_name": "total", "inputs": [1.0, 2.0]})
    bodies.append({"signature_name": "total", "inputs": [3.0]})

    async def send():
        async with client_of(core) as client:
            url = "/v1/models/half:predict"
            sent = (client.post(url, content=json.dumps(body)) for body in bodies)
            return [answer.json() for answer in await asyncio.gather(*sent)]

    answers = run_async(send())
    for body, answer in zip(bodies[:24], answers, strict=False):
        value = body["instances"][0]
        if value < 0:
            assert "assertion failed" in answer["error"]
        else:
            assert answer == {"predictions": [value / 2 + 2, 2.5]}
    assert "not of expected type" in answers[24]["error"]
    # One number for all rows cannot be split: these were computed one by one.
    assert answers[25:] == [{"outputs": 3.0}, {"outputs": 3.0}]


def test_shapes_that_do_not_fit_together_are_not_joined(core):
    bodies = [{"instances": [[1.0] * width]} for width in (1, 2, 3)] * 5

    async def send():
        async with client_of(core) as client:
            url = "/v1/models/half:predict"
            sent = (client.post(url, content=json.dumps(body)) for body in bodies)
            return [answer.json() for answer in await asyncio.gather(*sent)]

    widths = [len(answer["predictions"][0]) for answer in run_async(send())]
    assert widths == [1, 2, 3] * 5


@pytest.fixture
def make_limited(half):
    from serving.server.core import Limits

    def make(**limits):
        return make_core({"half": half}, Limits(**limits))

    return make


def test_model_that_hangs_and_rows_beyond_the_limit(make_limited):
    core = make_limited(seconds=0.2, rows=3)
    cases = [("hang", 2, 504), ("rows", 4, 400)]

    async def send(name, rows):
        body = {"signature_name": name, "instances": [1.0] * rows}
        async with client_of(core) as client:
            url = "/v1/models/half:predict"
            return (await client.post(url, content=json.dumps(body))).status_code

    codes = [run_async(send(name, rows)) for name, rows, _ in cases]
    core.models["half"].loaded.servable.close()  # Ends the call.
    assert codes == [code for *_, code in cases]


def test_bodies_that_are_slow_too_large_or_cut(make_limited):
    """No client keeps a request, and others are answered meanwhile."""
    core = make_limited(seconds=1.0, body_bytes=10_000)
    head = b"POST /v1/models/half:predict HTTP/1.1\r\nHost: a\r\n"
    good = b'{"signature_name": "rows", "instances": [2.0]}'
    sized = head + b"Content-Length: %d\r\n\r\n"
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"

    def send(port: int, *parts: bytes, pause_s: float = 0.0):
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            for part in parts:
                try:
                    connection.sendall(part)
                except OSError:  # The server has answered and closed.
                    break
                time.sleep(pause_s)
            answer = connection.recv(65536)
        return int(answer.split()[1]), answer

    with listening(core) as (port, _):
        assert send(port, sized % len(good) + good)[0] == 200
        assert send(port, sized % 100_000_000)[0] == 413
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
        assert send(port, chunked, *[chunk] * 3)[0] == 413
        socket.create_connection(("127.0.0.1", port)).sendall(
            sized % 99 + b"{"
        )  # Goes.
        with ThreadPoolExecutor(1) as slow:
            began = time.monotonic()
            trickle = (b" " for _ in range(30))
            asked = slow.submit(send, port, sized % 99, *trickle, pause_s=0.1)
            assert send(port, sized % len(good) + good)[0] == 200
            status, answer = asked.result()
        assert status == 504 and b"no answer within 1 s" in answer
        assert time.monotonic() - began < 8


def test_grpc_answers_as_rest_does(tf, core):
    from tensorflow_serving.apis import (
        classification_pb2,
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
        prediction_service_pb2_grpc,
        regression_pb2,
    )

    from serving.server.grpc_service import add_services

    def predict(name="half", signature="rows", version=None, label="", **inputs):
        request = predict_pb2.PredictRequest()
        spec = request.model_spec
        spec.name, spec.signature_name, spec.version_label = name, signature, label
        if version:
            spec.version.value = version
        for key, value in inputs.items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        return request

    bomb = predict(x=np.array([1], np.float32))
    bomb.inputs["x"].tensor_shape.dim[0].size = 2**40
    filtered = predict("tips", "predict_values", miles=np.array([1.0], np.float32))
    filtered.inputs["riders"].CopyFrom(tf.make_tensor_proto(np.array([2], np.int64)))
    filtered.inputs["payment"].CopyFrom(tf.make_tensor_proto(["Cash"]))
    filtered.output_filter.append("probabilities")
    unknown = predict(x=np.array([1], np.float32))
    unknown.output_filter.append("z")
    code = grpc.StatusCode
    failures = [
        (predict("foo"), code.NOT_FOUND),
        (predict(version=9, x=np.array([1], np.float32)), code.NOT_FOUND),
        (predict(label="stable"), code.INVALID_ARGUMENT),
        (predict(signature="none"), code.FAILED_PRECONDITION),
        (predict(x=np.array([1], np.float64)), code.INVALID_ARGUMENT),
        (predict(x=np.array([[1]], np.float32)), code.INVALID_ARGUMENT),
        (predict(y=np.array([1], np.float32)), code.INVALID_ARGUMENT),
        (predict(x=np.array([-1], np.float32)), code.INVALID_ARGUMENT),
        (unknown, code.INVALID_ARGUMENT),
        (bomb, code.INVALID_ARGUMENT),
    ]

    def examples(kind, signature):
        request = kind()
        request.model_spec.name = "half"
        request.model_spec.signature_name = signature
        example = request.input.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(80)
        return request

    async def send():
        server = grpc.aio.server()
        add_services(server, core)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            half = await stub.Predict(predict(x=np.array([1, 2], np.float32)))
            assert [*half.outputs] == ["y"] and half.model_spec.version.value == 123
            assert tf.make_ndarray(half.outputs["y"]).tolist() == [2.5, 3.0]
            tips = await stub.Predict(filtered)
            assert [*tips.outputs] == ["probabilities"]
            classes = examples(
                classification_pb2.ClassificationRequest, "classify_x_to_y"
            )
            result = (await stub.Classify(classes)).result
            assert result.classifications[0].classes[0].score == 42
            values = examples(regression_pb2.RegressionRequest, "regress_x_to_y")
            answer = await stub.Regress(values)
            assert answer.result.regressions[0].value == 42
            assert answer.model_spec.signature_name == "regress_x_to_y"
            asked = get_model_metadata_pb2.GetModelMetadataRequest()
            asked.model_spec.name = "half"
            with pytest.raises(grpc.aio.AioRpcError, match="metadata_field"):
                await stub.GetModelMetadata(asked)
            asked.metadata_field.append("signature_def")
            metadata = (await stub.GetModelMetadata(asked)).metadata["signature_def"]
            signatures = get_model_metadata_pb2.SignatureDefMap()
            assert metadata.Unpack(signatures) and "rows" in signatures.signature_def
            state = get_model_status_pb2.GetModelStatusRequest()
            state.model_spec.name = "half"
            models = model_service_pb2_grpc.ModelServiceStub(channel)
            [status] = (await models.GetModelStatus(state)).model_version_status
            assert (status.version, status.state) == (123, status.AVAILABLE)
            codes = []
            for request, _ in failures:
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await stub.Predict(request)
                codes.append(raised.value.code())
            assert codes == [expected for _, expected in failures]
        await server.stop(0)

    run_async(send())


def test_observers_get_every_answered_request(half):
    from serving.server.core import Core, Limits

    seen: list[Any] = []
    models = make_core({"half": half}).models.values()
    core = Core(models, Limits(), [seen.append])
    bodies = {
        "predict": {"signature_name": "rows", "instances": [1.0]},
        "regress": {"signature_name": "regress_x_to_y", "examples": [{"x": 2.0}]},
    }

    async def send():
        async with client_of(core) as client:
            for method, body in bodies.items():
                content = json.dumps(body)
                url = f"/v1/models/half:{method}"
                assert (await client.post(url, content=content)).status_code == 200
            await client.post("/v1/models/half:predict", content='{"instances": ["a"]}')

    run_async(send())
    assert [item.method for item in seen] == [*bodies]
    predicted, regressed = seen
    assert predicted.inputs["x"].tolist() == [1] and predicted.outputs["y"] == [2.5]
    assert isinstance(regressed.inputs["inputs"][0], bytes)
    assert {(x.version.name, x.version.servable.version) for x in seen} == {
        ("half", 123)
    }


def test_health_and_metrics(core):
    async def get():
        async with client_of(core) as client:
            await client.get("/v1/models/half")
            await client.get("/v1/models/made-up")
            return [await client.get(x) for x in ("/healthz", "/readyz", "/metrics")]

    *health, metrics = run_async(get())
    assert Counter(x.status_code for x in health) == {200: 2}
    lines = metrics.text.splitlines()
    assert 'sluice_serving_version{model="half"} 123.0' in lines
    count = "sluice_serving_latency_seconds_count"
    asked = 'interface="rest",method="status"'
    for code, model in (("OK", "half"), ("NOT_FOUND", "")):
        labels = f'{{code="{code}",{asked},model="{model}"}}'
        assert any(x.startswith(count + labels) for x in lines)
    assert "made-up" not in metrics.text
