"""Keras callbacks of a training; ``make_callbacks`` puts them in order."""
