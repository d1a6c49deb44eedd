"""`tct report`: what is on the page, for every kind of ledger."""

import math
import re
import sqlite3
from fractions import Fraction

import pandas as pd
import pytest
from tests.cli.commands import run
from tests.cli.conftest import least, most, noise
from tests.cli.pages import SHARED, Clock, Page, batch, write
from tests.discrete_laplace import DiscreteLaplace

import targetcharge as tc
from targetcharge.ledger import Answer
from targetcharge.ledger.entries import Restored, Spent

BUDGET = tc.Budget(3.0, 1e-6)
COUNT = '{"what":{"count":null},"above":50}'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def reported(ledger, code=0):
    result = run("report", ledger, "--output", "-")
    assert result.code == code, result.err
    return Page(result.out)


def say(value, name="said", epsilon=0.1, delta=0.0):
    return tc.private(epsilon, delta, name=name)(lambda _: value)


def counting(name="count(*) >= 500"):
    return tc.mechanisms.above_threshold(len, 500, epsilon=0.1, name=name)


def test_a_session_question_by_question(monkeypatch):
    clock = Clock(monkeypatch)
    with tc.Session(range(1000), BUDGET, 0.1, ledger="s.db", unit="patients") as session:
        for _ in range(3):
            hit = session.ask(counting())
            clock.wait(60)
        for _ in range(40):
            session.test(say(False, "never"))
        release = session.release(say(7, "kept"), when=lambda _: False)
        release.revise(lambda _: True)
        odometer = session.meter.odometer()
    page = reported("s.db")
    assert page.tiles() == {"answers": 45, "hits": 4, "free answers": 41, "spent in vain": 0}
    assert (
        page.text("h1")
        == "Everything published through this ledger is (3, 10⁻⁶)-differentially private for patients"
    )
    assert "e3 ≈ 20.09 times as high" in page.text("header")
    heads, *rows = page.rows("asked")
    assert heads[:4] == ["Question", "Costs when", "Asked", "Hits"]
    assert rows == [
        ["1count(*) >= 500", "a value is published", "3", "3", "1 hit", "10", "± 30"],
        ["2never", "it is not “no”", "40", "–", "–", "–", "–"],
        ["3kept", "it is released", "2", "1", "1 hit", "–", "–"],
    ]
    heads, *hits = page.rows("asked", 1)
    low, high = hit.interval
    assert heads == ["No.", "Question", "Outcome", "95% interval", "Received (UTC)"]
    assert hits[2] == ["3", "1", f"{hit.outcome:,}", f"{low:,} to {high:,}", "2023-11-14 22:15:20"]
    assert [row[0] for row in hits] == ["1", "2", "3", "45"]
    meter = page.section("meter")
    assert "".join(meter.parts).count("4 hits used") == 2  # in the picture's description, and below it
    assert f"ε = {math.ceil(1000 * odometer.epsilon) / 1000:.3f} at δ = 10⁻⁶" in "".join(meter.parts)


def test_accountings_are_computed_for_the_terms_and_the_answers():
    with tc.Session([], BUDGET, 0.1, ledger="s.db") as session:
        for _ in range(300):
            session.test(say(False))
        session.test(say(True))
    result = {row[0].split(" ")[0].removesuffix("this"): row[1:] for row in reported("s.db").rows("compared")[1:]}
    exact = tc.accounting.exact_epsilon(0.1, 7, 1e-6)
    renyi = tc.accounting.renyi_epsilon(tc.NotPrior(prior=False), 0.1, 7, 1e-6)
    paper = min(tc.accounting.paper_epsilon(0.1, 7, 1e-6, tail=tail) for tail in ("simple", "raw", "exact"))
    plain = tc.accounting.optimal_epsilon(0.1, 301, 1e-6)
    plan = tc.plan(BUDGET, query_epsilon=0.1)
    expected = {
        "exact": ("7 hits", exact, "7 hits"),
        "RényiOne": ("7 hits", renyi, f"{plan['Rényi'].hits} hits"),
        "the": ("7 hits", paper, f"{plan['paper, exact tail'].hits} hits"),
        "plain": ("301 answers", plain, f"{plan['optimal composition'].hits} answers"),
    }
    assert result.keys() == expected.keys()
    for name, (count, epsilon, buys) in expected.items():
        assert (result[name][0], result[name][3]) == (count, buys), name
        assert 0 <= float(result[name][1]) - epsilon <= 0.0100001, name
    assert "Paying only for hits made 300 answers free" in reported("s.db").told("compared")


