"""A user's nodes and model; copied into a project as ``user_code.py``.

Files beside it control it. ``act``: what the node ``Slow`` does once, with half of its
output written. ``hold Slow`` and ``hold training``: the node, or training after two
epochs, waits until the file is deleted; meanwhile ``held`` exists.
"""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

import os
import signal
import time
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Examples

STEPS_OF_TWO_EPOCHS = 10
_HERE = Path(__file__).parent


def _hold(what):
    while (_HERE / f"hold {what}").exists():
        (_HERE / "held").touch()
        time.sleep(0.02)


@component
def Slow(examples: InputArtifact[Examples], out: OutputArtifact[Examples]):
    act = _HERE / "act"
    what = act.read_text() if act.exists() else ""
    act.unlink(missing_ok=True)
    Path(out.uri, f"of {os.getpid()}").touch()
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "ignore signals":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _hold("Slow")


@component
def After(data: InputArtifact[Examples], out: OutputArtifact[Examples]):
    Path(out.uri, "files").write_text("\n".join(os.listdir(data.uri)))


def build_model(inputs, params):
    import tensorflow as tf

    class Held(tf.keras.Model):
        def reset_metrics(self):
            super().reset_metrics()
            if self.optimizer.iterations >= STEPS_OF_TWO_EPOCHS:
                _hold("training")

    layers = inputs.keras_inputs()
    return Held(layers, inputs.output_layer()(layers["x_xf"]))
