"""Every tool in ten seconds, on generated data: `make demo`.

400,000 made-up patients, one record each. Analysts ask thousands of questions; almost all answers are "nothing
new" and free. Three sessions: an exact meter with a ledger file that is closed and opened again in the middle, a
Rényi meter that mixes kinds of question, and one with alternative targets.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, optimal_epsilon, paper_epsilon, renyi_epsilon
from targetcharge.randomness import Entropy, Rate, discrete_laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUDGET = tc.Budget(epsilon=5.0, delta=1e-6)
QUERY_EPSILON = 0.1
COMPUTATION_DELTA = 1e-7
CLINICS, WEEKS, DIAGNOSES = 40, 52, ("cold", "flu", "asthma", "fracture")
COLD, FLU = 0, 1

console = Console()


@dataclass
class Patients:
    """One record each: where, when, what."""

    clinic: NDArray[np.int64]
    week: NDArray[np.int64]
    diagnosis: NDArray[np.int64]

    @classmethod
    def made_up(cls, count: int = 400_000) -> Patients:
        """Return patients with a flu wave in weeks 4 to 9 and an outbreak in clinic 17 in week 30."""
        rng = np.random.default_rng(7)
        week = rng.integers(0, WEEKS, count)
        clinic = rng.integers(0, CLINICS, count)
        share = np.full(WEEKS, 0.1)
        share[4:10] = 0.2, 0.5, 0.5, 0.5, 0.412, 0.2  # in week 8 as many have the flu as a cold
        flu = (rng.random(count) < share[week]) | ((clinic == 17) & (week == 30))
        other = rng.choice([0, 2, 3], count, p=[0.7, 0.2, 0.1])
        return cls(clinic, week, np.where(flu, FLU, other))

    def where(
        self, clinic: int | None = None, week: int | None = None, diagnosis: int | None = None
    ) -> NDArray[np.bool_]:
        """Return which records match."""
        match = np.ones(len(self.clinic), dtype=bool)
        for column, value in ((self.clinic, clinic), (self.week, week), (self.diagnosis, diagnosis)):
            if value is not None:
                match &= column == value
        return match


def count(data: Patients, **match: int) -> int:
    """Return how many records match: adding a patient changes it by at most one."""
    return int(data.where(**match).sum())


def counts(data: Patients, week: int) -> list[int]:
    """Return how many patients each diagnosis has in a week."""
    return [count(data, week=week, diagnosis=diagnosis) for diagnosis in range(len(DIAGNOSES))]


@tc.private(epsilon=QUERY_EPSILON, delta=1e-8)
def main_diagnosis(data: Patients, entropy: Entropy) -> str:
    """Name the most frequent diagnosis if its noisy lead is large: propose-test-release, (ε, δ)-DP.

    Where two neighbours differ in the winner, both leads are at most 1, and the noise reaches 1 + ln(1/δ)/ε with
    probability at most δ. Elsewhere the winner is the same, and the lead moves by at most 1.
    """
    totals = np.bincount(data.diagnosis, minlength=len(DIAGNOSES))
    second, first = np.sort(totals)[-2:]
    noisy_lead = int(first - second) + discrete_laplace(entropy, Rate.at_most(QUERY_EPSILON))
    return DIAGNOSES[int(totals.argmax())] if noisy_lead > 1 + math.log(1e8) / QUERY_EPSILON else "no clear winner"


@dataclass
class Tally:
    """What one session was asked and what was hit, by tool."""

    meter: str
    runs: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    told: dict[str, str] = field(default_factory=dict)

    def add(self, tool: str, *answers: tc.Answer | tc.Release, told: object = "", runs: int = 1) -> None:
        """Count a question's runs and hits; remember what the last hit told."""
        hits = sum(answer.hit if isinstance(answer, tc.Answer) else answer.released for answer in answers)
        self.runs[tool] += runs
        self.hits[tool] += hits
        if hits:
            self.told[tool] = str(told)


