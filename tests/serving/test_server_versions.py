"""Changes of the served version: what is damaged, hangs or is pushed under load."""

import asyncio
import json
import logging
import shutil
import time
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from tests.kit.half_plus_two import client_of, run_async, save_half_plus_two

pytestmark = [pytest.mark.tf, pytest.mark.fault, pytest.mark.usefixtures("tf")]
URL = "/v1/models/half"


@pytest.fixture(scope="module")
def models(tf, tmp_path_factory):
    """SavedModels that add 0, 1, 2, ... to half of their input."""
    root = tmp_path_factory.mktemp("models")
    return [save_half_plus_two(root / str(n), float(n)) for n in range(6)]


class Served:
    """A server of a store, in this process."""

    def __init__(self, store: LocalModelStore, load_timeout_s: float = 60.0) -> None:
        from serving.server.batching import BatchSettings
        from serving.server.core import Core, Limits
        from serving.server.models import Model, StoreWatch

        self.model = Model("half", BatchSettings(), 2**20)
        self.core = Core([self.model], Limits(seconds=10))
        self.watch = StoreWatch(self.model, store, 0.02, load_timeout_s)

    async def answer(self, path: str = URL) -> float:
        """Returns what the model adds."""
        body = '{"signature_name": "rows", "instances": [0.0]}'
        async with client_of(self.core) as client:
            answer = await client.post(f"{path}:predict", content=body)
        return answer.json()["predictions"][0]

    async def states(self) -> dict[str, tuple[str, str]]:
        """Returns state and error of each version."""
        async with client_of(self.core) as client:
            found = (await client.get(URL)).json()["model_version_status"]
        return {x["version"]: (x["state"], x["status"]["error_message"]) for x in found}


@pytest.fixture
def store(tmp_path, models):
    store = LocalModelStore(tmp_path / "serving")
    store.publish(models[1], facts={})
    return store


def truncate(folder: Path):
    path = folder / "variables" / "variables.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:-1])


def damage_unnoticed(folder: Path):
    """Damages a model before it is published, so that its digest is right."""
    (folder / "saved_model.pb").write_bytes(b"no graph")


def add_warm_up(folder: Path, value: float):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    from sluice.tfrecords import tfrecord

    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = "rows"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([value]))
    (folder / "assets.extra").mkdir()
    path = folder / "assets.extra" / "tf_serving_warmup_requests"
    tfrecord.write(path, [log.SerializeToString()])


BEFORE = {
    "no graph": (damage_unnoticed, "cannot be loaded"),
    "no variables": (lambda x: shutil.rmtree(x / "variables"), "cannot be loaded"),
    "warm-up request fails": (lambda x: add_warm_up(x, -1.0), "warm-up request failed"),
}
AFTER = {
    "truncated": (truncate, "it is not what was pushed"),
    "a file more": (lambda x: (x / "more").write_text(""), "it is not what was pushed"),
}


@pytest.mark.parametrize("name", [*BEFORE, *AFTER])
def test_version_that_cannot_be_served(store, models, tmp_path, name, caplog):
    """The old version stays, the next good one is served; a new server loads 1."""
    served = Served(store)
    bad = shutil.copytree(models[2], tmp_path / "bad")
    if name in BEFORE:
        BEFORE[name][0](bad)

    async def scenario():
        await served.watch.refresh()
        assert await served.answer() == 1.0
        version = store.publish(bad, facts={})
        if name in AFTER:
            AFTER[name][0](Path(version.uri))
        await served.watch.refresh()
        await served.watch.refresh()
        assert await served.answer() == 1.0
        assert await served.answer(f"{URL}/versions/1") == 1.0
        states = await served.states()
        state, error = states["2"]
        assert (state, states["1"]) == ("END", ("AVAILABLE", ""))
        assert {**BEFORE, **AFTER}[name][1] in error
        restarted = Served(store)
        await restarted.watch.refresh()
        assert await restarted.answer() == 1.0
        store.publish(models[3], facts={})
        await served.watch.refresh()
        assert await served.answer() == 3.0
        assert (await served.states())["1"] == ("END", "")

    with caplog.at_level(logging.ERROR, "sluice"):
        run_async(scenario())
    messages = [x.getMessage() for x in caplog.records]
    assert "half: version 2 cannot be loaded, version 1 stays served" in messages[0]


