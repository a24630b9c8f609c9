"""gRPC as TensorFlow Serving's: ``PredictionService`` and ``ModelService``.

Other methods, such as ``MultiInference`` and ``HandleReloadConfigRequest``, answer
UNIMPLEMENTED.
"""

from __future__ import annotations

from typing import Any

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving.server.core import Core, fill_spec
from serving.server.servable import tensors_of
from serving.server.status import StatusError, invalid


def add_services(server: grpc.aio.Server, core: Core) -> None:
    """Adds the services of a core to a server."""

    async def predict(request: Any) -> Any:
        spec, response = request.model_spec, predict_pb2.PredictResponse()
        with core.version(spec) as version:
            signature = version.servable.signature(spec.signature_name)
            wanted = request.output_filter or signature.outputs
            if unknown := {*wanted} - {*signature.outputs}:
                raise invalid(f"output tensor alias not found in signature: {unknown}")
            tensors = tensors_of(request, signature, core.limits.body_bytes)
            outputs = await core.compute(version, "predict", signature, tensors)
        for name in wanted:
            response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
        fill_spec(response.model_spec, version, signature.name)
        return response

    async def metadata(request: Any) -> Any:
        if [*request.metadata_field] != ["signature_def"]:
            raise invalid("metadata_field must be signature_def")
        return core.metadata(request.model_spec)[0]

    async def status(request: Any) -> Any:
        return core.status(request.model_spec)

    def method(name: str, answer: Any) -> Any:
        async def answer_or_abort(
            self: Any, request: Any, context: grpc.aio.ServicerContext
        ) -> Any:
            answering = answer(request)
            try:
                model = request.model_spec.name
                return await core.measure(answering, model, name, "grpc")
            except StatusError as error:
                await context.abort(error.code, error.message)

        return answer_or_abort

    class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
        Predict = method("predict", predict)
        Classify = method("classify", core.classify)
        Regress = method("regress", core.regress)
        GetModelMetadata = method("metadata", metadata)

    class Models(model_service_pb2_grpc.ModelServiceServicer):
        GetModelStatus = method("status", status)

    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        Predictions(), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
