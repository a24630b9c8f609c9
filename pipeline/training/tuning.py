"""``tuner_fn`` of TFX's Tuner: a search by KerasTuner, whose trials are trainings.

KerasTuner chooses the values and keeps the trials; the steps of ``run_fn`` train them.
Its tuners for Keras models are not used: 1.4 finds the Keras 3 that is installed beside
legacy Keras, and refuses models of the latter.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
from typing import Any

import tensorflow as tf
from keras_tuner import HyperParameters, Objective, errors, oracles
from keras_tuner.engine import base_tuner
from keras_tuner.engine.trial import Trial, TrialStatus
from pydantic import ValidationError
from tensorboard.plugins.hparams import api as hparams

from pipeline.config.train import Train
from pipeline.config.tune import Range, Tune, with_values
from pipeline.training.run_fn import own_checkpoints, report_strategy, train_model
from pipeline.training.strategy.distribution import Distribution
from pipeline.training.strategy.workers import distribute
from sluice import interrupt, progress
from sluice.errors import NodeError, did_you_mean
from sluice.node_environment import node_environment
from sluice.patches.tensorflow import exclude_keras_from_autograph
from sluice.storage import atomic
from sluice.storage.local_copy import local_copy, local_output

TRIALS_FILE = "trials.json"
DEFAULT_TRIALS = 20
# Hyperband's own number is less; without a limit TFX cannot write the results.
_NO_LIMIT = 10_000
# What hyperband chooses beside the values: the trial that one goes on with, and where
# it ends.
_BEFORE, _EPOCHS = "tuner/trial_id", "tuner/epochs"


def tuner_fn(fn_args: Any) -> Any:
    """Returns TFX's ``TunerFnResult`` with the search.

    It resumes from the trials in the ``checkpoint_dir`` that the runner names. At its
    end ``fn_args.working_dir`` gets ``trials.json`` and TensorBoard's logs.
    """
    from tfx.components.tuner.component import TunerFnResult

    exclude_keras_from_autograph()
    if checkpoints := own_checkpoints(fn_args):
        interrupt.listen()
    kept = checkpoints or node_environment().checkpoint_dir
    found: list[Distribution] = []
    distribute(Train.model_validate(fn_args.custom_config["train"]), found.append)
    directory = kept or os.path.join(fn_args.working_dir, "search")
    return TunerFnResult(Search(fn_args, found[0], directory), {"verbose": 0})


class NoObjective(NodeError, errors.FatalError):
    """There is no such metric, in any trial: KerasTuner ends the search."""


class Search(base_tuner.BaseTuner):
    """A search whose trials are trainings.

    Args:
      fn_args: TFX's, with the config, the examples and the transform graph.
      distribution: of every trial, but for the batch size.
      directory: path or address for what a resumed search needs.
    """

    def __init__(self, fn_args: Any, distribution: Distribution, directory: str):
        config = fn_args.custom_config
        self._fn_args, self._distribution = fn_args, distribution
        self._train = Train.model_validate(config["train"])
        self._tune = Tune.model_validate(config["tune"])
        report_strategy(distribution)
        oracle = make_oracle(self._tune, self._train)
        super().__init__(oracle, directory=directory, project_name="search")

    def run_trial(self, trial: Trial, **_fit: Any) -> dict[str, float]:
        """Trains a model with the values of a trial; returns its best objective.

        One that goes on with another of hyperband's begins with its checkpoint.
        """
        tune, number = self._tune, str(_number(trial))
        values = values_of(tune, trial.hyperparameters)
        fixed = {"train.epochs": tune.epochs} if tune.epochs else {}
        model_params = self._fn_args.custom_config["model_params"]
        try:
            train, model_params = with_values(
                self._train, model_params, {**fixed, **values}
            )
        except ValidationError as error:
            raise NodeError(error.errors()[0]["msg"]) from error
        first = trial
        while before := first.hyperparameters.values.get(_BEFORE):
            first = self.oracle.trials[before]
        checkpoint_dir = os.path.join(self.get_trial_dir(first.trial_id), "training")
        logs = os.path.join(self.project_dir, "tensorboard", number)
        tf.keras.backend.clear_session()
        began_s = time.monotonic()
        _, history, _ = train_model(
            self._fn_args,
            train,
            model_params,
            self._distribution.with_batch_of(train),
            logs,
            checkpoint_dir=checkpoint_dir,
            epochs=trial.hyperparameters.values.get(_EPOCHS),
            trial=self._name(trial),
        )
        metric = tune.objective.metric
        if metric not in history:
            raise NoObjective(
                f"there is no metric {metric!r} among {', '.join(sorted(history))}",
                where="tune.objective",
                hint=did_you_mean(metric, history),
            )
        values_by_epoch = [x for x in history[metric] if math.isfinite(x)]
        if not values_by_epoch:
            raise NodeError(f"{metric} is not finite after any epoch")
        best = (min if tune.direction == "min" else max)(values_by_epoch)
        with tf.summary.create_file_writer(logs).as_default():
            hparams.hparams(
                {
                    key: x if isinstance(x, str | int | float) else json.dumps(x)
                    for key, x in values.items()
                },
                trial_id=number,
            )
            tf.summary.scalar(metric, best, step=len(history[metric]))
        if tune.algorithm != "hyperband":
            tf.io.gfile.rmtree(checkpoint_dir)
        duration_s = time.monotonic() - began_s
        return {metric: best, "epochs": len(history[metric]), "duration_s": duration_s}

    def on_trial_end(self, trial: Trial) -> None:
        if trial.message:  # A traceback: what was raised is kept.
            raised = re.findall(r"^[\w.]+: (.*)$", trial.message, re.MULTILINE)
            trial.message = raised[-1] if raised else trial.message
        super().on_trial_end(trial)
        row, metric = self._row(trial), self._tune.objective.metric
        parts = [f"{key.partition('.')[2]} {x}" for key, x in row["values"].items()]
        reached = row["error"] or f"{metric} {row['objective']:.4f}"
        line = "  ".join([self._name(trial), reached, *parts])
        progress.report(event="trial", line=line)

    def on_search_end(self) -> None:
        """Writes the trials and TensorBoard's logs into the artifact.

        Raises:
          NodeError: no trial has been completed.
        """
        trials = self.oracle.get_best_trials(len(self.oracle.trials))
        if trials[0].status != TrialStatus.COMPLETED:
            what = f"every trial has failed, the last: {trials[-1].message}"
            raise NodeError(what, where="tune.space")
        results, tune = self._fn_args.working_dir, self._tune
        document = {
            "algorithm": tune.algorithm,
            "objective": tune.objective.metric,
            "direction": tune.direction,
            "space": tune.model_dump()["space"],
            "trials": [self._row(trial) for trial in trials],
        }
        with (
            local_copy(os.path.join(self.project_dir, "tensorboard")) as source,
            local_output(results) as target,
        ):
            shutil.copytree(source, target / "tensorboard")
            atomic.write_json(target / TRIALS_FILE, document)

    def get_best_hyperparameters(self, num_trials: int = 1) -> list[HyperParameters]:
        """Returns the best values as they are in a config, not as KerasTuner has them.

        TFX writes them for the Trainer.
        """
        best = [one.copy() for one in super().get_best_hyperparameters(num_trials)]
        for hyperparameters in best:
            hyperparameters.values = values_of(self._tune, hyperparameters)
        return best

    def _name(self, trial: Trial) -> str:
        most = self.oracle.max_trials
        return f"trial {_number(trial)}" + (f"/{most}" if most < _NO_LIMIT else "")

    def _row(self, trial: Trial) -> dict[str, Any]:
        done, metrics = trial.status == TrialStatus.COMPLETED, trial.metrics
        return {
            "number": _number(trial),
            "status": trial.status.lower(),
            "objective": trial.score if done else None,
            "epochs": int(metrics.get_best_value("epochs")) if done else None,
            "duration_s": metrics.get_best_value("duration_s") if done else None,
            "error": trial.message,
            "values": values_of(self._tune, trial.hyperparameters),
        }


def make_oracle(tune: Tune, train: Train) -> Any:
    """Returns KerasTuner's algorithm for a search."""
    space = HyperParameters()
    for key, domain in tune.space.items():
        if isinstance(domain, Range):
            add = space.Int if domain.is_whole else space.Float
            sampling = "log" if domain.log else "linear"
            add(key, domain.min, domain.max, sampling=sampling)
        else:  # KerasTuner takes scalars of one type only.
            space.Choice(key, [json.dumps(value) for value in domain])
    is_hyperband = tune.algorithm == "hyperband"
    kinds = {
        "random": oracles.RandomSearchOracle,
        "bayesian": oracles.BayesianOptimizationOracle,
        "hyperband": oracles.HyperbandOracle,
    }
    oracle = kinds[tune.algorithm](
        objective=Objective(tune.objective.metric, tune.direction),
        hyperparameters=space,
        seed=train.seed + 1,  # 0 would be any.
        **({"max_epochs": tune.epochs or train.epochs} if is_hyperband else {}),
    )
    oracle.max_trials = tune.trials or (_NO_LIMIT if is_hyperband else DEFAULT_TRIALS)
    return oracle


def values_of(tune: Tune, hyperparameters: HyperParameters) -> dict[str, Any]:
    """Returns values by key, as they are in a config."""
    values = {}
    for key, domain in tune.space.items():
        value = hyperparameters.values[key]
        if isinstance(domain, Range):
            values[key] = int(value) if domain.is_whole else float(f"{value:.6g}")
        else:
            values[key] = json.loads(value)
    return values


def _number(trial: Trial) -> int:
    return int(trial.trial_id) + 1
