"""Naive Bayes: its privacy by exact enumeration, its model against scikit-learn's, its life in a session."""

import importlib
import itertools
import math
from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.naive_bayes import CategoricalNB
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import BufferedEntropy
from tests.sessions.scripted import budget_of

import targetcharge as tc
from targetcharge.learning.bayes import NaiveBayes, naive_bayes, quality
from targetcharge.learning.cells import Codes, Edges
from targetcharge.mechanisms.noise import rate_for

module = importlib.import_module("targetcharge.learning.bayes")
ROUNDING = 1 + 1e-9
CLASSES = ("a", "b")
NOT_A_CLASS = "c"
FEATURES = [Codes(0, [0]), Edges(1, [0.5]), Codes(2, [0, 1])]


class Noise:
    """Stands for entropy where noise is chosen: these values in order, then zeros; remembers the rates."""

    def __init__(self, values=()):
        self._left, self.rates = deque(values), []

    def take(self, rate, count):
        self.rates += [rate] * count
        return np.array([self._left.popleft() if self._left else 0 for _ in range(count)], dtype=np.int64)


@pytest.fixture
def chosen(monkeypatch):
    monkeypatch.setattr(module, "discrete_laplace_array", lambda noise, rate, count: noise.take(rate, count))


def flat(outcome):
    """Return the noisy numbers of an outcome in the order in which they are drawn."""
    cells = [number for table in outcome[4] for row in table for number in row]
    return np.array([*cells, *outcome[:2]])


def noise_for(algorithm, data, outcome):
    """Return the only noise that makes this outcome of this data: counts first, as the score depends on them."""
    wanted = flat(outcome)
    cells = (wanted - flat(algorithm.run(data, Noise())))[:-2]
    score = (wanted - flat(algorithm.run(data, Noise(cells))))[-2:]
    noise = np.concatenate([cells, score])
    assert algorithm.run(data, Noise(noise)) == outcome
    return noise


def loss(algorithm, data, neighbour, noise):
    """Return ln(Pr[outcome | data] / Pr[outcome | neighbour]) of the outcome that this noise makes."""
    drawn = Noise(noise)
    other = noise_for(algorithm, neighbour, algorithm.run(data, drawn))
    rates = [Fraction(rate.numerator, rate.denominator) for rate in drawn.rates]
    padded = [*noise, *[0] * (len(rates) - len(noise))]
    return float(sum(rate * (abs(int(b)) - abs(int(a))) for rate, a, b in zip(rates, padded, other, strict=True)))


def records(features):
    """Return every record that is different from others, on a few values for each feature."""
    values = [(0, 7), (0.2, math.nan), (0, 1)][:features]
    rows = [list(row) for row in itertools.product(*values)]
    return list(itertools.product(rows, [*CLASSES, NOT_A_CLASS]))


def datasets(features, rng, larger):
    """Return all datasets of at most one record, and some larger ones."""
    every = records(features)
    yield from ([], *([record] for record in every))
    for size in larger:
        yield [every[index] for index in rng.integers(0, len(every), size)]


def worst_loss(features, epsilon, share, *, records_per_unit=1, tries=6, larger=(2, 2, 3, 3, 4, 5, 8, 12)):
    """Return the largest |loss| over neighbours and outcomes: what the algorithm's ε is, if all were tried."""
    rng = np.random.default_rng(11)
    algorithm = naive_bayes(
        FEATURES[:features], CLASSES, epsilon, score_share=share, records_per_unit=records_per_unit
    )
    every, worst = records(features), 0.0
    size = len(flat(algorithm.run(([], []), Noise())))
    for data in datasets(features, rng, larger):
        for _ in range(tries):
            unit = [every[index] for index in rng.integers(0, len(every), records_per_unit)]
            pair = [tuple(zip(*rows, strict=True)) or ([], []) for rows in (data, data + unit)]
            noise = rng.integers(-3, 4, size)
            worst = max(worst, *(abs(loss(algorithm, *order, noise)) for order in (pair, pair[::-1])))
    return worst


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 0.25), (1.0, 0.5), (0.3, 0.9)])
def test_no_outcome_tells_more_than_epsilon_and_some_tell_as_much(features, epsilon, share):
    assert 0.999999 * epsilon <= worst_loss(features, epsilon, share) <= epsilon * ROUNDING


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("records_per_unit", [2, 3])
def test_a_unit_of_several_records(records_per_unit):
    worst = worst_loss(2, 0.5, 0.4, records_per_unit=records_per_unit, tries=25)
    assert 0.999999 * 0.5 <= worst <= 0.5 * ROUNDING


