"""Metrics of TFMA and Keras that give a number which says nothing for some labels.

Found by running each; a test runs them again, and fails where TFMA has changed.
"""

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