def test_where_paying_for_each_answer_is_cheaper_the_page_says_so():
    with tc.Session([], BUDGET, 0.1, ledger="s.db") as session:
        session.test(say(True))
    told = reported("s.db").told("compared")
    covered = tc.plan(BUDGET, query_epsilon=0.1)["optimal composition"].hits
    assert f"paying for each of them would have been cheaper, and will be up to {covered} answers" in told


def test_what_the_noise_means_is_the_law_of_discrete_laplace():
    with tc.Session(range(10), BUDGET, 0.1, ledger="s.db") as session:
        session.ask(counting())
    page = reported("s.db")
    p = math.exp(-0.1)
    weights = {k: p ** abs(k) * (1 - p) / (1 + p) for k in range(-3000, 3001)}  # summed, not by a formula
    for distance, below, above in page.rows("noise")[1:]:
        far = int(distance)
        alarm = sum(weight for k, weight in weights.items() if k >= far)
        missed = sum(weight for k, weight in weights.items() if k < -far)
        for told, true in ((below, alarm), (above, missed)):
            value = float(told.rstrip("%")) / 100 if "%" in told else 1 / float(told.split()[-1].replace(",", ""))
            assert value == pytest.approx(true, rel=0.05), (distance, told)
    inside = sum(weight for k, weight in weights.items() if abs(k) <= 30)
    assert 0.95 <= inside < 0.95 + 2 * weights[30]
    assert "the noise is within ± 30 in 95% of draws" in page.told("noise")
    assert page.rows("asked")[1][-1] == "a miss: up to 529"


@pytest.mark.usefixtures("folder")
def test_a_table_with_many_keys():
    with tc.open("visits.parquet", "patient", BUDGET, query_epsilon=0.1, meter="exact") as table:
        for _ in range(2):
            table.watch(None, by="county", keys=["Kent", "Devon", "Rutland"], threshold=9000, again=True)
    page = reported("visits.parquet")  # the table's name will do
    assert page.tiles()["answers"] == 6
    assert page.rows("asked")[1][:4] == ["1count(*) by county >= 9000", "a value is published", "6 3 keys", "4"]
    assert [row[2] for row in page.rows("asked", 1)[1:]] == ["Kent", "Devon"] * 2
    assert page.text("h1").endswith("for units of patient")
    assert "A unit is all rows with the same patient." in page.text("header")


def test_on_a_phone_every_cell_of_a_hit_has_its_place():
    table = tc.open(
        pd.DataFrame({"id": range(900), "kind": ["a", "b", "c"] * 300}), "id", tc.Budget(3.0, 1e-6), ledger="p.db"
    )
    with table:
        table.watch(None, "kind", ["a", "b"], 100)
    page = reported("p.db")
    (hits,) = page.within(page.section("asked"), "table", class_="compact")
    cells = {cell.attributes["class"] for cell in page.within(hits, "td")}
    assert cells == {"question-number", "key", "outcome", "interval", "received"}
    narrow = page.text("style").partition("max-width")[2]
    assert [cell for cell in cells if f".compact .{cell}" not in narrow] == []
    assert re.search(r"deviation of [\d.]+, and δ", page.told("compared"))


@pytest.mark.usefixtures("folder")
def test_a_renyi_meter_with_several_kinds_of_question():
    with tc.open("visits.parquet", tc.ROW, BUDGET, query_epsilon=0.1, meter="renyi", ledger="r.db") as table:
        band = table.between("age > 60", low=19_000, high=21_000)
        table.side("age > 60", threshold=100)
        total = table.sum_above("fare", 0, 5, 100, "age > 60")
        table.sum_above("fare", 0, 5, 100_000, "age > 200")
        odometer, left = table.meter.odometer(), table.meter.hits_left
    page = reported("r.db")
    assert [row[4] for row in page.rows("asked")[1:]] == [f"{band.price:.4g}", "–", f"{total.price:.4g}", "–"]
    assert page.rows("asked", 1)[1][2:4] == ["between", f"{least(19_000, 'r.db'):,} to {most(21_001, 'r.db'):,}"]
    meter = page.told("meter")
    assert f"left: {left} hit" in meter
    assert f"ε = {math.ceil(1000 * odometer.epsilon) / 1000:.3f}" in meter
    assert "Every row is a unit of its own." in page.text("header")
    assert "with any one row in the data as without" in page.text("header")
    assert len(page.within(page.section("noise"), "table")) == 2
    scale = noise("r.db", sensitivity=5_000_000).scale / 1e6  # a sum on a grid: 3.0 scales
    assert f"± about {scale * math.log(20):.6g} " in page.told("noise")