def one_less(epsilon, sensitivity):
    return rate_for(epsilon, max(1, sensitivity - 1))


def spent_twice(epsilon, share, features, _records):
    return rate_for(share * epsilon, 1), rate_for(epsilon, features)


def label_of_all(self, cells):
    """Answer by what most rows get: it depends on other rows."""
    found = self._logs(cells).argmax(axis=1)
    return np.full(len(found), np.bincount(found, minlength=2).argmax() if len(found) else 0)


def turned_by_the_number(self, cells):
    """Answer by the model and by how many rows there are."""
    return (self._logs(cells).argmax(axis=1) + len(cells[0])) % 2


MUTANTS = {
    "sensitivity one too small": ("rate_for", one_less),
    "counts get all of epsilon": ("_rates", spent_twice),
    "the answer is a vote": (NaiveBayes, label_of_all),
    "the answer depends on the number of rows": (NaiveBayes, turned_by_the_number),
}


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("features", [2, 3])
def test_mutants_tell_more(monkeypatch, mutant, features):
    where, what = MUTANTS[mutant]
    if isinstance(where, str):
        monkeypatch.setattr(module, where, what)
    else:
        monkeypatch.setattr(where, "decide", what)
    assert worst_loss(features, 0.5, 0.3, tries=8) > 0.5 * 1.1


@pytest.mark.usefixtures("chosen")
def test_the_law_adds_up_to_one():
    """Sum over all noise is sum over all outcomes: each outcome has one noise, so masses are those of a law."""
    algorithm = naive_bayes([Codes(0, [0])], CLASSES, 10.0, score_share=0.5)
    data = ([[0], [1], [0]], ["a", "b", "b"])
    first = Noise()
    algorithm.run(data, first)
    laws = [DiscreteLaplace.of(rate) for rate in first.rates]
    outcomes, total = set(), 0.0
    for noise in itertools.product(range(-1, 2), repeat=len(laws)):
        outcomes.add(algorithm.run(data, Noise(noise)))
        total += math.prod(law.mass(value) for law, value in zip(laws, noise, strict=True))
    assert len(outcomes) == 3 ** len(laws)
    assert 0.99 < total < 1


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1 / 3, 0.5, 1.0, 1e-4])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.25, 0.999, Fraction(1, 3)])
@pytest.mark.parametrize("unit", [1, 7])
def test_rates_never_add_up_to_more_than_epsilon(epsilon, share, unit):
    for features in (1, 2, 3):
        noise = Noise()
        options = {"score_share": share, "records_per_unit": unit}
        naive_bayes(FEATURES[:features], CLASSES, epsilon, **options).run(([], []), noise)
        assert len(noise.rates) == sum(2 * feature.size for feature in FEATURES[:features]) + 2
        *counts, right, wrong = [Fraction(rate.numerator, rate.denominator) for rate in noise.rates]
        assert right == wrong
        assert len(set(counts)) == 1
        total = unit * (right + features * counts[0])
        assert total <= Fraction(epsilon)
        assert total >= Fraction(epsilon) * (1 - Fraction(1, 10**5))


def fit(noise, rate):
    """Return the p-value of integers as discrete Laplace noise."""
    law, reach = DiscreteLaplace(rate), math.ceil(4 / rate)
    observed = [int((noise <= -reach).sum()), *((noise == k).sum() for k in range(1 - reach, reach))]
    observed.append(int((noise >= reach).sum()))
    masses = [law.at_least(reach), *(law.mass(k) for k in range(1 - reach, reach)), law.at_least(reach)]
    return chisquare(observed, np.array(masses) * len(noise)).pvalue


def test_the_noise_that_is_drawn_has_the_law():
    """Many counts in each run, few scores: noise of a rate 5% off is seen, for the score 50%."""
    algorithm = naive_bayes([Codes(0, range(400))], CLASSES, 0.8, score_share=0.5)
    rng, entropy = np.random.default_rng(3), BufferedEntropy(5)
    data = (rng.integers(0, 400, (50, 1)), np.array(CLASSES)[rng.integers(0, 2, 50)])
    counts = np.zeros((2, 401), dtype=int)
    np.add.at(counts, (place_of(data[1]), data[0][:, 0]), 1)
    cells, score = [], []
    for _ in range(500):
        outcome = algorithm.run(data, entropy)
        right = (NaiveBayes.of(outcome).predict(data[0]) == data[1]).sum()
        cells.append((np.array(outcome[4][0]) - counts).ravel())
        score += [outcome[0] - right, outcome[1] - (50 - right)]
    for noise, off in ((np.concatenate(cells), 0.05), (np.array(score), 0.5)):
        assert fit(noise, 0.4) > 1e-9
        assert max(fit(noise, 0.4 * (1 - off)), fit(noise, 0.4 * (1 + off))) < 1e-9


