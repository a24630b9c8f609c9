"""What a TPU or a GPU refuses in a traced step, or may refuse.

For a TPU the step is compiled by XLA on the CPU, and its verdict holds. It names the
first problem only, so ops without a kernel are looked up in TensorFlow's registry. On a
GPU, without XLA, such an op runs on the host, which is only slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tensorflow as tf

from pipeline.training.rehearsal.kernels import Kernels
from pipeline.training.rehearsal.result import Finding
from pipeline.training.rehearsal.steps import Step
from pipeline.training.rehearsal.traced_ops import TracedOp

_HOST_CALLS = {
    "EagerPyFunc": "tf.py_function",
    "PyFunc": "tf.numpy_function",
    "PyFuncStateless": "tf.numpy_function",
    "PrintV2": "tf.print",
    "StringFormat": "tf.print",
}
_HOST_CALL = "the host would be called within the step"
_WIDE = (tf.float64, tf.complex128)
# Those with a kernel of XLA whose outputs have a size that depends on values.
_DYNAMIC = ("DynamicPartition", "NonMaxSuppressionV3", "Unique", "UniqueV2", "Where")
# XLA's compiler knows these itself.
_NO_KERNEL_NEEDED = ("Placeholder", "NoOp")
_COMPILER_PREFIX = "Failed getting HLO text: '"
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


def check_for_tpu(step: Step, ops: list[TracedOp]) -> Iterator[Finding]:
    """Compiles a step with XLA; yields what is refused, and what a TPU may refuse."""
    try:
        step.compile()
    except (ValueError, tf.errors.OpError) as error:
        refused = list(_without_kernel(step, ops))
        yield from refused or [_explain(str(error), step, ops)]
    for traced in ops:
        if any(tensor.dtype in _WIDE for tensor in traced.op.outputs):
            yield from _warn("a TPU may refuse 64-bit floats", traced, step)
        if traced.op.type in _DYNAMIC:
            what = "a TPU may refuse outputs whose size depends on values"
            yield from _warn(what, traced, step)


def _warn(what: str, traced: TracedOp, step: Step) -> Iterator[Finding]:
    finding = _finding(what, traced, step)
    # Keras' own ops, such as Unique for the gradient of a lookup, run on TPUs.
    if finding.layer is not None or finding.location is not None:
        yield finding


def check_for_gpu(step: Step, ops: list[TracedOp]) -> Iterator[Finding]:
    """Yields the ops of a step that run on the host beside a GPU.

    Only calls of the host, where TensorFlow is built without GPUs: it has no kernels.
    """
    kernels = Kernels("GPU", "DEFAULT")
    has_kernels = tf.test.is_built_with_gpu_support()
    for traced in ops:
        if traced.op.type in _HOST_CALLS:
            yield _finding(_HOST_CALL, traced, step, _HOST_CALLS[traced.op.type])
        elif has_kernels and (missing := _missing(kernels, traced)):
            what = "its inputs would be copied to the host: no GPU kernel for"
            yield _finding(what, traced, step, missing)


def _without_kernel(step: Step, ops: list[TracedOp]) -> Iterator[Finding]:
    kernels = Kernels("XLA_CPU_JIT")
    for traced in ops:
        if traced.op.type in _HOST_CALLS:
            called = _HOST_CALLS[traced.op.type]
            yield _finding(_HOST_CALL, traced, step, called, refused=True)
        elif missing := _missing(kernels, traced):
            what = "XLA has no kernel for"
            yield _finding(what, traced, step, missing, refused=True)


def _missing(kernels: Kernels, traced: TracedOp) -> str | None:
    if traced.op.type in _NO_KERNEL_NEEDED:
        return None
    return kernels.missing(traced.op)


def _explain(message: str, step: Step, ops: list[TracedOp]) -> Finding:
    """Returns the finding for an error of the compiler."""
    reason = message.partition("\n")[0].removeprefix(_COMPILER_PREFIX).rstrip(".")
    what = f"XLA cannot compile this: {reason}"
    by_name = {traced.op.name: traced for traced in ops}
    # The last one is the op itself; functions that call it come before.
    for name in reversed(_NODE.findall(message)):
        if name in by_name:
            return _finding(what, by_name[name], step, refused=True)
    return Finding(True, what, steps=(step.name,))


def _finding(
    what: str,
    traced: TracedOp,
    step: Step,
    op: str | None = None,
    *,
    refused: bool = False,
) -> Finding:
    ops = (op or traced.op.type,)
    return Finding(refused, what, ops, traced.layer, traced.location, (step.name,))
