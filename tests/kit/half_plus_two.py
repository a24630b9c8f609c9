"""SavedModels to serve, and a client of the server's application."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.kit.wait import wait_for

T = TypeVar("T")


def save_half_plus_two(root: Path, offset: float = 2.0) -> Path:
    """Saves TensorFlow Serving's example ``half_plus_two``, x / 2 + offset.

    Among its signatures, ``rows`` refuses negative numbers, ``total`` returns one
    number for all rows, ``hang`` nothing, ``slow`` its input after a second or so,
    ``classify_x_to_y`` and ``regress_x_to_y``
    take examples with the feature ``x``; ``echo`` and those named after a type return
    their inputs.
    """
    import tensorflow as tf

    def spec(dtype, name, shape=None):
        return tf.TensorSpec(shape, dtype, name)

    model = tf.Module()
    model.offset = tf.Variable(offset)

    def wait_for_ever():
        queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32], shapes=[[]])
        return tf.raw_ops.QueueDequeueV2(handle=queue, component_types=[tf.float32])[0]

    def x_of(examples):
        parsed = tf.io.parse_example(
            examples, {"x": tf.io.FixedLenFeature([], "float")}
        )
        return (parsed["x"] / 2 + model.offset)[:, None]

    @tf.function(input_signature=[spec(tf.float32, "x")])
    def predict(x):
        return {"y": x / 2 + model.offset}

    @tf.function(input_signature=[spec(tf.float32, "x", [None])])
    def rows(x):
        # Refuses negative numbers, as a model refuses an image.
        with tf.control_dependencies([tf.debugging.assert_non_negative(x)]):
            return {"y": x / 2 + model.offset}

    @tf.function(input_signature=[spec(tf.float32, "x", [None])])
    def total(x):
        return {"y": tf.reduce_sum(x)}

    @tf.function(input_signature=[spec(tf.float32, "x", [None])])
    def hang(x):
        return {"y": x + wait_for_ever()}

    @tf.function(input_signature=[spec(tf.float32, "x", [None])])
    def slow(x):
        rounds = tf.while_loop(lambda i: i < 300_000, lambda i: [i + 1], [0])[0]
        return {"y": x + tf.cast(rounds, tf.float32) * 0}

    @tf.function(input_signature=[spec(tf.string, "inputs", [None])])
    def classify(inputs):
        return {"scores": x_of(inputs)}

    @tf.function(input_signature=[spec(tf.string, "inputs", [None])])
    def regress(inputs):
        return {"outputs": x_of(inputs)}

    echoed = {
        "int_tensor": tf.int32,
        "str_tensor": tf.string,
        "str_tensor_bytes": tf.string,
        "float_tensor": tf.float32,
        "dbl_tensor": tf.float64,
    }

    @tf.function
    def echo(**inputs):
        return {name: tf.identity(value) for name, value in inputs.items()}

    def one(dtype):
        @tf.function(input_signature=[spec(dtype, "value")])
        def echo_one(value):
            return {"value": tf.identity(value)}

        return echo_one

    signatures = {
        "serving_default": predict,
        "rows": rows,
        "total": total,
        "hang": hang,
        "slow": slow,
        "classify_x_to_y": classify,
        "regress_x_to_y": regress,
        "echo": echo.get_concrete_function(
            **{name: spec(dtype, name) for name, dtype in echoed.items()}
        ),
        **{dtype.name: one(dtype) for dtype in (tf.int32, tf.uint8, tf.int64, tf.bool)},
        **{dtype.name: one(dtype) for dtype in (tf.float32, tf.float64, tf.string)},
        "complex64": one(tf.complex64),
    }
    tf.saved_model.save(model, str(root), signatures=signatures)
    return root


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine; the main thread may have an event loop of Playwright."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@asynccontextmanager
async def client_of(core: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Yields a client of a core's application, in this process and without a port."""
    from serving.server.process import make_app

    transport = httpx.ASGITransport(make_app(core))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost"
    ) as client:
        yield client


@contextmanager
def listening(core: Any) -> Iterator[tuple[int, asyncio.AbstractEventLoop]]:
    """Serves a core in a thread; yields its port and its event loop."""
    import uvicorn

    from serving.server.process import make_app

    config = uvicorn.Config(make_app(core), port=0, lifespan="off", log_config=None)
    server, loop = uvicorn.Server(config), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=[server.serve()])
    thread.start()
    wait_for(lambda: server.started, "the server")
    yield server.servers[0].sockets[0].getsockname()[1], loop
    server.should_exit = True
    thread.join()


def make_core(models: dict[str, Path], limits: Any = None, **batching: Any) -> Any:
    """Returns a core that serves SavedModels, each as the version of its folder."""
    from serving.server.batching import BatchSettings
    from serving.server.core import Core, Limits
    from serving.server.models import Model

    served = []
    for name, directory in models.items():
        model = Model(name, BatchSettings(**batching), 2**20)
        model.serve(model.load(directory, int(directory.name)))
        served.append(model)
    return Core(served, limits or Limits())