def test_good_warm_up_is_computed(store, models, tmp_path):
    good = shutil.copytree(models[2], tmp_path / "good")
    add_warm_up(good, 1.0)
    store.publish(good, facts={})
    served = Served(store)

    async def scenario():
        await served.watch.refresh()
        assert await served.answer() == 2.0

    run_async(scenario())
    loaded = served.model.loaded
    assert loaded and "rows" in loaded.servable._signatures


@pytest.mark.parametrize("what", ["deleted", "damaged", "store deleted"])
def test_files_under_the_server(store, what):
    served = Served(store)

    async def scenario():
        await served.watch.refresh()
        for path in (store.root / "1").rglob("*"):
            if what == "damaged" and path.is_file():
                path.write_bytes(b"x")
        if what != "damaged":
            shutil.rmtree(store.root / "1" if what == "deleted" else store.root)
        await served.watch.refresh()
        assert await served.answer() == 1.0
        assert await served.states() == {"1": ("AVAILABLE", "")}

    run_async(scenario())


def test_version_that_hangs_while_loading(store, models, tmp_path, tf):
    """Its initialization never ends: it is given up, and a later one is served."""

    root = tmp_path / "endless"
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None], "x")
        queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32], shapes=[[]])
        [endless] = tf.raw_ops.QueueDequeueV2(
            handle=queue, component_types=[tf.float32]
        )
        builder = tf.compat.v1.saved_model.Builder(str(root))
        with tf.compat.v1.Session() as session:
            signature = tf.compat.v1.saved_model.predict_signature_def(
                {"x": x}, {"y": x + 1}
            )
            builder.add_meta_graph_and_variables(
                session,
                ["serve"],
                {"serving_default": signature},
                main_op=endless.op,
            )
        builder.save()
    store.publish(root, facts={})
    served = Served(store, load_timeout_s=1.0)

    async def scenario():
        await served.watch.refresh()
        assert await served.answer() == 1.0
        state, error = (await served.states())["2"]
        assert state == "END" and "not loaded within 1 s" in error
        store.publish(models[3], facts={})
        served.watch._load_timeout_s = 60
        await served.watch.refresh()
        assert await served.answer() == 3.0

    run_async(scenario())


@pytest.mark.parametrize(
    "count", [100, pytest.param(20_000, marks=pytest.mark.acceptance)]
)
def test_five_pushes_and_two_rollbacks_under_load(store, models, count):
    """No request fails, and each is answered by one of the versions."""
    served, other = Served(store), Served(store)

    async def scenario():
        for server in (served, other):  # Two servers on one store.
            await server.watch.refresh()
        watching = [asyncio.ensure_future(x.watch.run()) for x in (served, other)]
        done = False
        answers: list[tuple[int, float, str]] = []

        async def ask(value):
            body = {"signature_name": "rows", "instances": [float(value)]}
            async with client_of(served.core) as client:
                while not done or len(answers) < count:
                    answer = await client.post(
                        f"{URL}:predict", content=json.dumps(body)
                    )
                    answers.append((value, answer.status_code, answer.text))

        clients = [asyncio.ensure_future(ask(value)) for value in range(8)]
        # A rollback publishes the files of an earlier version again.
        again = [store.root / "2", store.root / "1"]
        for model in (*models[2:6], models[1], *again):
            await asyncio.to_thread(store.publish, model, facts={})
            deadline = time.monotonic() + 60
            newest = store.newest().version
            while {served.model.number, other.model.number} != {newest}:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
        done = True
        await asyncio.gather(*clients)
        for task in watching:
            task.cancel()
        assert len(answers) >= count and {status for _, status, _ in answers} == {200}
        added = [
            json.loads(text)["predictions"][0] - value / 2 for value, _, text in answers
        ]
        assert {*added} == {1.0, 2.0, 3.0, 4.0, 5.0}
        states = {x: state for x, (state, _) in (await served.states()).items()}
        assert states == {**dict.fromkeys("1234567", "END"), "8": "AVAILABLE"}
        assert await other.answer() == 1.0

    run_async(scenario())
