"""Units: whose privacy is protected.

>>> str(Unit("column", "patient")), str(Unit("row"))
('units of patient', 'rows')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final


@final
@dataclass(frozen=True)
class Unit:
    """Whose privacy is protected.

    Attributes:
        kind: all rows that share the value of a "column", every "row" alone, or what "words" say.
        name: of the column, or the words; empty for rows, and where nothing was said.
    """

    kind: Literal["column", "row", "words"] = "words"
    name: str = ""

    def __str__(self) -> str:
        """Return it in words, for people."""
        return {"column": f"units of {self.name}", "row": "rows", "words": self.name}[self.kind]
