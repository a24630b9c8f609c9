"""Benchmark: the first ``fit`` of a process, with and without our AutoGraph rule.

``python benchmarks/first_fit.py [PAIRS]`` alternates between both, each in its own
process, and prints each pair and the ratio of the medians. The rule is
``sluice.compat.exclude_keras_from_autograph``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

_FIT = """
import sys, time
from sluice.compat import prepare_environment, exclude_keras_from_autograph
prepare_environment()
import tensorflow as tf
if sys.argv[1] == "taught":
    exclude_keras_from_autograph()
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Conv2D(32, 3, activation="relu", input_shape=(8, 8, 1)),
    layers.Flatten(),
    layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy")
start = time.perf_counter()
model.fit(tf.random.normal((64, 8, 8, 1)), tf.zeros((64,)), verbose=0)
print(time.perf_counter() - start)
"""


def first_fit_s(variant: str) -> float:
    """Returns the seconds of the first ``fit`` in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", _FIT, variant],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return float(done.stdout)


def main(pairs: int = 3) -> None:
    """Runs the pairs and prints the figures."""
    taught, stock = [], []
    for _ in range(pairs):
        taught.append(first_fit_s("taught"))
        stock.append(first_fit_s("stock"))
        print(f"taught {taught[-1]:6.2f} s   stock {stock[-1]:6.2f} s")
    ratio = statistics.median(stock) / statistics.median(taught)
    print(f"stock / taught, medians: {ratio:.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
