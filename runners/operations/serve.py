"""Operation: serves pushed models by TensorFlow Serving's REST and gRPC."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.config.config import Config
from runners.operations.find_run import published_in, workspace_of
from serving.model_store import store_at
from sluice.compat import hidden_native_logs
from sluice.errors import UsageError

if TYPE_CHECKING:
    from serving.server.core import Answered

_LOAD_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class ServeOptions:
    """How pipelines are served; see ``sluice serve --help``."""

    host: str
    port: int
    grpc_port: int
    batch_rows: int
    batch_delay_ms: float
    max_body_mb: int
    max_rows: int
    timeout_s: float
    poll_s: float
    record: float
    record_mb: int


def serve(
    configs: Sequence[Config],
    options: ServeOptions,
    on_ready: Callable[[int, int, dict[str, int]], None],
) -> None:
    """Serves the newest version of each pipeline, until SIGTERM or SIGINT.

    Args:
      configs: of the pipelines.
      options: of the command line.
      on_ready: called with the ports of REST and gRPC, and the version of each
        pipeline that is served, 0 where there is none yet.

    Raises:
      UsageError: a port cannot be used; requests of a pipeline may not be recorded.
    """
    private = [config.name for config in configs if config.private]
    if options.record and private:
        what = f"{', '.join(private)} is private: its requests cannot be recorded"
        raise UsageError(what, where="--record")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with hidden_native_logs():
        from serving.server.batching import BatchSettings
        from serving.server.core import Core, Limits
        from serving.server.models import Model, StoreWatch
        from serving.server.process import Address, run
        from serving.server.recording import Recorder

    limits = Limits(options.max_body_mb * 2**20, options.max_rows, options.timeout_s)
    batches = BatchSettings(options.batch_rows, options.batch_delay_ms / 1000)
    models = [Model(config.name, batches, limits.body_bytes) for config in configs]
    watches = [
        StoreWatch(
            model, store_at(published_in(config)), options.poll_s, _LOAD_TIMEOUT_S
        )
        for model, config in zip(models, configs, strict=True)
    ]
    recorders = {
        config.name: Recorder(
            workspace_of(config).requests,
            options.record,
            config.sensitive,
            options.record_mb << 20,
        )
        for config in configs
        if options.record
    }

    def record(answered: Answered) -> None:
        recorders[answered.version.name](answered)

    def close() -> None:
        for recorder in recorders.values():
            recorder.close()

    run(
        Core(models, limits, [record] if recorders else []),
        Address(options.host, options.port, options.grpc_port),
        lambda port, grpc_port: on_ready(
            port, grpc_port, {model.name: model.number for model in models}
        ),
        watches,
        close,
    )