def exact_session(data: Patients, ledger: Path) -> tuple[tc.Session, Tally]:
    """Ask on the exact meter, with a restart in the middle; return the closed session and its tally."""
    tally, m, noisy = Tally("exact"), tc.mechanisms, QUERY_EPSILON
    kinds = [tc.NotPrior(prior=False), tc.Disagreement()]
    opened = partial(
        tc.Session, data, BUDGET, noisy, ledger=ledger, targets=kinds, computation_delta=COMPUTATION_DELTA
    )
    with opened() as session, Progress(console=console, transient=True) as progress:
        places = list(product(range(WEEKS), range(CLINICS)))
        for week, clinic in progress.track(places, description="150 flu patients in one clinic in one week?"):
            flu = partial(count, clinic=clinic, week=week, diagnosis=FLU)
            answer = session.test(m.above_threshold(flu, 150, noisy, name="flu in a clinic and week"))
            tally.add("test", answer, told=f"clinic {clinic}, week {week}")
        release = session.release(m.noisy_count(partial(count, diagnosis=3), noisy), when=lambda n: n > 50_000)
        tally.add("release, revise after a restart", release)
    with opened() as session:  # as after a restart: the budget and the pending release are still there
        (release,) = session.pending
        release = release.revise(lambda n: n > 20_000)
        tally.add("release, revise after a restart", release, told=f"{release.outcome} fractures", runs=0)
        for week in range(WEEKS):
            winner = m.noisy_max(partial(counts, week=week), noisy, outcomes=DIAGNOSES, name="main diagnosis")
            answer = session.ask_prior(winner, "cold")
            tally.add("ask_prior: still cold?", answer, told=f"week {week}: {answer.outcome}")
            vote = m.exponential(partial(counts, week=week), noisy, outcomes=DIAGNOSES, name="vote")
            answer = session.ask(tc.twice(vote))
            tally.add("twice", answer, told=f"week {week}: {answer.outcome}", runs=2)
            answer = session.ask(tc.agreement(vote))
            tally.add("agreement", answer, told=f"week {week}: {answer.outcome}", runs=2)
        flus = [m.noisy_count(partial(count, clinic=c, week=30, diagnosis=FLU), noisy) for c in range(CLINICS)]
        best = session.select(flus, k=3, stop=tc.sessions.gap(40))
        told = ", ".join(f"clinic {answer.candidate}: {answer.outcome}" for answer in best)
        tally.add("select: the best 3, until a gap of 40", *best, told=told, runs=len(flus))
        answer = session.ask_prior(main_diagnosis, "cold")
        tally.add("an algorithm with δ = 1e-8", answer, told=answer.outcome)
    return session, tally


def renyi_session(data: Patients) -> Tally:
    """Ask on a Rényi meter, which mixes kinds of target and ε."""
    tally, m = Tally("Rényi"), tc.mechanisms
    with tc.Session(data, BUDGET, QUERY_EPSILON, meter="renyi") as session:
        for week in range(WEEKS):
            flu = partial(count, week=week, diagnosis=FLU)
            answer = session.ask(m.above_threshold(flu, 3_500, 0.05))
            tally.add("ask: the noisy count above 3,500", answer, told=f"week {week}: {answer.outcome}")
            answer = session.ask(m.between_thresholds(flu, 1_000, 2_000, 0.1))
            tally.add("between 1,000 and 2,000", answer, told=f"week {week}")
            vote = m.exponential(partial(counts, week=week), 0.08, outcomes=DIAGNOSES, name="vote")
            answer = session.ask(tc.boundary(vote))
            tally.add("boundary wrapper", answer, told=f"week {week}: too close to call")
    return tally


def alternatives_session(data: Patients) -> Tally:
    """Ask with two expected answers at once: the session goes on until both meters are spent."""
    tally = Tally("two of them")
    rivals = [tc.NotPrior("cold"), tc.NotPrior("flu")]
    with tc.Session(data, BUDGET, QUERY_EPSILON / 2, alternatives=rivals) as session:
        for week in range(WEEKS):
            winner = tc.mechanisms.noisy_max(partial(counts, week=week), QUERY_EPSILON / 2, outcomes=DIAGNOSES)
            answer = session.ask(winner)
            cold, flu = session.meters
            tally.add("alternatives: cold or flu", answer, told=f"not cold {cold.hits}, not flu {flu.hits} times")
    return tally


def show_answers(tallies: list[Tally]) -> None:
    """Print what was asked and what was hit."""
    title = "What was asked, and what it found"
    table = Table("tool", "meter", "runs", "hits", "the last hit", title=title, title_justify="left")
    for tally in tallies:
        for tool, runs in tally.runs.items():
            row = tool, tally.meter, f"{runs:,}", f"{tally.hits[tool]:,}", tally.told.get(tool, "")
            table.add_row(*row)
    console.print(table)


def show_costs(session: tc.Session, tally: Tally) -> None:
    """Print what a session like the first one costs under each accounting."""
    covered = session.meter.hits + session.meter.hits_left
    runs = tally.runs.total()
    delta = BUDGET.delta - COMPUTATION_DELTA
    rows = {
        "exact": exact_epsilon(QUERY_EPSILON, covered, delta, disagreement=True),
        "Rényi": renyi_epsilon(tc.Disagreement(), QUERY_EPSILON, covered, delta),
        "the paper's theorem, run twice priced like a test": paper_epsilon(QUERY_EPSILON, covered, delta),
        f"plain composition of all {runs:,} runs": optimal_epsilon(QUERY_EPSILON, runs, delta),
    }
    title = f"What the first session costs: room for {covered} hits, of which {session.meter.hits} came"
    table = Table("accounting", "ε' at δ' = 1e-6", title=title, title_justify="left")
    for name, epsilon in rows.items():
        table.add_row(name, f"{epsilon:.2f}", style="bold" if name == "exact" else None)
    console.print(table)


def main() -> None:
    """Run the three sessions and report."""
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    ledger = folder / "demo.db"
    for old in folder.glob("demo.db*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    data = Patients.made_up()
    session, tally = exact_session(data, ledger)
    show_answers([tally, renyi_session(data), alternatives_session(data)])
    show_costs(session, tally)
    budget = session.meter.guarantee
    console.print(f"The first session is ({budget.epsilon:g}, {budget.delta:g})-private, however it ends.")
    console.print(f"Its ledger: .venv/bin/tct ledger show {ledger}", highlight=False)


if __name__ == "__main__":
    main()
