"""Text that was not written by us, made safe to show."""
from __future__ import annotations

import math
import unicodedata


def escape(text: str) -> str:
    """Safe on a terminal: control, format and bidirectional characters become \\xNN or \\uNNNN."""
    if text.isascii() and text.isprintable():                  # nearly every text
        return text
    return "".join([c if c == "\t" or not _is_hazardous(c) else f"\\x{ord(c):02x}" if ord(c) < 256
                    else f"\\u{ord(c):04x}" for c in text])


def escape_lines(text: str) -> str:
    """A text of several lines, each escaped by itself."""
    return "\n".join([escape(line) for line in text.split("\n")])


def spelled(number: int) -> str:
    """An integer, however many digits it has: Python refuses to spell long ones."""
    if number.bit_length() < 200:
        return str(number)
    return f"about {'-' * (number < 0)}10^{int(number.bit_length() * math.log10(2))}"


def _is_hazardous(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
