"""What tables, answers and previews look like: everything in it is public, and nothing of it is markup."""

from __future__ import annotations

import copy
import pickle
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from tests.tables.people import opened, table

import targetcharge as tc
from targetcharge.tables import questions as q

SCRIPT = "<script>alert('x')</script>&<b>\""
WHERE = f"kind = '{SCRIPT.replace(chr(39), chr(39) * 2)}'"
TAGS = {"table", "thead", "tbody", "tr", "th", "td", "caption"}


class Reader(HTMLParser):
    """Notes the tags of a page, their attributes, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.open = set(), "", []

    def handle_starttag(self, tag, attrs):
        self.tags.add((tag, tuple(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(shown):
    """Return the text of what a notebook shows; check that it is a plain table."""
    reader = Reader()
    reader.feed(shown._repr_html_())
    reader.close()
    assert {tag for tag, _ in reader.tags} <= TAGS
    assert all(not attributes for _, attributes in reader.tags)
    assert reader.open == []
    return reader.text


@pytest.fixture
def t():
    """Open a table with a column that is called like markup, and a kind that is some."""
    kinds = [SCRIPT if place % 3 else "b" for place in range(9000) for _ in range(2)]
    made = table(kind=pa.array(kinds), **{SCRIPT: pa.array([1] * 18_000)})
    with opened(made) as found:
        yield found


def test_answers_are_no_markup(t):
    hit, miss = t.above(WHERE, 3000), t.above(WHERE, 9000)
    assert hit.hit
    for answer in (hit, miss):
        assert SCRIPT.replace("'", "''") in read(answer)
    for answers in (
        t.watch(WHERE, "kind", [SCRIPT, "b"], 3000),
        t.ask_many([q.above(WHERE, 3000), q.count(None)]),
    ):
        text = read(answers)
        assert answers.hits
        assert "script" in text
        assert "2 answers" in text
    by_two = t.watch(None, ["kind", SCRIPT], [(SCRIPT, 1), ("b", 1)], 5000)
    assert SCRIPT in read(by_two)


def test_descriptions_previews_and_meters_are_no_markup(t):
    assert SCRIPT in read(t.describe())
    assert SCRIPT.replace("'", "''") in read(t.preview(q.above(WHERE, 3000)))
    assert SCRIPT in read(t.preview(q.watch(None, SCRIPT, [1, 2], 3000)))
    assert "left" in read(t.meter)


def test_the_end_of_a_budget_is_shown_without_markup():
    with opened(hits=1) as t:
        answers = t.watch(None, "kind", ["a", SCRIPT], 3000)
        assert answers.unanswered == (SCRIPT,)
        assert "does not cover it" in read(answers)


def test_a_long_list_of_hits_is_shown_in_part():
    with opened(hits=70) as t:
        answers = t.watch(None, "doctor", range(60), -3000)
        assert len(answers.hits) == 60
        assert "10 of them not shown" in read(answers)


def test_a_description_is_from_the_schema_and_what_was_declared():
    texts = []
    for made in (table(), table(0), table(3)):
        with opened(made, hits=5) as t:
            found = t.describe()
            texts.append((str(found), repr(found), found._repr_html_(), repr(found.as_dict())))
            assert found.as_dict()["columns"]["fee"] == "number"
            assert found.as_dict()["unit"] == {"kind": "column", "name": "patient"}
            assert dict(found.columns)["old"] == "boolean"
    assert texts[0] == texts[1] == texts[2]
    assert "sum_above(column, lower, upper, threshold, where)" in texts[0][0]
    with opened(unit=tc.ROW, meter="renyi") as t:
        assert (str(t.describe().unit), t.describe().meter) == ("rows", "renyi")


def test_a_table_shows_its_unit_and_its_budget_only():
    with opened(budget=tc.Budget(3.0, 1e-6)) as t:
        assert repr(t) == "<table of units of patient, budget (3, 1e-06)>"
        assert tc.ROW.__repr__() == "ROW"


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_a_table_cannot_be_pickled_or_copied(how):
    with opened() as t, pytest.raises(tc.NotAllowed, match="open it again"):
        how(t)


def test_answers_can_be_pickled():
    with opened() as t:
        answers = t.watch(None, "kind", ["a", "c"], 3000)
        again = pickle.loads(pickle.dumps(answers))  # noqa: S301 - our own
        assert list(again) == list(answers)
        assert again.columns() == answers.columns()


def test_a_table_that_is_closed_twice_is_closed():
    t = opened()
    t.close()
    t.close()
    with pytest.raises(tc.NotAllowed, match="closed"):
        t.count()
    assert "patient" in repr(t)
    assert str(t.describe().unit) == "units of patient"


# In a line, and in frames.


def test_an_answer_is_printed_in_a_line():
    with opened() as t:
        hit, miss, paid = t.above("kind = 'a'", 3000), t.above("kind = 'a'", 9000), t.count()
        release = t.release(None, 1_000_000)
        lines = [str(answer) for answer in (hit, miss, paid, release)]
        low, high = hit.interval
        assert lines[0] == (
            f"count(kind = 'a') >= 3000: {hit.outcome:,} (95% interval: {low:,} to {high:,}), a hit, which costs 1"
        )
        assert lines[1].startswith("count(kind = 'a') >= 9000: below the threshold (95% interval: up to")
        assert lines[1].endswith("free")
        assert lines[3] == f"release {release.seq}, count(*): not published yet, free"
        published = str(release.revise(1000))
        assert published.startswith(f"release {release.seq}, count(*): ")
        assert published.endswith(", a hit, which costs 1")
        assert "95% interval" in published


def test_answers_are_printed_in_a_line_with_their_first_hits():
    with opened(hits=7) as t:
        watched = t.watch(None, "kind", ["a", "c", "b"], 2000)
        values = [answer.outcome for answer in watched.hits]
        assert str(watched) == (
            f"count(*) by kind >= 2000: 3 answers, 2 hits (a {values[0]:,}; b {values[1]:,}), price 2"
        )
        assert repr(watched) == "<3 answers, 2 hits>"
        assert str(t.watch(None, "kind", ["c"], 2000)) == "count(*) by kind >= 2000: 1 answer, 0 hits, free"
        many = str(t.histogram(None, "doctor", range(5)))
        assert many.startswith("histogram of count(*) by doctor: 5 answers, 1 hit (0 ")
        assert many.endswith(" and 2 more), price 1")
        spent = str(t.watch(None, "doctor", range(9), -3000))
        assert "; 5 not answered: " in spent
        assert "\n" not in spent


def test_picks_and_marks_are_said_in_words():
    with opened(meter="renyi") as t:
        best = t.top(None, "kind", ["a", "b"], 1, values=False)
        assert "a picked" in str(best)
        assert "picked" in read(best)
        side, same = t.side("kind = 'a'", 3000), t.count("kind = 'a'", prior=6000, tolerance=1000)
        assert str(side).startswith("count(kind = 'a') side of 3000: above")
        assert str(same).startswith("count(kind = 'a'): unchanged from 6,000")
        assert "unchanged from 6,000" in read(same)


def test_a_table_shows_what_may_be_asked_and_what_is_left_of_its_budget(t):
    t.count()
    text = read(t)
    assert "1 used" in text
    assert "sum_above(column, lower, upper, threshold, where)" in text
    assert SCRIPT in text


def test_a_transcript_is_shown_without_markup_and_in_part(t):
    t.above(WHERE, 3000)
    assert SCRIPT.replace("'", "''") in read(t.transcript)
    assert repr(t.transcript) == "<transcript, 1 answer>"
    t.watch(None, "doctor", range(60), 5000)
    text = read(t.transcript)
    assert "61 answers, the last 50 of them shown" in text
    assert SCRIPT.replace("'", "''") not in text


def test_a_transcript_is_a_frame_of_fixed_types():
    with opened(meter="renyi") as t:
        empty = t.transcript.to_pandas()
        t.side("kind = 'a'", 3000)
        t.watch(None, ["kind", "old"], [("a", True), ("c", True)], 2000)
        frame = t.transcript.to_pandas()
        assert dict(empty.dtypes) == dict(frame.dtypes)
        answers = list(t.transcript)
        assert list(frame["seq"]) == [1, 2, 3]
        assert list(frame["text"].fillna("")) == ["above", "", ""]
        assert list(frame["key"].fillna("")) == ["", "a · True", "c · True"]
        assert list(frame["outcome"].fillna(-1)) == [-1, answers[1].outcome, -1]
        assert list(frame["price"]) == [answer.price for answer in answers]
        assert abs(frame["received"][0].timestamp() - answers[0].received) < 1e-5


def test_a_line_says_once_whose_numbers_they_are():
    with opened(charging="individual", hits=3) as t:
        line = str(t.watch(None, "kind", ["a", "b"], 2000))
        assert line.count("of the units that still take part") == 1
        many = t.ask_many([q.above("kind = 'a'", 3000), q.above("kind = 'b'", 2000)])
        assert "of the units that still take part" in str(many)
