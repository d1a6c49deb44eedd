"""Findings: what a ledger tells, read once from its first entry to its last. Pending outcomes are never read."""

from __future__ import annotations

import sqlite3
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from targetcharge.accounting.targets.plain import priced_like
from targetcharge.cli.report.chronology import Chronology
from targetcharge.cli.report.tallies import Noise, Tally
from targetcharge.cli.report.words import costs
from targetcharge.errors import LedgerError
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Restored, Spent, answers_in, entry_of
from targetcharge.ledger.sqlite import Inspection, inspect, verify
from targetcharge.ledger.sqlite.database import Database

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.ledger import Entry

MOST_HITS: Final = 300
"""So many hits are listed, the last ones."""


@final
@dataclass(frozen=True)
class Verdict:
    """What verification said.

    Attributes:
        problem: why the ledger cannot be relied on; empty if it can.
        copied: whether that is because it looks like a restored copy, and nothing in it was changed.
    """

    problem: str = ""
    copied: bool = False


@final
@dataclass
class Findings:
    """What a ledger tells.

    Attributes:
        name: of its file.
        found: its terms and where it stands.
        verdict: whether it can be relied on.
        answers: how many there are.
        hits: how many of them cost.
        revisions: how many are about an outcome that was drawn before.
        tallies: of each question, in the order in which they were first asked.
        noises: of each scale.
        epsilons: how many answers had each ε, as it was published.
        unscaled: how many answers tell no scale of noise.
        last_hits: those that are listed, with the number of their question.
        lost: reservations that were spent without an answer.
        vouched: entries at which the owner vouched for a restored copy.
        chronology: what happened when.
        unread: what could not be read, in words; empty if everything could.
    """

    name: str
    found: Inspection
    verdict: Verdict
    answers: int = 0
    hits: int = 0
    revisions: int = 0
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    noises: dict[float, Noise] = field(default_factory=dict)
    epsilons: dict[float, int] = field(default_factory=dict)
    unscaled: int = 0
    last_hits: deque[tuple[int, Answer]] = field(default_factory=lambda: deque(maxlen=MOST_HITS))
    lost: list[Spent] = field(default_factory=list)
    vouched: list[int] = field(default_factory=list)
    chronology: Chronology = field(default_factory=Chronology)
    unread: str = ""
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _published: dict[tuple[tuple[PlainTarget, ...], float], float] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Return the ledger's id."""
        return str(self.found.state.fields.get("ledger", ""))

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        return self.found.terms.charging == "individual"

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        match entry:
            case Answer() | BatchEntry():
                answers = answers_in(entry)
                for answer in answers:
                    self._add(answer)
                self.chronology.add(answers)
            case Spent():
                self.lost.append(entry)
                self.chronology.lose(entry)
            case Restored(number):
                self.vouched.append(number)
            case _:
                pass

    def _add(self, answer: Answer) -> None:
        self.answers += 1
        self.hits += answer.hit
        name = answer.algorithm, costs(answer)
        tally = self.tallies.get(name)
        if tally is None:
            tally = self.tallies[name] = Tally(*name)
            self._numbers[name] = len(self.tallies)
        tally.add(answer)
        if answer.hit:
            self.last_hits.append((self._numbers[name], answer))
        if answer.release is not None and answer.release != answer.seq:
            self.revisions += 1
        else:
            published = self._as_published(answer)
            self.epsilons[published] = self.epsilons.get(published, 0) + 1
        if answer.scale:
            self.noises.setdefault(answer.scale, Noise(answer.scale)).add(answer)
        else:
            self.unscaled += 1

    def _as_published(self, answer: Answer) -> float:
        """Return the ε under which the answer alone is private: twice that of a run for two runs, say."""
        name = answer.targets, answer.epsilon
        if name not in self._published:
            target = priced_like(answer.targets[0]) if len(answer.targets) == 1 else None
            self._published[name] = target.published_epsilon(answer.epsilon) if target else answer.epsilon
        return self._published[name]


def gather(path: Path) -> Findings:
    """Read a ledger.

    Raises:
        LedgerError: if there is none, or what it was made for cannot be read.
    """
    found = inspect(path, unchecked=True)
    verdict = _judged(path, found)
    findings = Findings(path.name, found, verdict)
    number = 0
    try:
        with closing(Database(path, read_only=True)) as database:
            for number, _, body, _ in database.rows():
                if number > found.state.number:
                    break  # written since
                findings.add(entry_of(body))
    except (LedgerError, sqlite3.Error, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        if not verdict.problem:
            msg = f"the ledger {path} cannot be read: {error}"
            raise LedgerError(msg) from None
        findings.unread = f"entry {number} and what follows: {error}"
    return findings


def _judged(path: Path, found: Inspection) -> Verdict:
    try:
        verify(path)  # after the reading: it covers at least what is told
    except LedgerError as error:
        problem = str(error).replace(str(path), path.name)
        return Verdict(problem, copied=bool(found.restored) and found.restored in problem)
    return Verdict()
