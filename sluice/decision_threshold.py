"""The probability from which on a class is predicted, of two classes or several labels.

Signatures, tables and comparisons of exports must decide alike.
"""

THRESHOLD = 0.5