def place_of(labels):
    return np.array([CLASSES.index(label) for label in labels])


@pytest.mark.usefixtures("chosen")
def test_without_noise_it_is_the_categorical_naive_bayes_of_scikit_learn():
    rng = np.random.default_rng(2)
    rows, labels = rng.integers(0, 3, (400, 3)), rng.integers(0, 4, 400)
    rows[:, 0] = np.where(rng.random(400) < 0.6, labels % 3, rows[:, 0])
    features = [Codes(column, [0, 1, 2]) for column in range(3)]
    outcome = naive_bayes(features, range(4), 0.5).run((rows, labels), Noise())
    model = NaiveBayes.of(outcome)
    totals = np.bincount(labels) + 1
    theirs = CategoricalNB(alpha=1, min_categories=4, class_prior=totals / totals.sum()).fit(rows, labels)
    assert model.predict_proba(rows) == pytest.approx(theirs.predict_proba(rows), rel=1e-9)
    assert model.predict(rows).tolist() == theirs.predict(rows).tolist()
    assert model.classes_.tolist() == theirs.classes_.tolist()
    assert model.score(rows, labels) == theirs.score(rows, labels) == outcome[0] / 400
    assert (model.right + model.wrong, quality(outcome)) == (400, outcome[0] / 400)


@pytest.mark.usefixtures("chosen")
def test_an_answer_depends_on_its_row_alone_to_the_last_bit():
    rng = np.random.default_rng(4)
    rows = rng.random((257, 8))
    features = [Edges(column, [0.2, 0.4, 0.9]) for column in range(8)]
    data = rows, rng.integers(0, 3, 257)
    model = NaiveBayes.of(naive_bayes(features, range(3), 0.5).run(data, Noise(rng.integers(-9, 9, 50))))
    together = model.predict_proba(rows)
    assert all((model.predict_proba(rows[i : i + 1]) == together[i]).all() for i in range(len(rows)))
    assert together.sum(axis=1) == pytest.approx(1)


@pytest.mark.usefixtures("chosen")
def test_negative_counts_are_clipped_and_every_answer_is_finite():
    outcome = naive_bayes(FEATURES, CLASSES, 0.5).run(([], []), Noise([-50] * 100))
    assert min(flat(outcome)) == -50
    assert quality(outcome) == 0
    model = NaiveBayes.of(outcome)
    assert model.predict_proba([[0, 0, 0], ["x", math.nan, None], []]).tolist() == [[0.5, 0.5]] * 3
    assert model.predict([]).tolist() == []


@pytest.mark.usefixtures("chosen")
def test_nan_features_and_undeclared_labels_are_ordinary_records():
    rows = np.array([[0.0, math.nan, 1.0], [math.nan] * 3, [math.inf, -math.inf, 5.0], [0.0, 0.0, 0.0]])
    outcome = naive_bayes(FEATURES, CLASSES, 0.5).run((rows, ["a", "b", "b", "z"]), Noise())
    assert outcome[0] + outcome[1] == 3
    assert outcome[4][1] == ((0, 0, 1), (1, 0, 1))
    assert outcome[4][0] == ((1, 0), (0, 2))


MISTAKES = [
    ({"features": []}, "features is"),
    ({"features": "age"}, "features is"),
    ({"features": [Edges(0, [1]), 3]}, "features is"),
    ({"features": [Edges(0, [1]), Codes(0, [1])]}, "features is .* another column"),
    ({"classes": ["a"]}, "classes is .* at least two"),
    ({"classes": []}, "classes is"),
    ({"classes": ["a", "a"]}, "classes is .* each once"),
    ({"classes": [0, False]}, "classes is .* each once"),
    ({"classes": ["a", math.nan]}, "classes is"),
    ({"classes": ["a", None]}, "classes is"),
    *(({"score_share": share}, "score_share is") for share in (0, 1, -0.1, 1.5, math.nan, math.inf, "half", None)),
    *(({"epsilon": epsilon}, "epsilon is") for epsilon in (0, -1, math.nan, math.inf, 11, "1", 1e-9)),
    ({"score_share": 1 - 2**-53}, "epsilon is .* larger"),
    ({"records_per_unit": 0}, "records_per_unit is"),
    ({"records_per_unit": 1.5}, "records_per_unit is"),
    ({"name": ""}, "name is"),
]


@pytest.mark.parametrize(("options", "told"), MISTAKES)
def test_mistakes_are_told_by_name(options, told):
    with pytest.raises(tc.InvalidParameter, match=f"^{told}"):
        naive_bayes(**{"features": FEATURES, "classes": CLASSES, "epsilon": 0.5} | options)


