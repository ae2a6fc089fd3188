"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file of `backend/`.

    `text` stands in the file once and becomes `replacement`; `breaks` says what is wrong
    then; `killer` is the test that notices, as pytest names it.
    """

    name: str
    file: str
    text: str
    replacement: str
    breaks: str
    killer: str

    def applied_to(self, source: str) -> str:
        """The file's text with the change; raises `ValueError` where it does not fit."""
        count = source.count(self.text)
        if count != 1:
            raise ValueError(f"{self.name}: its text stands {count} times in {self.file}")
        return source.replace(self.text, self.replacement)
