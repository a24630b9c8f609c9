"""What both interfaces ask: requests on tensors, metadata and state of models.

Every answered request passes ``Core._run``, which tells the observers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from serving.server.batching import Outputs
from serving.server.models import LoadedVersion, Model
from serving.server.protos import EXAMPLES, RESULT_OF, Method, check_method, examples_of
from serving.server.servable import Signature, Tensors
from serving.server.status import Code, StatusError, invalid


@dataclass(frozen=True)
class Limits:
    """Limits of a request.

    Attributes:
      body_bytes: of its body; also of a tensor that is sent as one value.
      rows: of its tensors, along the first axis.
      seconds: from its first byte to its answer.
    """

    body_bytes: int = 64 * 1024 * 1024
    rows: int = 10_000
    seconds: float = 30.0


@dataclass(frozen=True)
class Answered:
    """A request that was answered, as observers get it.

    Attributes:
      model: its name.
      version: that answered.
      method: how it was asked.
      signature_name: never empty.
      inputs: tensors by name; of ``classify`` and ``regress`` serialized examples.
      outputs: of the signature, all of them.
    """

    model: str
    version: int
    method: Method
    signature_name: str
    inputs: Tensors
    outputs: Tensors


Observer = Callable[[Answered], None]


class Core:
    """Answers requests; its methods run in one event loop."""

    def __init__(
        self,
        models: Iterable[Model],
        limits: Limits,
        observers: Sequence[Observer] = (),
    ) -> None:
        """Serves the models.

        Args:
          models: with different names.
          limits: of each request.
          observers: called with each answered request; they must return at once.
        """
        self.models = {model.name: model for model in models}
        self.limits = limits
        self._observers = observers

    @property
    def is_ready(self) -> bool:
        """Whether a version of every model is served."""
        return all(model.loaded for model in self.models.values())

    def version(
        self, name: str, number: int | None = None, label: str | None = None
    ) -> LoadedVersion:
        """Returns the version that answers; a ``with`` block keeps it open.

        Raises:
          StatusError: NOT_FOUND, it is not served; INVALID_ARGUMENT, a label is asked
            for: there are none.
        """
        if label:
            raise invalid(f"Unrecognized servable version label: {label}")
        model = self.models.get(name)
        loaded = model.loaded if model else None
        if loaded is None or number not in (None, loaded.servable.version):
            asked = (
                f"Latest({name})" if number is None else f"Specific({name}, {number})"
            )
            what = f"Servable not found for request: {asked}"
            raise StatusError(Code.NOT_FOUND, what)
        return loaded

    async def predict(
        self,
        name: str,
        loaded: LoadedVersion,
        signature: Signature,
        tensors: Tensors,
        output_filter: Sequence[str] = (),
    ) -> Outputs:
        """Returns the outputs of a signature, or those that are asked for.

        Raises:
          StatusError: the inputs do not fit, the model fails, or the time is up.
        """
        unknown = {*output_filter} - {*signature.outputs}
        if unknown or len({*output_filter}) < len(output_filter):
            raise invalid(
                f"output tensor alias not found in signature, or twice: "
                f"{[*output_filter]} "
                f"Outputs expected to be in the set {{{','.join(signature.outputs)}}}."
            )
        outputs = await self._run(name, loaded, "predict", signature, tensors)
        return {key: outputs[key] for key in output_filter or signature.outputs}

    async def ask_examples(
        self,
        name: str,
        loaded: LoadedVersion,
        method: Method,
        request: Any,
        response: Any,
    ) -> None:
        """Answers ``classify`` or ``regress``.

        Args:
          name: of the model.
          loaded: the version.
          method: one of the two.
          request: a ``ClassificationRequest`` or ``RegressionRequest``.
          response: to fill in.

        Raises:
          StatusError: the signature does not allow it, or as ``predict``.
        """
        try:
            signature = loaded.servable.signature(request.model_spec.signature_name)
        except StatusError as error:
            raise invalid(f"No signature was found: {error.message}") from error
        check_method(signature, method)
        examples = examples_of(request.input)
        tensors = {EXAMPLES: examples}
        outputs = await self._run(name, loaded, method, signature, tensors)
        RESULT_OF[method](outputs, len(examples), response.result)
        fill_model_spec(response.model_spec, name, loaded, signature.name)

    async def _run(
        self,
        name: str,
        loaded: LoadedVersion,
        method: Method,
        signature: Signature,
        tensors: Tensors,
    ) -> Outputs:
        signature.check(tensors)
        rows = max((len(value) for value in tensors.values() if value.ndim), default=1)
        if rows > self.limits.rows:
            raise invalid(f"{rows:,} rows; {self.limits.rows:,} are allowed")
        try:
            outputs = await asyncio.wait_for(
                loaded.batcher.submit(signature, tensors), self.limits.seconds
            )
        except asyncio.TimeoutError:
            what = f"the model did not answer within {self.limits.seconds:g} s"
            raise StatusError(Code.DEADLINE_EXCEEDED, what) from None
        for observe in self._observers:
            version = loaded.servable.version
            observe(Answered(name, version, method, signature.name, tensors, outputs))
        return outputs

    def metadata(self, name: str, loaded: LoadedVersion) -> Any:
        """Returns a ``GetModelMetadataResponse`` with the signatures."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        signatures = get_model_metadata_pb2.SignatureDefMap()
        for key, item in loaded.servable.signature_defs.items():
            signatures.signature_def[key].CopyFrom(item)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        fill_model_spec(response.model_spec, name, loaded)
        response.metadata["signature_def"].Pack(signatures)
        return response

    def status(self, name: str, number: int | None = None) -> Any:
        """Returns a ``GetModelStatusResponse``, newest version first.

        Raises:
          StatusError: NOT_FOUND, no such version has been seen.
        """
        from tensorflow_serving.apis import get_model_status_pb2

        model = self.models.get(name)
        states = model.states if model else {}
        response = get_model_status_pb2.GetModelStatusResponse()
        for version in sorted(states, reverse=True):
            if number in (None, version):
                item = response.model_version_status.add(version=version)
                item.state = item.State.Value(states[version].state)
                item.status.error_code = states[version].code.value[0]
                item.status.error_message = states[version].message
        if not response.model_version_status:
            asked = "any versions" if number is None else f"version {number}"
            what = f"Could not find {asked} of model {name}"
            raise StatusError(Code.NOT_FOUND, what)
        return response


def fill_model_spec(
    spec: Any, name: str, loaded: LoadedVersion, signature_name: str = ""
) -> None:
    """Says in an answer who has given it."""
    spec.name, spec.signature_name = name, signature_name
    spec.version.value = loaded.servable.version
