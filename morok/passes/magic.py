"""Division by a constant as multiplication and shift: the helper of rules/target/decompose.rules."""

from __future__ import annotations

from morok.marks import helper


def magic(top: int, d: int) -> tuple[int, int] | None:
    """The least (m, s) with x // d == (x * m) >> s for all 0 <= x <= top.

    With e = m * d - 2^s in [0, 2^s / top): x * m = x * (2^s + e) / d exceeds x * 2^s / d by less than 2^s / d, so the floor
    is the same (Granlund and Montgomery 1994). None if no shift up to 64 suffices.
    """
    for s in range(65):
        m = -(-(1 << s) // d)
        if (m * d - (1 << s)) * top < 1 << s:
            return m, s
    return None


@helper
def reciprocal(top: int, d: int) -> tuple[int, int] | None:
    """(m, p) with x // d == x * m // p for all 0 <= x <= top, p a power of two; None if d is a power of two, or there is none."""
    found = magic(top, d) if d & (d - 1) else None
    return None if found is None else (found[0], 1 << found[1])
