"""Black-box audits: run code many times on two neighbouring inputs, and bound its ε from below.

>>> from targetcharge.accounting.budget import Budget
>>> from targetcharge.mechanisms import noisy_count
>>> rows = ["a"] * 10
>>> honest = black_box(noisy_count(len, epsilon=1.0), rows, rows[:-1], runs=4_000, workers=1)
>>> honest.passed
True
>>> boast = black_box(noisy_count(len, epsilon=1.0), rows, rows[:-1], Budget(0.5, 0.0), runs=4_000, workers=1)
>>> boast.passed, boast.claimed, boast.attained > 0.5
(False, 0.5, True)
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge import checks, markup
from targetcharge.audit.sampling.bounds import (
    Counts,
    delta_at_least,
    detectable,
    epsilon_at_least,
    fewest_seen,
    rarest,
    runs_needed,
)
from targetcharge.audit.sampling.events import Event, RatioTable, candidates, varied
from targetcharge.audit.sampling.features import default_features, given_features, left_out, noise_features
from targetcharge.audit.sampling.published import Raised
from targetcharge.audit.sampling.runs import PredictableEntropy, Samples, collect
from targetcharge.audit.sampling.subject import INTERACTION, Subject, check_neighbours
from targetcharge.audit.verdict import Verdict
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.accounting.budget import Budget

EVENTS: Final = 4
"""Events that are counted. Each gets its share of the confidence: more would weaken the bound of every one."""

_ENDINGS: Final = frozenset({"BudgetSpent", "NotAllowed", "ComputationFailed"})
"""Errors of a session that is asked too much."""

_POINTS: Final = 33


def black_box(
    run: object,
    data0: object,
    data1: object,
    claim: Budget | None = None,
    *,
    relation: str = "add-remove",
    runs: int = 20_000,
    confidence: float = 0.999,
    seed: int = 0,
    workers: int | None = None,
    features: Sequence[Callable[[object], object]] = (),
    progress: Callable[[int, int], object] | None = None,
) -> Verdict:
    """Return whether runs on two inputs disprove a claim.

    A claim that is true passes with at least the confidence. A claim that passes may still be false: for other
    inputs, by less than so many runs can show, in events that are too rare for them, or in events that nobody
    looked at.

    Args:
        run: an algorithm, a function of the data, or one of the data and `entropy`; what it returns is what it
            publishes, and of a session it returns the transcript. An error it raises is an outcome, known by its
            type and text; so is sys.exit.
        data0: an input.
        data1: a neighbour.
        claim: what is promised; an algorithm and a session know their own.
        relation: what makes the inputs neighbours: "add-remove", "replace-one", or "any" if the caller vouches.
        runs: on each input. Half of them learn and choose events, the others are counted.
        confidence: of the bound.
        seed: of all that the audit decides, and of the entropy that it gives.
        workers: processes; as many as there are cores if None. Where processes cannot fork there is one.
        features: functions of what is published, to look at besides the usual.
        progress: told how many of how many runs are done.

    Raises:
        InvalidParameter: if the inputs are not neighbours, the runs too few, the outcomes always the same or such
            that they cannot be counted.
    """
    check_neighbours(data0, data1, relation)
    expected = "a number from 0.5 to 1, and below 1"
    checks.fitting(confidence, "confidence", expected, lambda share: 0.5 <= share < 1)
    alpha = (1 - confidence) / EVENTS
    entropy = PredictableEntropy(np.random.SeedSequence(_seed(seed)).spawn(1)[0])
    subject, data = Subject.of(run), (data0, data1)
    claim = subject.promised(claim, data, entropy)
    _check_runs(checks.positive_integer(runs, "runs"), claim, alpha)
    own = given_features(features)
    samples = collect(subject, data, runs, seed, _workers(workers), progress)
    _check_random(subject, samples, runs)
    seen = {**samples.learn[0], **samples.learn[1]}
    noises = noise_features([samples.learn, samples.choose], data, claim.epsilon)
    counted = samples.counted[0].total()
    events = candidates(
        samples.learn, samples.choose, [*default_features(seen), *noises, *own], claim.delta, alpha, runs=counted
    )
    verdict = _verdict(varied(events, EVENTS), samples, claim, alpha, runs, confidence)
    limits = [_ended(samples), left_out(seen), _blind(events, samples)]
    return replace(verdict, worst=". ".join([verdict.worst, *filter(None, limits)]))


def _ended(samples: Samples) -> str:
    """Return in words that a session's errors hid what it had answered, if they did."""
    endings: Counter[str] = Counter()
    for tally in samples.tallies():
        for published, times in tally.items():
            if isinstance(published.value, Raised) and published.value.kind in _ENDINGS:
                endings[published.value.kind] += times
    if not endings:
        return ""
    runs = [f"{kind} ended {markup.counted(times, 'run')}" for kind, times in sorted(endings.items())]
    return f"{', '.join(runs)}. {INTERACTION}"


