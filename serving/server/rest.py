"""REST as TensorFlow Serving's, and the addresses for probes and Prometheus."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from google.protobuf.json_format import MessageToJson

from serving.server import json_tensors
from serving.server.core import Core
from serving.server.status import Code, StatusError, invalid

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# As in TensorFlow Serving's ``http_rest_api_util.cc``.
_VERSION = r"(?:/versions/(\d+)|/labels/([^/:]+))?"
_ASK = re.compile(
    rf"/v1/models/([^/:]+){_VERSION}:(classify|regress|predict)", re.IGNORECASE
)
_GET = re.compile(rf"/v1/models(?:/([^/:]+))?{_VERSION}(?:/(metadata))?", re.IGNORECASE)
_MAX_VERSION = 2**63 - 1


class Rest:
    """ASGI application for ``/v1/``."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; errors are JSON, too."""
        try:
            status, body = 200, await self._answer(scope, receive)
        except Exception as error:
            failure = StatusError.of(error)
            status, body = failure.http_status, json.dumps({"error": failure.message}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        if status == 408 or status == 413:
            headers.append((b"connection", b"close"))  # Its body is not read.
        await send(
            {"type": "http.response.start", "status": status, "headers": headers}
        )
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        method, path = scope["method"], scope["raw_path"].decode("latin-1")
        pattern = {"GET": _GET, "POST": _ASK}.get(method)
        match = pattern.fullmatch(path) if pattern else None
        if not match:
            raise invalid(f"Malformed request: {method} {path}")
        name, version, label, what = match.groups()
        number = int(version[:20]) if version else None
        if number is not None and number > _MAX_VERSION:
            raise invalid(f"Failed to convert version: {version} to numeric.")
        if name is None:
            raise invalid("Missing model name in request.")
        name, label = unquote(name), label and unquote(label)
        if method == "GET":
            return self._get(name, number, label, what)
        body = await self._body(scope, receive)
        with self._core.version(name, number, label) as loaded:
            request = json_tensors.parse(body)
            if what.lower() == "predict":
                return await self._predict(name, loaded, request)
            return await self._ask_examples(name, loaded, what.lower(), request)

    def _get(
        self, name: str, number: int | None, label: str | None, what: str | None
    ) -> bytes:
        if not what:
            return _message_json(self._core.status(name, number))
        from tensorflow_serving.apis import get_model_metadata_pb2

        with self._core.version(name, number, label) as loaded:
            response = self._core.metadata(name, loaded)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        spec = _message_json(response.model_spec).decode()
        text = _message_json(signatures).decode()
        answer = f'{{"model_spec": {spec}, "metadata": {{"signature_def": {text}}}}}'
        return answer.encode()

    async def _predict(self, name: str, loaded: Any, request: dict[str, Any]) -> bytes:
        signature_name = request.get("signature_name", "")
        try:
            signature = loaded.servable.signature(signature_name)
        except StatusError as error:
            if error.code != Code.FAILED_PRECONDITION:
                raise
            raise invalid(
                f'Serving signature name: "{signature_name or "serving_default"}" not '
                "found in signature def"
            ) from None
        tensors, answer = json_tensors.tensors_of(request, signature)
        outputs = await self._core.predict(name, loaded, signature, tensors)
        return json_tensors.json_of(outputs, answer)

    async def _ask_examples(
        self, name: str, loaded: Any, method: Any, request: dict[str, Any]
    ) -> bytes:
        from tensorflow_serving.apis import classification_pb2 as classes
        from tensorflow_serving.apis import regression_pb2 as values

        proto, response, write = {
            "classify": (
                classes.ClassificationRequest(),
                classes.ClassificationResponse(),
                json_tensors.json_of_classes,
            ),
            "regress": (
                values.RegressionRequest(),
                values.RegressionResponse(),
                json_tensors.json_of_values,
            ),
        }[method]
        json_tensors.fill_examples(request, proto)
        await self._core.ask_examples(name, loaded, method, proto, response)
        return write(response.result)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        limits = self._core.limits
        too_large = StatusError(
            Code.RESOURCE_EXHAUSTED,
            f"the body has more than {limits.body_bytes:,} bytes",
            413,
        )
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if int(length) > limits.body_bytes:
            raise too_large

        async def read() -> bytes:
            parts, size = [], 0
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise StatusError(Code.CANCELLED, "the client has gone")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body_bytes:
                    raise too_large
                if not message.get("more_body"):
                    return b"".join(parts)

        try:
            return await asyncio.wait_for(read(), limits.seconds)
        except asyncio.TimeoutError:
            what = f"the body was not sent within {limits.seconds:g} s"
            raise StatusError(Code.DEADLINE_EXCEEDED, what, 408) from None


# Its argument has another name from protobuf 5 on.
_WITH_DEFAULTS = next(
    name
    for name in inspect.signature(MessageToJson).parameters
    if name in ("including_default_value_fields", "always_print_fields_with_no_presence")
)


def _message_json(message: Any) -> bytes:
    options: dict[str, Any] = {_WITH_DEFAULTS: True}
    return MessageToJson(message, preserving_proto_field_name=True, **options).encode()
