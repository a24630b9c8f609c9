"""gRPC as TensorFlow Serving's: ``PredictionService`` and ``ModelService``.

Other methods, such as ``MultiInference`` and ``HandleReloadConfigRequest``, answer
UNIMPLEMENTED.
"""

from __future__ import annotations

from typing import Any

import grpc

from serving.server import protos
from serving.server.core import Core, fill_model_spec
from serving.server.status import StatusError, invalid


def add_services(server: grpc.aio.Server, core: Core) -> None:
    """Adds the services of a core to a server."""
    from tensorflow_serving.apis import (
        model_service_pb2_grpc,
        prediction_service_pb2_grpc,
    )

    def add(base: Any, register: Any, methods: dict[str, Any]) -> None:
        made = {name: _method(answer) for name, answer in methods.items()}
        register(type(base.__name__, (base,), made)(), server)

    asked = _Asked(core)
    add(
        prediction_service_pb2_grpc.PredictionServiceServicer,
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server,
        {
            "Predict": asked.predict,
            "Classify": asked.classify,
            "Regress": asked.regress,
            "GetModelMetadata": asked.metadata,
        },
    )
    add(
        model_service_pb2_grpc.ModelServiceServicer,
        model_service_pb2_grpc.add_ModelServiceServicer_to_server,
        {"GetModelStatus": asked.status},
    )


def _method(answer: Any) -> Any:
    """Returns the method of a service, which ends with the status of its errors."""

    async def method(self: Any, request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await answer(request)
        except Exception as error:
            failure = StatusError.of(error)
            await context.abort(failure.code, failure.message)

    return method


class _Asked:
    """Answers requests of the protos."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def _version(self, request: Any) -> Any:
        if not request.HasField("model_spec"):
            raise invalid("Missing ModelSpec")
        spec = request.model_spec
        return self._core.version(spec.name, _number(spec), spec.version_label)

    async def predict(self, request: Any) -> Any:
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        name, limit = request.model_spec.name, self._core.limits.body_bytes
        with self._version(request) as loaded:
            signature = loaded.servable.signature(request.model_spec.signature_name)
            tensors = protos.tensors_of(request, signature, limit)
            wanted = request.output_filter
            outputs = await self._core.predict(name, loaded, signature, tensors, wanted)
            response = predict_pb2.PredictResponse()
            fill_model_spec(response.model_spec, name, loaded, signature.name)
        for key, value in outputs.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
        return response

    async def classify(self, request: Any) -> Any:
        from tensorflow_serving.apis import classification_pb2

        response = classification_pb2.ClassificationResponse()
        return await self._ask("classify", request, response)

    async def regress(self, request: Any) -> Any:
        from tensorflow_serving.apis import regression_pb2

        return await self._ask("regress", request, regression_pb2.RegressionResponse())

    async def _ask(self, method: protos.Method, request: Any, response: Any) -> Any:
        with self._version(request) as loaded:
            name = request.model_spec.name
            await self._core.ask_examples(name, loaded, method, request, response)
        return response

    async def metadata(self, request: Any) -> Any:
        with self._version(request) as loaded:
            if [*request.metadata_field] != ["signature_def"]:
                raise invalid("metadata_field must be 'signature_def'")
            return self._core.metadata(request.model_spec.name, loaded)

    async def status(self, request: Any) -> Any:
        if not request.HasField("model_spec"):
            raise invalid("Missing ModelSpec")
        return self._core.status(request.model_spec.name, _number(request.model_spec))


def _number(spec: Any) -> int | None:
    return spec.version.value if spec.HasField("version") else None