def test_alternatives_have_a_meter_each():
    targets = [tc.NotPrior(prior=True), tc.Between(1, 21)]
    with tc.Session([], BUDGET, 0.1, ledger="a.db", alternatives=targets, meter="renyi") as session:
        session.ask(tc.mechanisms.between_thresholds(len, 1, 21, 0.1))
    with tc.Session(
        [], BUDGET, 0.1, ledger="e.db", alternatives=[targets[0], tc.NotPrior(prior=False)]
    ) as session:
        for _ in range(3):
            session.ask(say(True))
        odometer = session.meter.odometer()
    page = reported("a.db")
    assert len(page.within(page.section("meter"), "svg", role="img")) == 2
    assert "any outcome but True" in page.told("meter")
    meter = reported("e.db").told("meter")
    figures = re.findall(r"ε = (\d+\.\d+) at", meter)
    assert figures[0] == f"{math.ceil(1000 * odometer.epsilon) / 1000:.3f}"  # of the one with the most left
    assert float(figures[1]) > float(figures[0])


def test_an_empty_ledger():
    with tc.Session([], BUDGET, 0.1, ledger="s.db"):
        pass
    page = reported("s.db")
    assert set(page.tiles().values()) == {0}
    assert page.text("h1") == "Everything published through this ledger is (3, 10⁻⁶)-differentially private"
    assert "What one unit is, the ledger does not say" in page.text("header")
    assert len(page.all("section")) == 6
    assert page.facts()["last entry"] == "0"


def test_individual_charging_tells_no_hits_left(here):
    terms = SHARED.__class__(**{**SHARED.__dict__, "charging": "individual"})
    hits = [
        Answer(900 + n, True, 1.0, n, "count(*) >= 50", (("NotPrior", None),), 0.1, grains=(1,), question=COUNT)
        for n in range(1, 31)
    ]
    page = reported(write(here / "i.db", terms, hits))
    numbers = sum(answer.outcome for answer in hits)
    bound = re.search(r"are of the units that still take part; at most ([0-9,]+) no longer do", page.told("meter"))
    assert 1 < int(bound[1].replace(",", "")) * 7 / numbers < 1.02
    assert "Every number is of the units that still take part, at the time of its answer." in page.told("asked")
    assert page.tiles()["hits"] == 30  # more than any unit's capacity
    meter = page.told("meter")
    assert "Every unit has a meter of its own, with room for 7 hits." in meter
    assert "as secret as the data" in meter
    assert " left" not in meter.replace("left out", "")
    assert page.within(page.section("meter"), "svg") == []
    rows = {row[0][:20]: row for row in page.rows("compared")[1:]}
    shared = rows["exact, one budget fo"]
    assert shared[1] == "30 hits"
    assert 0 <= float(shared[2]) - tc.accounting.exact_epsilon(0.1, 30, 1e-6) < 0.002
    order = terms.order
    price = -(order - 1) * 0.1 - math.log(1 + math.exp(0.1) - math.exp(0.1 * order))
    figure = (7 * price + math.log(1e6)) / (order - 1)  # no unit pays for more than its 7
    assert f"ε = {math.ceil(1000 * figure) / 1000:.3f} at δ = 10⁻⁶" in meter
    assert page.facts()["charging"] == "individual"


