"""A model behind TensorFlow Serving's REST or gRPC interface.

``connect`` returns a client of a server at ``http://``, ``https://`` or ``grpc://``:
ours or a TensorFlow Serving. One version answers all requests of a client, the newest
when it was made.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from serving import signatures
from sluice.errors import RemoteError, ServingError, UsageError

if TYPE_CHECKING:
    import numpy as np

_TIMEOUT_S = 60.0


class RemoteModel(ABC):
    """A version that a server has loaded.

    Attributes:
      version: its number.
    """

    def __init__(self, url: str, name: str, version: int | None) -> None:
        self._url, self._name = url, name
        self.version = version if version is not None else self._newest()

    @abstractmethod
    def _available(self) -> list[int]:
        """Returns the versions that are available."""

    @abstractmethod
    def _read_signatures(self) -> Any:
        """Returns the ``SignatureDefMap`` of the version."""

    def _newest(self) -> int:
        if available := self._available():
            return max(available)
        raise self._error(False, "no version is available")

    @cached_property
    def _signatures(self) -> Mapping[str, Any]:
        return dict(self._read_signatures().signature_def)

    @abstractmethod
    def call(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature by name, strings as bytes.

        Args:
          signature: its name.
          inputs: a tensor by name.

        Raises:
          tf.errors.InvalidArgumentError: the model refuses the inputs.
          RemoteError: the server does not answer.
          ServingError: it answers with another error.
        """

    def input_specs(self, signature: str) -> dict[str, Any]:
        """Returns the ``tf.TensorSpec`` of each input of a signature.

        Raises:
          RemoteError, ServingError: as ``call``.
          KeyError: the version has no such signature.
        """
        return signatures.input_specs(self._signatures[signature])

    def _error(self, is_input: bool, reason: str) -> Exception:
        import tensorflow as tf

        if is_input:
            return tf.errors.InvalidArgumentError(None, None, reason)
        return ServingError(
            f"the server did not predict: {reason}",
            where=f"{self._url}, model {self._name}",
        )

    def _unreachable(self, error: object) -> RemoteError:
        return RemoteError(f"the server does not answer: {error}", where=self._url)


def connect(url: str, name: str, version: int | None = None) -> RemoteModel:
    """Returns a client of a model.

    Args:
      url: ``http://HOST:PORT``, ``https://...`` or ``grpc://HOST:PORT``.
      name: of the model there.
      version: its number; None for the newest that is available.

    Raises:
      UsageError: it is another kind of address.
      RemoteError: no server answers there.
      ServingError: the server has no such model.
    """
    scheme, rest = urlsplit(url).scheme, url.rstrip("/")
    if scheme in ("http", "https"):
        return _RestModel(rest, name, version)
    if scheme == "grpc":
        return _GrpcModel(rest, name, version)
    expected = "http://HOST:PORT, https://HOST:PORT or grpc://HOST:PORT"
    raise UsageError("this is no address of a server", where=url, expected=expected)


class _RestModel(RemoteModel):
    def __init__(self, url: str, name: str, version: int | None) -> None:
        import requests

        self._session = requests.Session()
        self._place = f"{url}/v1/models/{quote(name, safe='')}"
        super().__init__(url, name, version)
        self._place += f"/versions/{self.version}"

    def _available(self) -> list[int]:
        states = self._ask("GET", "")["model_version_status"]
        return [int(x["version"]) for x in states if x["state"] == "AVAILABLE"]

    def _read_signatures(self) -> Any:
        from google.protobuf import json_format
        from tensorflow_serving.apis import get_model_metadata_pb2

        found = self._ask("GET", "/metadata")["metadata"]["signature_def"]
        message = get_model_metadata_pb2.SignatureDefMap()
        # A TensorFlow Serving of another version may have more fields.
        json_format.ParseDict(found, message, ignore_unknown_fields=True)
        return message

    def call(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        import numpy as np

        columns = {
            name: signatures.as_json(np.asarray(values).tolist())
            for name, values in inputs.items()
        }
        request = {"signature_name": signature, "inputs": columns}
        answer = self._ask("POST", ":predict", json.dumps(request))["outputs"]
        outputs = self._signatures[signature].outputs
        if not isinstance(answer, dict):
            # The values of a single output come without its name.
            answer = dict.fromkeys(outputs, answer)
        return {name: _as_array(name, x, outputs[name]) for name, x in answer.items()}

    def _ask(self, method: str, rest: str, body: str | None = None) -> dict[str, Any]:
        import requests

        try:
            url = self._place + rest
            answer = self._session.request(method, url, data=body, timeout=_TIMEOUT_S)
            found = answer.json()
        except requests.exceptions.JSONDecodeError as error:
            raise self._unreachable(f"{answer.status_code}, no JSON") from error
        except requests.RequestException as error:
            raise self._unreachable(error) from error
        if answer.status_code == 200:
            return found
        is_input = answer.status_code == 400 and method == "POST"
        raise self._error(is_input, str(found.get("error", found)))


class _GrpcModel(RemoteModel):
    def __init__(self, url: str, name: str, version: int | None) -> None:
        import grpc
        from tensorflow_serving.apis import model_service_pb2_grpc as models
        from tensorflow_serving.apis import prediction_service_pb2_grpc as predictions

        sizes = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
        channel = grpc.insecure_channel(
            urlsplit(url).netloc, [(name, -1) for name in sizes]
        )
        self._models = models.ModelServiceStub(channel)
        self._predictions = predictions.PredictionServiceStub(channel)
        super().__init__(url, name, version)

    def _available(self) -> list[int]:
        from tensorflow_serving.apis import get_model_status_pb2 as status

        request = status.GetModelStatusRequest()
        request.model_spec.name = self._name
        states = self._ask(self._models.GetModelStatus, request).model_version_status
        available = status.ModelVersionStatus.AVAILABLE
        return [item.version for item in states if item.state == available]

    def _read_signatures(self) -> Any:
        from tensorflow_serving.apis import get_model_metadata_pb2 as metadata

        request = metadata.GetModelMetadataRequest(metadata_field=["signature_def"])
        self._name_version(request)
        answer = self._ask(self._predictions.GetModelMetadata, request)
        found = metadata.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(found)
        return found

    def call(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        self._name_version(request)
        request.model_spec.signature_name = signature
        for name, values in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
        answer = self._ask(self._predictions.Predict, request)
        return {name: tf.make_ndarray(x) for name, x in answer.outputs.items()}

    def _name_version(self, request: Any) -> None:
        request.model_spec.name = self._name
        request.model_spec.version.value = self.version

    def _ask(self, method: Any, request: Any) -> Any:
        import grpc

        try:
            return method(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            code = error.code()
            if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise self._unreachable(error.details()) from error
            is_input = code == grpc.StatusCode.INVALID_ARGUMENT
            raise self._error(is_input, error.details()) from error


def _as_array(name: str, values: Any, info: Any) -> np.ndarray:
    """Returns the values of an output in its own type, strings as bytes.

    Args:
      name: bytes come in base64 where it says so.
      values: nested lists.
      info: its ``TensorInfo``.
    """
    import numpy as np
    import tensorflow as tf

    dtype = tf.as_dtype(info.dtype)
    if dtype != tf.string:
        return np.asarray(values, dtype.as_numpy_dtype)
    array = np.asarray(values, object)
    is_bytes = name.endswith("_bytes")
    flat = [
        base64.b64decode(item["b64"]) if is_bytes else item.encode()
        for item in array.ravel()
    ]
    return np.array(flat, object).reshape(array.shape)