def _blind(events: list[Event], samples: Samples) -> str:
    """Return in words that no label came twice, if none did: there was nothing to learn from."""
    runs = sum(tally.total() for tally in samples.learn)
    if events and all(isinstance(event.score, RatioTable) and len(event.score.ratios) >= runs for event in events):
        return "No outcome came twice, so the audit could not look inside: give features=[…] of what is published"
    return ""


def _verdict(
    events: list[Event], samples: Samples, claim: Budget, alpha: float, runs: int, confidence: float
) -> Verdict:
    counted = [(event, *event.counts(samples.counted)) for event in events]
    shown = [epsilon_at_least(likely, rare, claim.delta, alpha, event.tilt) for event, likely, rare in counted]
    attained = max(shown, default=0.0)
    if counted:
        best = _words(*counted[shown.index(attained)])
    else:  # what was published was always the same where events are learnt
        best = "nothing in the first half of the runs told the inputs apart"
    runs_counted = samples.counted[0].total()
    power = detectable(claim.epsilon, claim.delta, runs_counted, alpha)
    limit = f"So many runs would show an epsilon from {power:.3g} on, at best{_unseen(claim, runs_counted, alpha)}"
    return Verdict(
        passed=attained <= claim.epsilon,
        mode="sampling",
        quantity="epsilon",
        claimed=claim.epsilon,
        attained=attained,
        at=claim.delta,
        runs=runs,
        confidence=confidence,
        worst=f"{best}. {limit}",
        curve=_curve(counted, claim, attained, alpha),
    )


def _words(event: Event, likely: Counts, rare: Counts) -> str:
    inputs = ("data1", "data0") if event.swapped else ("data0", "data1")
    fixed = "it is not random; " if likely.seen == likely.runs and not rare.seen else ""
    return (
        f"{fixed}{event.name}: in {likely.seen:,} of {likely.runs:,} counted runs on {inputs[0]}, in"
        f" {rare.seen:,} of {rare.runs:,} on {inputs[1]}"
    )


def _unseen(claim: Budget, counted: int, alpha: float) -> str:
    """Return in words which events are too rare for so many counted runs."""
    fewest = fewest_seen(claim.epsilon, claim.delta, counted, alpha)
    if fewest > counted:
        return ""
    chance = rarest(claim.epsilon, claim.delta, counted, alpha)
    more = "" if claim.delta else "; what is ten times rarer takes ten times the runs"
    return (
        f". They do not show an event with a chance below {100 * chance:.2g}%, not even one that is impossible on"
        f" the other input: it must be seen {fewest:,} times in the counted runs{more}"
    )


def _curve(
    counted: list[tuple[Event, Counts, Counts]], claim: Budget, attained: float, alpha: float
) -> tuple[tuple[float, float, float], ...]:
    """Return rows (ε, the δ that the claim implies there, the δ that is shown)."""
    rows = []
    for epsilon in np.linspace(0.0, 1.25 * max(claim.epsilon, attained), _POINTS).tolist():
        shown = [delta_at_least(likely, rare, epsilon, alpha, event.tilt) for event, likely, rare in counted]
        rows.append((epsilon, implied_delta(claim, epsilon), max(shown, default=0.0)))
    return tuple(rows)


def implied_delta(claim: Budget, epsilon: float) -> float:
    """Return the δ at another ε that follows from a claim: that of randomised response that fails with δ."""
    if epsilon >= claim.epsilon:
        return claim.delta
    gain = -math.expm1(epsilon - claim.epsilon) / (1 + math.exp(-claim.epsilon))
    return claim.delta + (1 - claim.delta) * gain


def _seed(value: int) -> int:
    if type(value) is not int or value < 0:
        raise InvalidParameter("seed", value, "an integer of at least 0")
    return value


def _workers(value: int | None) -> int:
    if value is not None:
        return checks.positive_integer(value, "workers")
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_runs(runs: int, claim: Budget, alpha: float) -> None:
    counted = runs - 2 * (runs // 4)
    needed = runs_needed(claim.epsilon, claim.delta, alpha)
    if counted < needed:
        expected = (
            f"at least {2 * needed:,}: half of them are counted, and even an event that always happens on one"
            f" input and never on the other would not show more than epsilon = {claim.epsilon:g} with fewer"
        )
        raise InvalidParameter("runs", runs, expected)


def _check_random(subject: Subject, samples: Samples, runs: int) -> None:
    """Refuse code that did the same in every run on both inputs: an audit of it says nothing."""
    seen = set(itertools.chain(*samples.tallies()))
    if len(seen) == 1:
        only = seen.pop().value
        hint = "; does it work on this data?" if isinstance(only, Raised) else ""
        what = f"random, or depend on its input: all {2 * runs:,} runs published {only!r}{hint}"
        raise InvalidParameter("run", subject.name, what)
