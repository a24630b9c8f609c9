"""REST as TensorFlow Serving's."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any
from urllib.parse import unquote

from google.protobuf.json_format import MessageToJson
from starlette.types import Receive, Scope, Send
from tensorflow_serving.apis import classification_pb2, model_pb2, regression_pb2

from serving.server import json_tensors
from serving.server.core import Core
from serving.server.status import Code, StatusError, invalid

# As in TensorFlow Serving's ``http_rest_api_util.cc``.
_VERSION = r"(?:/versions/(\d+)|/labels/([^/:]+))?"
_PATHS = {
    "POST": rf"/v1/models/([^/:]+){_VERSION}:(classify|regress|predict)",
    "GET": rf"/v1/models(?:/([^/:]+))?{_VERSION}(?:/(metadata))?",
}
# Its argument has another name from protobuf 5 on.
_WITH_DEFAULTS = {"including_default_value_fields"} & {
    *inspect.signature(MessageToJson).parameters
} or {"always_print_fields_with_no_presence"}


class Rest:
    """ASGI application for ``/v1/``."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; an error is ``{"error": ...}``."""
        status, headers = 200, [(b"content-type", b"application/json")]
        try:
            spec, ask = _route(scope["method"], scope["raw_path"].decode("latin-1"))
            answer = self._answer(spec, ask, scope, receive)
            body = await self._core.measure(answer, spec.name, ask, "rest")
        except StatusError as error:
            status = error.http_status
            body = json.dumps({"error": error.message}).encode()
            if status in (413, 504):  # The rest of its body is not read.
                headers.append((b"connection", b"close"))
        headers.append((b"content-length", str(len(body)).encode()))
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, spec: Any, ask: str, scope: Scope, receive: Receive
    ) -> bytes:
        if ask == "status":
            return _message_json(self._core.status(spec))
        if ask == "metadata":
            response, signatures = self._core.metadata(spec)
            about = _message_json(response.model_spec), _message_json(signatures)
            text = b'{"model_spec": %s, "metadata": {"signature_def": %s}}'
            return text % about
        request = json_tensors.parse(await self._body(scope, receive))
        spec.signature_name = request.get("signature_name", "")
        if ask == "predict":
            return await self._predict(spec, request)
        if ask == "classify":
            proto: Any = classification_pb2.ClassificationRequest(model_spec=spec)
            json_tensors.fill_examples(request, proto.input)
            return json_tensors.json_of_classes(await self._core.classify(proto))
        proto = regression_pb2.RegressionRequest(model_spec=spec)
        json_tensors.fill_examples(request, proto.input)
        return json_tensors.json_of_values(await self._core.regress(proto))

    async def _predict(self, spec: Any, request: dict[str, Any]) -> bytes:
        with self._core.version(spec) as version:
            signature = version.servable.signature(spec.signature_name)
            tensors, key = json_tensors.tensors_of(request, signature.inputs)
            outputs = await self._core.compute(version, "predict", signature, tensors)
        return json_tensors.json_of(outputs, key)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        parts, limit = [], self._core.limits.body_bytes
        size = int(dict(scope["headers"]).get(b"content-length", 0))
        while size <= limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise StatusError(Code.CANCELLED, "the client has gone")
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                return b"".join(parts)
            size = max(size, sum(map(len, parts)))
        what = f"the body has more than {limit:,} bytes"
        raise StatusError(Code.RESOURCE_EXHAUSTED, what, 413)


def _route(method: str, path: str) -> tuple[Any, str]:
    """Returns the ``ModelSpec`` in a path, and what is asked of the model."""
    match = re.fullmatch(_PATHS.get(method, "(?!)"), path)
    if not match:
        raise invalid(f"Malformed request: {method} {path}")
    name, number, label, ask = match.groups()
    if not name:
        raise invalid("Missing model name in request.")
    spec = model_pb2.ModelSpec(name=unquote(name))
    if label:
        spec.version_label = unquote(label)
    if number:
        try:
            spec.version.value = int(number)
        except ValueError:
            raise invalid(f"Failed to convert version: {number} to numeric.") from None
    return spec, ask or "status"


def _message_json(message: Any) -> bytes:
    options = dict.fromkeys(_WITH_DEFAULTS, True)
    text = MessageToJson(message, preserving_proto_field_name=True, **options)
    return text.encode()
