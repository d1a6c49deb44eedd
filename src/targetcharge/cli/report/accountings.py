"""Accountings: what the session of a ledger would have cost under each of them. Computed anew, from its terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, final

from targetcharge.accounting.baselines import advanced_epsilon, optimal_epsilon, optimal_hits
from targetcharge.accounting.exact import exact_epsilon, exact_hits
from targetcharge.accounting.plan import Accounting, catalogue
from targetcharge.accounting.renyi import renyi_epsilon, renyi_hits
from targetcharge.accounting.targets import NOT_PRIOR, Boundary, Kind
from targetcharge.cli.report.targets import kind_of, share_of, targets_of
from targetcharge.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.targets import Target
    from targetcharge.cli.report.findings import Findings
    from targetcharge.ledger import Terms

_Figure = TypeVar("_Figure")

EXACT: Final = "exact"
RENYI: Final = "Rényi"
PAPER: Final = "the paper’s theorem"
PLAIN: Final = "plain composition"
SHARED: Final = "exact, one budget for all"


@final
@dataclass(frozen=True)
class Row:
    """What one accounting makes of the session.

    Attributes:
        name: of the accounting.
        epsilon: of the whole session; None if it cannot be computed.
        count: how many hits or answers that is for.
        buys: how many the budget would have bought; None if it cannot be computed.
        ours: whether the ledger's own meter works so.
    """

    name: str
    epsilon: float | None
    count: int
    buys: int | None
    ours: bool = False

    @property
    def every(self) -> bool:
        """Return whether it pays for every answer."""
        return self.name == PLAIN


def bought(terms: Terms, which: int) -> int:
    """Return how many hits of the declared kind the budget bought on a meter."""
    return terms.capacities[which] // terms.typical[which]


def rows_of(findings: Findings, which: int) -> list[Row]:
    """Return the rows: exact, Rényi, the paper and plain composition, as far as each applies.

    Args:
        findings: about the ledger.
        which: of its meters, if it has alternatives.
    """
    terms = findings.found.terms
    targets, hits = targets_of(terms, which), bought(terms, which)
    if not targets or not hits:
        return []
    rows = [_renyi(terms, which, targets, hits)]
    if not any(isinstance(target, Boundary) for target in targets):
        rows.insert(0, _exact(terms, which, targets, hits))
    if paper := _paper(terms, targets, hits):
        rows.append(paper)
    if findings.individual and findings.hits and rows[0].name == EXACT:
        rows.append(_shared(terms, targets, findings.hits))
    if plain := _plain(findings):
        rows.append(plain)
    return rows


def _exact(terms: Terms, which: int, targets: tuple[Target, ...], hits: int) -> Row:
    ours, query, share = terms.meter == "exact", terms.query_epsilon, share_of(terms)
    kind = kind_of(terms, which)
    assert kind is not None  # noqa: S101 - there are targets
    quick = hits <= _most_hits(kind)
    buys = hits if ours else _tried(lambda: exact_hits(query, share, kind)) if quick else None
    epsilon = _exact_epsilon(terms, targets, hits)
    if epsilon is None and ours:
        epsilon = terms.epsilon  # the hits were counted so that it is no more than that
    return Row(EXACT, epsilon, hits, buys, ours)


def _most_hits(kind: Kind) -> int:
    """Return for how many hits exact accounting takes seconds, not minutes."""
    return 5_000 if kind == NOT_PRIOR else 500


def _exact_epsilon(terms: Terms, targets: tuple[Target, ...], hits: int) -> float | None:
    """Return ε' of so many hits; None of several kinds at once, for which only hits can be computed."""
    kind, delta = targets[0].kind(terms.query_epsilon), share_of(terms).delta
    if len(targets) > 1 or hits > _most_hits(kind):
        return None
    return _tried(lambda: exact_epsilon(terms.query_epsilon, hits, delta, kind.q, disagreement=kind.disagreement))


def _shared(terms: Terms, targets: tuple[Target, ...], hits: int) -> Row:
    """Return what the hits that were published would have cost if all units shared one budget."""
    return Row(SHARED, _exact_epsilon(terms, targets, hits), hits, bought(terms, 0))


def _renyi(terms: Terms, which: int, targets: tuple[Target, ...], hits: int) -> Row:
    ours, query, share = terms.meter == "renyi", terms.query_epsilon, share_of(terms)
    priced = targets[0] if len(targets) == 1 else kind_of(terms, which)
    assert priced is not None  # noqa: S101 - there are targets
    epsilon = _tried(lambda: renyi_epsilon(priced, query, hits, share.delta))
    buys = hits if ours else _tried(lambda: renyi_hits(priced, query, share))
    return Row(RENYI, epsilon, hits, buys, ours)


def _paper(terms: Terms, targets: tuple[Target, ...], hits: int) -> Row | None:
    """Return the best of the paper's forms; of several targets the dearest."""
    query, share = terms.query_epsilon, share_of(terms)
    forms = [[way for way in catalogue(target) if way.name.startswith("paper")] for target in targets]
    if not all(forms):
        return None

    def epsilon(way: Accounting) -> float | None:
        return _tried(lambda: way.epsilon(query, hits, share.delta))

    def buys(way: Accounting) -> int | None:
        return _tried(lambda: way.hits(query, share))

    costs = [[value for value in map(epsilon, ways) if value is not None] for ways in forms]
    found = [[value for value in map(buys, ways) if value is not None] for ways in forms]
    return Row(
        PAPER,
        max(map(min, costs)) if all(costs) else None,
        hits,
        min(map(max, found)) if all(found) else None,
    )


def _plain(findings: Findings) -> Row | None:
    """Return plain composition of what was published; a revision is about an outcome that is paid for already."""
    epsilons, terms = findings.epsilons, findings.found.terms
    delta = terms.delta - terms.computation_delta
    count = sum(epsilons.values())
    if not count:
        return None
    largest = max(epsilons)
    buys = _tried(lambda: optimal_hits(largest, share_of(terms)))
    if len(epsilons) == 1:
        optimal = _tried(lambda: optimal_epsilon(largest, count, delta))
        if optimal is not None:
            return Row(PLAIN, optimal, count, buys)
    # Different ε: their sum, or concentrated DP, where ε²/2 add up; whichever is smaller.
    basic = sum(epsilon * times for epsilon, times in epsilons.items())
    squares = sum((epsilon / largest) ** 2 * times for epsilon, times in epsilons.items())
    return Row(PLAIN, min(basic, advanced_epsilon(largest, squares, delta)), count, buys)


def _tried(compute: Callable[[], _Figure]) -> _Figure | None:
    """Return a figure; None if it is too large to compute."""
    try:
        return compute()
    except TooLarge:
        return None
