"""The form of numbers, the same in the terminal, on the pages and in messages."""

from __future__ import annotations


def number_text(value: float, digits: int = 4) -> str:
    """Returns a number with ``digits`` significant digits; whole ones are complete.

    Of a small one, a zero after as many decimals is left out: ``0.0100``.
    """
    if isinstance(value, int) or (value == round(value, 0) and abs(value) < 1e15):
        return f"{int(value):,}"
    if value != value or abs(value) == float("inf"):
        return "NaN" if value != value else ("∞" if value > 0 else "-∞")
    if abs(value) < 1e-4 or abs(value) >= 1e15:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    decimals = decimals_of(value, digits)
    text = f"{value:,.{decimals}f}"
    return text[:-1] if decimals > digits and text.endswith("0") else text


def signed_text(value: float, digits: int = 4) -> str:
    """Returns a difference as ``number_text`` does, a positive one with a plus sign."""
    return ("+" if value > 0 else "") + number_text(value, digits)


def decimals_of(value: float, digits: int) -> int:
    """Returns the decimals that show so many significant digits, at most one more."""
    if abs(value) < 0.1:
        return digits + 1
    return max(digits - len(str(int(abs(value)))) + (abs(value) < 1), 0)
