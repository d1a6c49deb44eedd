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
        assert "2 answered" in text
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
