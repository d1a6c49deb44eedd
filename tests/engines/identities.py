"""How units are told apart in pandas and in text files: the rule again, written another way."""

import datetime as dt
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

_NUMBER = re.compile(r"[ \t\n\r\f\v]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t\n\r\f\v]*")


def instant(time):
    """Return a date or a time without a zone as text: its microseconds since 1970."""
    if not isinstance(time, dt.datetime):
        time = dt.datetime(time.year, time.month, time.day)
    passed = time - dt.datetime(1970, 1, 1)
    return f"@{(passed.days * 86400 + passed.seconds) * 10**6 + passed.microseconds}"


def in_order(text):
    """Return what canonical texts are in the order of: the shorter ones first."""
    return None if text is None else (len(text.encode()), text)


def read_number(value):
    """Return the text of a number of a column that is declared to hold some."""
    text = by_value(value)
    return repr(float(value)) if abs(value) >= 2**63 and text != "inf" and text != "-inf" else text


def by_value(value):
    """Return the text that tells a value apart, None if it is missing. Of ASCII text, numbers and times only."""
    if value is None or value != value:
        return None
    if isinstance(value, dt.date):
        return instant(value)
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return str(int(value.lower() == "true"))
        if _NUMBER.fullmatch(value):
            return by_value(float(value) if "e" in value.lower() else Decimal(value.strip()))
        return value.rstrip("\0")
    if isinstance(value, float) and abs(value) == float("inf"):
        return str(value)
    exact = Fraction(value)
    if exact.denominator > 1:
        single = Fraction(float(np.float32(float(value))))
        return str(single.numerator) if single.denominator == 1 else str(float(single))
    return str(int(float(exact)))