def test_no_other_outcome_is_a_model():
    outcome = naive_bayes(FEATURES, CLASSES, 0.5).run(([], []), BufferedEntropy(1))
    right, wrong, classes, features, counts = outcome
    others = [
        *(None, 7, "model", (), outcome[:4], (*outcome, 1), (0.5, *outcome[1:])),
        (right, wrong, classes[:1], features, counts),
        (right, wrong, (*classes, "c"), features, counts),
        (right, wrong, classes, features[:2], counts),
        (right, wrong, classes, (("tree", 0, (1,)), *features[1:]), counts),
        (right, wrong, classes, features, counts[::-1]),
        (right, wrong, classes, features, ((("x",) * 2,) * 2, *counts[1:])),
    ]
    for other in others:
        with pytest.raises(tc.InvalidParameter, match=r"^outcome is .* a pending release has published nothing"):
            NaiveBayes.of(other)
    assert NaiveBayes.of(outcome).outcome == outcome


HEIGHTS = [[height] for height in (150.0, 160.0, 175.0, 185.0)] * 500, ["child", "child", "adult", "adult"] * 500
GROUPS = naive_bayes([Edges(0, [155, 170])], ["child", "adult"], 0.2, name="groups")


def test_a_bar_that_is_missed_is_free_and_lowering_it_costs_one_hit(tmp_path):
    budget, file = budget_of(2, 0.2), tmp_path / "models.db"
    with tc.Session(HEIGHTS, budget, 0.2, ledger=file) as session:
        release = session.release(GROUPS, when=lambda outcome: quality(outcome) > 1)
        for bar in (3, 2):
            release = release.revise(lambda outcome, bar=bar: quality(outcome) > bar)
        assert (release.released, release.outcome, session.meter.hits) == (False, None, 0)
        assert all(answer.outcome is None for answer in session.transcript)
    with tc.Session(HEIGHTS, budget, 0.2, ledger=file) as session:
        (pending,) = session.pending
        release = pending.revise(lambda outcome: quality(outcome) > 0.8)
        assert (release.released, session.meter.hits, session.meter.hits_left) == (True, 1, 1)
        published = session.transcript[-1]
        assert (published.algorithm, published.hit) == ("groups", True)
        model = NaiveBayes.of(published.outcome)
    assert model == NaiveBayes.of(release.outcome)
    assert model.score(*HEIGHTS) == 1.0
    assert 0.8 < quality(release.outcome) <= 1.0


def test_a_bar_that_raises_on_a_made_up_model_is_refused_before_anything_is_drawn():
    with tc.Session(HEIGHTS, budget_of(1, 0.2), 0.2) as session:
        with pytest.raises(tc.InvalidParameter, match="of <tuple>, which is made up, it raised TypeError"):
            session.release(GROUPS, when=lambda outcome: outcome["quality"] > 0.5)
        assert len(session.transcript) == 0
        release = session.release(GROUPS, when=lambda outcome: quality(outcome) > 1)
        with pytest.raises(tc.InvalidParameter, match="it raised ZeroDivisionError"):
            release.revise(lambda _: 1 / 0)
        assert session.meter.hits == 0


def test_models_can_be_candidates_of_a_selection():
    useless = naive_bayes([Edges(0, [10])], ["child", "adult"], 0.2)
    with tc.Session(HEIGHTS, budget_of(1, 0.2), 0.2) as session:
        (best,) = session.select([useless, GROUPS, useless])
        assert (best.candidate, session.meter.hits) == (1, 1)
        assert NaiveBayes.of(best.outcome).score(*HEIGHTS) == 1.0


def test_rows_without_labels_fail_without_a_word():
    with tc.Session((HEIGHTS[0], HEIGHTS[1][1:]), budget_of(1, 0.2), 0.2) as session:
        with pytest.raises(tc.ComputationFailed) as failure:
            session.release(GROUPS, when=lambda _: True)
        assert failure.value.__context__ is None
        assert session.meter.hits == 1


def test_labels_of_several_types_stay_what_they_are():
    rows, labels = [[0], [1], [2]] * 300, [b"y", 1, "x"] * 300
    algorithm = naive_bayes([Codes(0, [0, 1])], [b"y", 1, "x"], 1.0)
    model = NaiveBayes.of(algorithm.run((rows, labels), BufferedEntropy(1)))
    assert model.predict(rows[:3]).tolist() == [b"y", 1, "x"]
    assert model.score(rows, labels) == 1.0
    with pytest.raises(tc.InvalidParameter, match="rows"):
        model.score([], [])
