"""What both interfaces ask: requests on tensors, metadata and state of models.

Every answered request passes ``Core.compute``, which tells the observers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    regression_pb2,
)

from serving.server import metrics
from serving.server.batching import Outputs
from serving.server.models import LoadedVersion, Model
from serving.server.servable import EXAMPLES, Signature, Tensors, examples_of
from serving.server.status import Code, StatusError, invalid


@dataclass(frozen=True)
class Limits:
    """Limits of a request.

    Attributes:
      body_bytes: of its body; also of a tensor that is sent as one value.
      rows: of its tensors, along the first axis.
      seconds: from its head to its answer.
    """

    body_bytes: int = 64 * 1024 * 1024
    rows: int = 10_000
    seconds: float = 30.0


class Answered(NamedTuple):
    """A request that was answered.

    Attributes:
      version: that answered, with the model's name.
      method: ``predict``, ``classify`` or ``regress``.
      signature: that was called.
      inputs: tensors by name; of ``classify`` and ``regress`` serialized examples.
      outputs: of the signature, all of them.
    """

    version: LoadedVersion
    method: str
    signature: Signature
    inputs: Tensors
    outputs: Tensors


class Core:
    """Answers requests; its methods run in one event loop."""

    def __init__(
        self,
        models: Iterable[Model],
        limits: Limits,
        observers: Sequence[Callable[[Answered], None]] = (),
    ) -> None:
        """Serves the models.

        Args:
          models: with different names.
          limits: of each request.
          observers: called with each answered request; they must return at once.
        """
        self.models = {model.name: model for model in models}
        self.limits, self._observers = limits, observers

    async def measure(
        self, answer: Awaitable[Any], name: str, method: str, interface: str
    ) -> Any:
        """Returns an answer, or raises its StatusError, and counts it in the metrics.

        DEADLINE_EXCEEDED if the time is up, be it that of the body or of the model.
        """
        started, code = time.perf_counter(), Code.OK
        try:
            return await asyncio.wait_for(answer, self.limits.seconds)
        except Exception as error:
            failure = StatusError.of(error)
            if isinstance(error, asyncio.TimeoutError):
                what = f"no answer within {self.limits.seconds:g} s"
                failure = StatusError(Code.DEADLINE_EXCEEDED, what)
            code = failure.code
            raise failure from error
        finally:
            # Names that clients make up would be metrics without end.
            known = name if name in self.models else ""
            latency = metrics.LATENCY.labels(known, method, interface, code.name)
            latency.observe(time.perf_counter() - started)

    def version(self, spec: Any) -> LoadedVersion:
        """Returns the version of a ``ModelSpec``; a ``with`` block keeps it open.

        Raises:
          StatusError: NOT_FOUND, it is not served; INVALID_ARGUMENT, it has a label:
            there are none.
        """
        if spec.version_label:
            what = f"Unrecognized servable version label: {spec.version_label}"
            raise invalid(what)
        model = self.models.get(spec.name)
        loaded = model.loaded if model else None
        number = spec.version.value if spec.HasField("version") else None
        if loaded is None or number not in (None, loaded.servable.version):
            kind = "Latest" if number is None else f"Version {number} of"
            what = f"Servable not found for request: {kind}({spec.name})"
            raise StatusError(Code.NOT_FOUND, what)
        return loaded

    async def compute(
        self,
        version: LoadedVersion,
        method: str,
        signature: Signature,
        tensors: Tensors,
    ) -> Outputs:
        """Returns the outputs of a signature.

        Raises:
          StatusError: the inputs do not fit, or the model fails.
        """
        signature.check(tensors)
        rows = max((len(value) for value in tensors.values() if value.ndim), default=1)
        if rows > self.limits.rows:
            raise invalid(f"{rows:,} rows; {self.limits.rows:,} are allowed")
        outputs = await version.batcher.compute(signature, tensors)
        for observe in self._observers:
            observe(Answered(version, method, signature, tensors, outputs))
        return outputs

    async def classify(self, request: Any) -> Any:
        """Answers a ``ClassificationRequest``; raises StatusError."""
        response = classification_pb2.ClassificationResponse()
        outputs, count = await self._examples("classify", request, response)
        scores, classes = outputs.get("scores"), outputs.get("classes")
        for value in outputs.values():
            if value.ndim != 2 or len(value) != count:
                what = "Expected Tensor shape: [batch_size num_classes] but got"
                raise invalid(f"{what} {value.shape}")
        for row in range(count):
            answer = response.result.classifications.add()
            for column in range(min(value.shape[1] for value in outputs.values())):
                item = answer.classes.add()
                item.score = 0.0 if scores is None else scores[row, column]
                item.label = "" if classes is None else classes[row, column]
        return response

    async def regress(self, request: Any) -> Any:
        """Answers a ``RegressionRequest``; raises StatusError."""
        response = regression_pb2.RegressionResponse()
        outputs, count = await self._examples("regress", request, response)
        values = outputs["outputs"]
        if values.shape not in [(count,), (count, 1)]:
            what = "Expected output Tensor shape to be either [batch_size] or"
            raise invalid(f"{what} [batch_size, 1] but got {values.shape}")
        for value in np.ravel(values):
            response.result.regressions.add(value=value)
        return response

    async def _examples(
        self, method: str, request: Any, response: Any
    ) -> tuple[Outputs, int]:
        with self.version(request.model_spec) as version:
            signature = version.servable.signature(request.model_spec.signature_name)
            signature.check_method(method)
            examples = examples_of(request.input)
            tensors = {EXAMPLES: examples}
            outputs = await self.compute(version, method, signature, tensors)
        fill_spec(response.model_spec, version, signature.name)
        return outputs, len(examples)

    def metadata(self, spec: Any) -> Any:
        """Returns a ``GetModelMetadataResponse``, and its signatures as a message."""
        signatures = get_model_metadata_pb2.SignatureDefMap()
        version = self.version(spec)
        for key, item in version.servable.signature_defs.items():
            signatures.signature_def[key].CopyFrom(item)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        fill_spec(response.model_spec, version)
        response.metadata["signature_def"].Pack(signatures)
        return response, signatures

    def status(self, spec: Any) -> Any:
        """Returns a ``GetModelStatusResponse``, newest version first.

        Raises:
          StatusError: NOT_FOUND, no such version has been seen.
        """
        model = self.models.get(spec.name)
        states = model.states if model else {}
        wanted = {spec.version.value} if spec.HasField("version") else {*states}
        found = [states[number] for number in sorted(states, reverse=True)]
        found = [state for state in found if state.version in wanted]
        if not found:
            what = f"Could not find any versions of model {spec.name}"
            raise StatusError(Code.NOT_FOUND, what)
        return get_model_status_pb2.GetModelStatusResponse(model_version_status=found)


def fill_spec(spec: Any, version: LoadedVersion, signature_name: str = "") -> None:
    """Says in an answer who has given it."""
    spec.name, spec.signature_name = version.name, signature_name
    spec.version.value = version.servable.version
