"""Numbers as words: counts that stopped at a limit, estimates, rates."""

from __future__ import annotations

from jobs.selectors.metrics import COUNT_LIMIT, Counts

_SIGNIFICANT_DIGITS = 3


def capped(counts: Counts, name: str) -> str:
    """One of the counts: "1,234", "1,234+" where counting became too dear, "10k+" at the limit."""
    count: int = getattr(counts, name)
    if count > COUNT_LIMIT:
        return f"{COUNT_LIMIT // 1000}k+"
    return f"{count:,}" + ("+" if name in counts.at_least else "")


def about(value: float, is_estimate: bool) -> str:
    """A number of things; of an estimate no more digits than it is good for."""
    if not is_estimate:
        return f"{value:,.0f}"
    if 0 < value < 0.5:
        return "≈ <1"
    return f"≈ {_significant(value):,}" if value else "0"


def rate(per_minute: float, is_estimate: bool = False) -> str:
    """So many a minute."""
    if 0 < per_minute < 0.05:
        return "<0.1"
    text = f"{per_minute:.1f}" if per_minute < 100 else f"{_significant(per_minute):,}"
    return f"≈ {text}" if is_estimate and per_minute else text


def _significant(value: float) -> int:
    whole = round(value)
    return round(whole, min(0, _SIGNIFICANT_DIGITS - len(str(whole))))
