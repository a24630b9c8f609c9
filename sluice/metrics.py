"""Metrics of Keras and TFMA: direction, range, thresholds, and labels they suit.

Neither library tells. A metric that is not listed has to be given its direction.
"""

from __future__ import annotations

import re
from typing import Literal

_SHARES_TO_RAISE = """
accuracy auc auc_precision_recall balanced_accuracy binary_accuracy categorical_accuracy
f1_score f_beta_score negative_predictive_value npv positive_predictive_value ppv
precision precision_at_recall recall recall_at_false_positive_rate recall_at_precision
sensitivity_at_specificity sparse_categorical_accuracy squared_pearson_correlation
sparse_top_k_categorical_accuracy specificity specificity_at_sensitivity tnr
top_k_categorical_accuracy tpr true_negative_rate true_positive_rate
""".split()
_OTHERS_TO_RAISE = """
cosine_similarity diagnostic_odds_ratio fowlkes_mallows_index informedness markedness
matthews_correlation_coefficient ndcg r2_score true_negatives true_positives
""".split()
_SHARES_TO_LOWER = """
fall_out false_discovery_rate false_negative_rate false_omission_rate
false_positive_rate fnr fpr miss_rate
""".split()
_OTHERS_TO_LOWER = """
binary_crossentropy categorical_crossentropy categorical_hinge false_negatives
false_positives hinge kl_divergence log_cosh_error loss mean_absolute_error
mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error poisson
relative_error root_mean_squared_error sparse_categorical_crossentropy squared_hinge
""".split()

# Classes of Keras and TFMA that count at many thresholds, and return none of them.
OF_EVERY_THRESHOLD = """
AUC AUCPrecisionRecall PrecisionAtRecall RecallAtFalsePositiveRate RecallAtPrecision
SensitivityAtSpecificity SpecificityAtSensitivity
""".split()
# The log-odds up to which they tell predictions apart, on both sides: 1e-13.
LOG_ODDS = 30.0

# The probability from which on a class is predicted, of two classes or several labels:
# signatures, tables and comparisons of exports must decide alike.
THRESHOLD = 0.5

# Metrics that say of a model as a whole whether it is better than a constant
# prediction. Of a recall, say, the best model is one that always says yes.
MEASURES_A_MODEL = frozenset(
    """
    accuracy auc auc_precision_recall balanced_accuracy binary_accuracy
    binary_crossentropy categorical_accuracy categorical_crossentropy kl_divergence
    log_cosh_error mean_absolute_error mean_absolute_percentage_error
    mean_squared_error mean_squared_logarithmic_error poisson r2_score relative_error
    root_mean_squared_error sparse_categorical_accuracy
    sparse_categorical_crossentropy
    """.split()
)
# The best constant prediction for these is the median, for other errors the mean.
ERRORS_OF_MEDIAN = frozenset(
    """
    log_cosh_error mean_absolute_error relative_error
    """.split()
)

# Metrics between 0 and 1.
SHARES = frozenset(_SHARES_TO_RAISE + _SHARES_TO_LOWER)

# Classes of TFMA and Keras that give a number which says nothing for some labels: found
# by running each; a test runs them again, and fails where TFMA has changed.
# For more than two classes TFMA pools the one-against-the-rest predictions of all
# classes, most of which are easy negatives: of ten classes, nine answers in ten.
TWO_CLASSES_ONLY = frozenset(
    """
    AUC AUCPrecisionRecall BalancedAccuracy BinaryAccuracy Calibration F1Score FNR FPR
    FalseNegatives FalsePositives MatthewsCorrelationCoefficient MeanLabel
    MeanPrediction NPV PPV Precision PrecisionAtRecall Prevalence Recall
    RecallAtFalsePositiveRate RecallAtPrecision SensitivityAtSpecificity Specificity
    SpecificityAtSensitivity TNR TPR ThresholdAtRecall TrueNegatives TruePositives
    """.split()
)
# Where an example has several labels these take the most probable class for the only
# one, or TFMA cannot compute them.
ONE_CLASS_ONLY = frozenset(
    """
    BinaryIoU CategoricalAccuracy CategoricalCrossEntropy CategoricalCrossentropy
    CategoricalHinge FBetaScore IoU KLDivergence MeanIoU
    MultiClassConfusionMatrixAtThresholds MultiClassConfusionMatrixPlot OneHotIoU
    OneHotMeanIoU R2Score SparseCategoricalAccuracy SparseCategoricalCrossentropy
    SparseTopKCategoricalAccuracy TopKCategoricalAccuracy
    """.split()
)
# TFMA's own classes that are right for numbers. Others refuse labels outside 0 and 1,
# or give a number that says nothing.
FOR_NUMBERS = frozenset(
    """
    Calibration ExampleCount MeanAbsoluteError MeanAbsolutePercentageError MeanLabel
    MeanPrediction MeanSquaredError MeanSquaredLogarithmicError
    SquaredPearsonCorrelation WeightedExampleCount
    """.split()
)


def result_name(class_name: str) -> str:
    """Returns what TFMA and Keras call the result of a class: its name in snake case.

    A class of the user's own is ``package.module:Class``.

    Source: ``to_snake_case`` of tf_keras/src/utils/generic_utils.py. TFMA's own
    ``BinaryCrossEntropy`` has the name of Keras's ``BinaryCrossentropy``.
    """
    plain = class_name.rpartition(":")[2].replace("CrossEntropy", "Crossentropy")
    words = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", plain)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()


def direction_of(name: str) -> Literal["max", "min"] | None:
    """Returns how a metric improves, by the name of its result; None if not known."""
    name = name.removeprefix("val_")
    if name in _SHARES_TO_RAISE or name in _OTHERS_TO_RAISE:
        return "max"
    return "min" if name in _SHARES_TO_LOWER or name in _OTHERS_TO_LOWER else None
