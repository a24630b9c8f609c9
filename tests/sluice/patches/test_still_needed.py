"""Each change in a library says why it is there, and is still needed there.

A test that fails here with a new version says which function of ``sluice.patches`` to
delete or to adapt.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import pickle
import re
from pathlib import Path

import pytest

from sluice.patches.multiprocessing import RemoteTraceback, picklable

pytestmark = pytest.mark.unit
ROOM = Path(__file__).parents[3] / "sluice" / "patches"
SECTIONS = ("Why", "Upstream", "Checked with", "Without it")
# What an entry needs, as it stands in a file of the library.
NEEDED = {
    "apache_beam/runners/worker/statecache.py": {
        "get_deep_size(": "beam.skip_sizes_in_cache",
    },
    "apache_beam/io/tfrecordio.py": {
        "_default_crc32c_fn.fn = crcmod": "beam.check_records_fast",
    },
    "apache_beam/transforms/core.py": {
        "def get_function_args_defaults(": "beam.remember_signatures",
    },
    "apache_beam/runners/portability/fn_api_runner/worker_handlers.py": {
        "add_insecure_port('[::]:0')": "beam.sockets_in",
        "future.abort(exn)": "beam.fail_requests",
    },
    "tensorflow_data_validation/statistics/generators/basic_stats_generator.py": {
        "\n_NUM_QUANTILES_FACTOR_FOR_STD_HISTOGRAM = 100": "tfdv.limit_quantiles",
    },
    "tf_keras/src/callbacks.py": {
        "_supports_tf_logs": "StepCallback",
    },
    "keras/src/layers/layer.py": {"def _flatten_layers(": "keras.nested_layers"},
    "keras/src/ops/operation.py": {"self._inbound_nodes = []": "keras.inbound_nodes"},
    "tensorflow/python/eager/context.py": {
        "\n_context = None\n": "tensorflow.has_started",
        "self._initialized = False": "tensorflow.holds_accelerator",
    },
    "tensorflow/python/client/session.py": {
        "def _make_callable_from_options(": "tensorflow.make_callable",
    },
    "tensorflow_transform/annotators.py": {"def object_tracker_scope(": "tft.trace"},
    "tensorflow_transform/graph_context.py": {"class TFGraphContext": "tft.trace"},
    "tensorflow_transform/impl_helper.py": {
        "def get_traced_transform_fn(": "tft.trace",
    },
    "tensorflow_transform/schema_inference.py": {
        "def infer_feature_schema(": "tft.trace",
    },
    "tfx/orchestration/portable/launcher.py": {
        "cache_utils.get_cached_outputs(": "tfx.replace_cache",
        "execution_watcher.ExecutionWatcher(": "tfx.open_no_port",
        "portpicker.pick_unused_port(": "tfx.open_no_port",
        "def _run_executor(": "NodeLauncher",
        "def _register_or_reuse_execution(": "NodeLauncher",
    },
    "tfx/orchestration/portable/cache_utils.py": {
        "def _get_outputs_of_execution(": "tfx.outputs_of_execution",
    },
    "tfx/components/evaluator/executor.py": {
        "if len(eval_config.model_specs) > 2:": "tfma.evaluate_also",
        "(tfma.ExtractEvaluateAndWriteResults(": "tfma.evaluate_also",
    },
    "tensorflow_model_analysis/utils/model_util.py": {
        "signature(tf.constant(inputs, dtype=tf.string))": "tfma.get_callable",
    },
    "tensorflow_model_analysis/metrics/example_count.py": {
        "class _ExampleCountCombiner(": "tfma.add_batch",
    },
    "tensorflow_model_analysis/metrics/calibration_histogram.py": {
        "DEFAULT_NUM_BUCKETS = 10000": "tfma.LogOddsHistogram",
    },
}


@pytest.mark.parametrize("path", NEEDED)
def test_a_library_still_has_what_is_changed(path):
    source = _source(path)
    assert [entry for text, entry in NEEDED[path].items() if text not in source] == []


def test_autograph_does_not_exclude_what_we_exclude():
    rules = _source("tensorflow/python/autograph/core/config.py")
    version = importlib.metadata.version("tensorflow")
    assert "DoNotConvert('keras')" in rules
    assert "tensorflow_transform" not in rules
    assert ("DoNotConvert('tf_keras')" in rules) == (not version.startswith("2.16."))


def test_pickle_loses_where_an_error_was_raised():
    try:
        raise ValueError("no")
    except ValueError as error:
        raised = error
    assert pickle.loads(pickle.dumps(raised)).__traceback__ is None
    crossed = pickle.loads(pickle.dumps(picklable(raised)))
    assert isinstance(crossed, ValueError)
    assert isinstance(crossed.__cause__, RemoteTraceback)
    assert "test_pickle_loses" in str(crossed.__cause__)


def test_each_entry_says_why_it_is_there():
    entries = {}
    for path in ROOM.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                entries[f"{path.stem}.{node.name}"] = ast.get_docstring(node) or ""
    told = {
        name
        for name, text in entries.items()
        if all(re.search(rf"^{section}: .", text, re.M) for section in SECTIONS)
    }
    public = {name for name in entries if "._" not in name}
    assert public - told == {"tfma.LogOddsHistogram", "tfma.missing_names"}
    tested = {name for texts in NEEDED.values() for name in texts.values()} | {
        *("ml_metadata.order_executions_by_id", "multiprocessing.picklable"),
        *("tensorflow.exclude_keras_from_autograph", "tfma.keep_batches"),
    }
    assert public - tested == {"tfma.missing_names"}


def _source(path: str) -> str:
    """Returns a file of an installed package, which is not imported."""
    package, _, rest = path.partition("/")
    spec = importlib.util.find_spec(package)
    assert spec and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], rest).read_text()
