"""Global batch size and batch size per replica."""

from __future__ import annotations

from sluice.errors import NodeError

DEFAULT_BATCH_SIZE = 128
# A TPU pads the batch of each core to a multiple of 8, and its matrix unit is 128 wide
# (cloud.google.com/tpu/docs/performance-guide).
TPU_MULTIPLE = 8
TPU_BEST_MULTIPLE = 128


def global_batch_size(
    batch_size: int | None,
    batch_per_replica: int | None,
    replicas: int,
    *,
    multiple: int = 1,
) -> int:
    """Returns the number of examples per step over all replicas.

    At most one of ``batch_size`` (of all together) and ``batch_per_replica`` is given.
    The batch of a replica must be a multiple of ``multiple``.

    Raises:
      NodeError: the batch cannot be divided so; it names the nearest sizes.
    """
    key, size, divisor = "batch_size", batch_size or DEFAULT_BATCH_SIZE, replicas
    if batch_per_replica is not None:
        key, size, divisor = "batch_per_replica", batch_per_replica, 1
    divisor *= multiple
    if size % divisor:
        parts = [f"{replicas} replicas"] if key == "batch_size" else []
        parts += [f"{multiple} examples (TPU)"] if multiple > 1 else []
        raise NodeError(
            f"train.{key} {size} is not a multiple of {' x '.join(parts)}",
            where=f"train.{key}",
            hint=nearest_sizes(key, size, divisor),
        )
    return size if key == "batch_size" else size * replicas


def nearest_sizes(key: str, size: int, divisor: int) -> str:
    """Returns settings of ``train.<key>`` with the nearest multiples of a divisor."""
    nearest = (size // divisor * divisor, -(-size // divisor) * divisor)
    return " or ".join(f"train.{key}={n}" for n in nearest if n)


def batch_note(batch_per_replica: int) -> str | None:
    """Returns a note for a batch that a TPU takes but pads, or None."""
    if batch_per_replica % TPU_BEST_MULTIPLE == 0:
        return None
    return (
        f"{batch_per_replica} examples per replica; a multiple of {TPU_BEST_MULTIPLE} "
        "would use the TPU better"
    )
