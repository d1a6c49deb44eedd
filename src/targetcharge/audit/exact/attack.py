"""The attack: a search for the game that tells the most, through the real session.

>>> from targetcharge.audit.exact import attack, opener
>>> verdict = attack(opener(1.0, hits=1), restarts=3, steps=3, seed=1)
>>> verdict.passed, 0.98 < verdict.ratio <= 1
(True, True)
>>> print(verdict)
passed (exact, ... runs): at epsilon = ... the claim is delta = ... and ... is attained, 1 of it
worst: ... questions by ...
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.meter.tariff import ExactTariff
from targetcharge.audit.exact.claims import Claim, Running
from targetcharge.audit.exact.explore import explore
from targetcharge.audit.exact.judge import judge
from targetcharge.audit.exact.strategy import Strategy
from targetcharge.audit.exact.tools import TOOLS, usable
from targetcharge.errors import InvalidParameter, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from targetcharge.audit.exact.explore import Opened
    from targetcharge.audit.verdict import Verdict
    from targetcharge.sessions import Session


def attack(
    opened: Opened,
    *,
    claim: Claim | Running | None = None,
    tools: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    questions: int = 14,
    restarts: int | None = None,
    steps: int = 10,
    seed: int = 0,
    limit: int = 400,
    progress: Callable[[int, int, float], None] | None = None,
) -> Verdict:
    """Return the verdict on the game that comes closest to the claim, or goes furthest beyond it.

    Each restart draws a strategy (which tools, which laws, where the loss is steered) and improves it by small
    changes: other moves in some states, laws, aims. The search ends at the first game that tells more than is
    claimed.

    A search that passes is no proof. Of the eleven broken sessions in tests/audit/exact/broken.py a modest search
    with all tools finds nine, some of them only with some seeds: failures, cancelled calls and revisions that are
    free need the right laws several times in a row. Not found are a stopping rule that sees scores which are not
    published, and a revision that draws again; games written for these flag them.

    Args:
        opened: opens a fresh session; `opener` makes one for a number of hits.
        claim: what to compare with; left out for the session's own.
        tools: of `TOOLS`; left out for all that the session has a price for.
        epsilons: of the computations; left out for the session's query ε; a Rényi meter needs them.
        questions: the most in a game. Fewer where the game would have too many paths.
        restarts: how many strategies to start from; left out for two for each tool. The first play one tool alone
            each, the others up to three.
        steps: how many changes to try on each.
        seed: the search is reproducible from it.
        limit: the most paths of a game.
        progress: called with games done, games in all, and the best ratio so far.
    """
    session = opened()
    scale = _scale(session, epsilons)
    search = _Search(opened, claim or Claim.of(session), limit)
    chosen = _tools(session, scale, tools)
    session.close()
    rng = np.random.default_rng(seed)
    questions = checks.positive_integer("questions", questions)
    restarts = 2 * len(chosen) if restarts is None else checks.positive_integer("restarts", restarts)
    total = restarts * (1 + steps)
    for done, strategy in enumerate(search.strategies(rng, chosen, scale, questions, restarts, steps)):
        search.consider(strategy)
        if progress is not None:
            progress(done + 1, total, search.best.ratio if search.best else 0.0)
        if search.best and not search.best.passed:
            break
    if search.best is None:
        expected = f"larger: none of the games has so few paths at {questions} questions"
        raise TooLarge("limit", limit, expected)
    return replace(search.best, runs=search.paths)


@final
class _Search:
    """The state of a search: the best of all, and the best since the last restart."""

    def __init__(self, opened: Opened, claim: Claim | Running, limit: int) -> None:
        self._opened, self._claim, self._limit = opened, claim, limit
        self.best: Verdict | None = None
        self.paths = 0
        self._present: tuple[float, Strategy] | None = None

    def strategies(
        self,
        rng: np.random.Generator,
        tools: tuple[str, ...],
        scale: tuple[float, ...],
        questions: int,
        restarts: int,
        steps: int,
    ) -> Iterator[Strategy]:
        """Yield strategies: fresh ones, and changes of the best since."""
        for restart in range(restarts):
            self._present = None
            some = tuple(str(tool) for tool in rng.choice(tools, int(rng.integers(1, 4))))
            alone = restart < len(tools)
            menu = (tools[restart],) if alone else some
            aim = max(scale) * (1, 0, 2, math.inf)[restart % 4]
            yield Strategy(menu, scale, questions, aim, int(rng.integers(1 << 20)), steady=alone)
            for _ in range(steps):
                if self._present is None:
                    break
                yield self._present[1].changed(rng, tools)

    def consider(self, strategy: Strategy) -> None:
        """Play a strategy, with fewer questions if it branches too much, and keep it if it is better."""
        while True:
            try:
                views = explore(self._opened, strategy, self._limit)
            except TooLarge:
                if strategy.questions == 1:
                    return
                strategy = replace(strategy, questions=max(1, strategy.questions * 2 // 3), visited={})
            else:
                break
        self.paths += views.paths
        verdict = judge(views, self._claim, strategy.words())
        if self._present is None or verdict.ratio >= self._present[0]:
            self._present = verdict.ratio, strategy
        if self.best is None or (not verdict.passed, verdict.ratio) > (not self.best.passed, self.best.ratio):
            self.best = verdict


def _scale(session: Session, epsilons: Sequence[float] | None) -> tuple[float, ...]:
    """Return the ε of computations."""
    if epsilons is not None:
        if not epsilons:
            raise InvalidParameter("epsilons", epsilons, "at least one ε of a computation")
        return tuple(checks.query_epsilon(each, "epsilons") for each in epsilons)
    tariff = session.meter.tariff
    if isinstance(tariff, ExactTariff):
        return (tariff.query_epsilon,)
    raise InvalidParameter("epsilons", epsilons, "given for a Rényi meter, which does not tell its query ε")


def _tools(session: Session, scale: tuple[float, ...], tools: Sequence[str] | None) -> tuple[str, ...]:
    """Return the tools to use."""
    found = usable(session, max(scale)) if tools is None else tuple(tools)
    for tool in found:
        if tool not in TOOLS:
            raise InvalidParameter("tools", tool, f"among {', '.join(TOOLS)}")
    if not found:
        raise InvalidParameter("tools", tools, "at least one that the session has a price for")
    return found