def test_new_snapshots_are_marked_on_the_time_line(here):
    entries = [
        Answer(None, False, 0.0, n, "q", (("NotPrior", None),), 0.1, received=1e9 + 3600 * n, snapshot=1 + n // 4)
        for n in range(1, 12)
    ]
    page = reported(write(here / "s.db", SHARED, entries))
    assert len(page.all("line", class_="snapshot")) == 2
    assert "3 snapshots" in page.told("timeline")
    assert {"data 2", "data 3"} <= {"".join(each.parts) for each in page.all("text")}
    page = reported(write(here / "one.db", SHARED, entries[:3]))
    assert "snapshot" not in page.told("timeline")


def test_the_time_line_is_by_number_where_all_was_asked_at_once(here):
    page = reported(write(here / "s.db", SHARED, [batch(range(1, 51), 600, 1, received=1e9)]))
    when = page.section("timeline")
    assert [("".join(each.parts)) for each in page.within(when, "text")][-5:] == [
        "no. 50",
        "no. 38",
        "no. 26",
        "no. 13",
        "no. 1",
    ]
    assert "All within a minute, on 2001-09-09 01:46:40 UTC" in "".join(when.parts)
    assert "1 of 7 hits charged" in page.text("figcaption")


def test_what_was_spent_in_vain_is_told(here):
    hit = Answer(1, True, 1.0, 1, "q", (("NotPrior", None),), 0.1, received=1e9, grains=(1,))
    lost = [Spent("failed", (1,), 1, "q"), Spent("abandoned", (3,), 3), Restored(3)]
    page = reported(write(here / "s.db", SHARED, [hit, *lost]))
    assert page.tiles()["spent in vain"] == 2
    assert "failed or abandoned reservations, 4 hits" in page.text("header")
    assert page.facts()["spent in vain"] == "1 failed, 1 hit; 1 abandoned, 3 hits"
    assert "Its owner vouched for a restored copy" in page.text("p", class_="status good")
    assert "at entry 3 the owner vouched" in page.facts()["restored"]
    assert "5 of 7 hits charged" in page.text("figcaption")


def test_the_computations_delta():
    with tc.Session([], tc.Budget(3.0, 2e-6), 0.1, ledger="s.db", computation_delta=1e-6) as session:
        session.test(say(False, delta=1e-9))
    assert "10⁻⁹ of 10⁻⁶ spent" in reported("s.db").told("meter")


def test_a_pending_outcome_is_not_even_read(monkeypatch):
    with tc.Session([], BUDGET, 0.1, ledger="s.db") as session:
        session.release(say(424242, "kept"), when=lambda _: False)
    with sqlite3.connect("s.db") as database:
        ((body,),) = database.execute("SELECT body FROM pending").fetchall()
    database.close()
    assert "424242" in body
    monkeypatch.setattr("targetcharge.ledger.entries.Pending.of", None)
    monkeypatch.setattr("targetcharge.ledger.sqlite.database.Database.pending_outcome", None)
    page = reported("s.db")
    assert "424242" not in page.source
    assert page.facts()["releases pending"] == "1"


def test_what_an_open_session_holds_back():
    with tc.Session([], BUDGET, 0.1, ledger="s.db") as session:
        session.test(say(False))
        page = reported("s.db")
    assert "1 hit held back by open sessions" in page.told("meter")
    assert page.facts()["held back by open sessions"] == "1 hit"


@pytest.mark.parametrize(
    ("meter", "targets", "rows"),
    [
        ("exact", [tc.NotPrior(prior=0), tc.Between(90, 110)], ["exact", "Rényi", "the paper’s", "plain"]),
        ("exact", [tc.Disagreement()], ["exact", "Rényi", "the paper’s", "plain"]),
        ("exact", [tc.QTarget(0.4, frozenset([True]))], ["exact", "Rényi", "the paper’s", "plain"]),
        ("renyi", [tc.Between(90, 110, sensitivity=2)], ["exact", "Rényi", "the paper’s", "plain"]),
        ("renyi", [tc.Boundary()], ["Rényi", "the paper’s", "plain"]),
        ("exact", [tc.Everything()], ["exact", "Rényi", "plain"]),
    ],
)
def test_every_declared_target_has_its_accountings(meter, targets, rows):
    with tc.Session(range(10), tc.Budget(4.0, 1e-6), 0.1, ledger="s.db", meter=meter, targets=targets) as session:
        if isinstance(targets[0], tc.Everything):
            session.ask(say(True), tc.Everything())
        left = session.meter.hits_left
        odometer = session.meter.odometer()
    page = reported("s.db")
    result = page.rows("compared")[1:]
    asked = rows if page.tiles()["answers"] else rows[:-1]
    assert all(row[0].startswith(name) for row, name in zip(result, asked, strict=True))
    own = next(row for row in result if "this ledger" in row[0])
    assert own[4] == f"{left + page.tiles()['hits']} hits"
    assert float(own[2]) <= 4.001  # rounded up; what the ledger's own accounting needs is in the budget
    assert f"ε = {math.ceil(1000 * odometer.epsilon) / 1000:.3f} at" in page.told("meter")


def test_run_twice_counts_twice_in_plain_composition():
    targets = [tc.Disagreement()]
    with tc.Session([], tc.Budget(4.0, 1e-6), 0.1, ledger="s.db", targets=targets) as session:
        for _ in range(50):
            session.ask(tc.twice(say(7)), tc.Disagreement())
    (plain,) = (row for row in reported("s.db").rows("compared") if row[0].startswith("plain"))
    assert plain[1] == "50 answers"
    assert 0 <= float(plain[2]) - tc.accounting.optimal_epsilon(0.2, 50, 1e-6) <= 0.0010001


def test_different_epsilons_compose_by_concentrated_dp():
    with tc.Session([], BUDGET, 0.1, ledger="s.db", meter="renyi") as session:
        for epsilon in [0.1] * 400 + [0.05] * 400:
            session.test(say(False, epsilon=epsilon))
    (plain,) = (row for row in reported("s.db").rows("compared") if row[0].startswith("plain"))
    squares = 400 * 0.1**2 + 400 * 0.05**2
    expected = squares / 2 + math.sqrt(2 * squares * math.log(1e6))
    assert plain[1] == "800 answers"
    assert 0 <= float(plain[2]) - expected <= 0.0100001


def test_gaussian_answers_compose_by_concentrated_dp_and_never_by_an_epsilon():
    """A histogram has Gaussian noise: a pair with shift μ over δ = 1e-6 by far at ε = μ."""
    frame = pd.DataFrame({"u": range(40), "kind": ["a", "b"] * 20})
    with tc.open(frame, "u", BUDGET, query_epsilon=0.1, meter="exact", ledger="s.db") as table:
        for _ in range(4):
            table.histogram(None, "kind", ["a", "b"], again=True)
        curve, first = table.transcript[-1].targets[0], table.meter.tariff.offset.offset_epsilon / 2
    assert curve[:3] == ("Everything", "gaussian", 1)
    rho = 4 / (2 * Fraction(curve[3]))
    expected = first + float(rho) + 2 * math.sqrt(rho * math.log(1e6))
    (plain,) = (row for row in reported("s.db").rows("compared") if row[0].startswith("plain"))
    assert plain[1] == "4 answers"
    assert 0 <= float(plain[2]) - expected <= 0.0010001
    assert expected > first + 4 * 0.1353  # where four answers, if each were 0.1353-DP, would be


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_sparse_ledger_is_compared_with_laplace_noise_of_the_same_deviation(delta):
    frame = pd.DataFrame({"u": range(400), "kind": ["a", "b"] * 200})
    with tc.open(frame, "u", tc.Budget(1.0, delta), hits=5, ledger="s.db") as table:
        table.watch(None, "kind", list(map(str, range(50))), 390)
        deviation = table.meter.standard_deviation
    page = reported("s.db")
    rate = 2 * math.asinh(1 / (math.sqrt(2) * deviation))
    variance = sum(k * k * DiscreteLaplace(rate).mass(k) for k in range(-2_000, 2_000))
    assert math.sqrt(variance) == pytest.approx(deviation, rel=1e-9)
    ours, *others, plain = page.rows("compared")[1:]
    assert (ours[0][:6], ours[1], float(ours[2]), ours[4]) == ("sparse", "5 hits", 1.0, "5 hits")
    assert [row[0][:5] for row in others] == (["exact", "Rényi", "the p"] if delta else [])
    if delta:
        assert 0 <= float(others[0][2]) - tc.accounting.exact_epsilon(rate, 5, delta) <= 0.0010001
    assert plain[1] == "50 answers"
    assert 0 <= float(plain[2]) - tc.accounting.optimal_epsilon(rate, 50, delta) <= 0.0100001


def test_a_pick_and_its_number_are_two_computations_in_plain_composition():
    frame = pd.DataFrame({"u": range(40), "kind": ["a", "b"] * 20, "fee": [-1.0, 2.0] * 20})
    with tc.open(frame, "u", BUDGET, query_epsilon=0.1, meter="exact", ledger="s.db") as table:
        table.top(tc.questions.sum("fee", -50, 50), "kind", ["a", "b"], 2)
        picked, counted = table.transcript[-1].targets
        first = table.meter.tariff.offset.offset_epsilon / 2
    assert (picked[:2], counted[:2]) == (("Everything", "bounded range"), ("Everything", "gaussian"))
    rho = 2 * (picked[2] ** 2 / 8 + counted[2] / (2 * Fraction(counted[3])))
    (plain,) = (row for row in reported("s.db").rows("compared") if row[0].startswith("plain"))
    assert plain[1] == "2 answers"
    assert 0 <= float(plain[2]) - first - float(rho) - 2 * math.sqrt(rho * math.log(1e6)) <= 0.0010001


def test_terms_of_a_later_version_are_shown_without_figures(here):
    terms = SHARED.__class__(**{**SHARED.__dict__, "targets": (("SomethingNew",),)})
    page = reported(write(here / "s.db", terms, []))
    assert "the declared targets are not known" in page.told("compared")
    assert "does not know the declared targets" in page.told("meter")


def test_many_scales_and_sketches_are_noted(here):
    question = '{"what":{"distinct":"c","per_unit":1,"where":null},"above":5}'
    entries = [
        Answer(None, False, 0.0, n, f"q{n}", (("NotPrior", None),), 0.1, scale=float(n), question=question)
        for n in range(1, 10)
    ]
    told = reported(write(here / "s.db", SHARED, entries)).told("noise")
    assert "3 more scales, of 3 answers, not shown." in told
    assert "estimated by a sketch" in told
