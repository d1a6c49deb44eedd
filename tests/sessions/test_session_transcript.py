"""The transcript: all that was published, in order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, budget_of, gives, opened

import targetcharge as tc


@pytest.fixture(params=["memory", "file"])
def session(request, tmp_path):
    with opened(9, ledger=":memory:" if request.param == "memory" else tmp_path / "ledger.db") as found:
        yield found


def test_answers_stand_in_the_order_of_their_publication(session):
    asked = [session.test(gives(outcome)) for outcome in (False, True, False, True, False)]
    assert list(session.transcript) == asked
    assert len(session.transcript) == 5
    assert [answer.seq for answer in asked] == sorted({answer.seq for answer in asked})
    assert all(first.received <= second.received for first, second in pairwise(asked))


def test_an_entry_says_what_was_asked(session):
    session.ask_prior(gives("yes", name="is it so?", epsilon=0.05), "no")
    (answer,) = session.transcript
    told = (answer.algorithm, answer.targets, answer.epsilon, answer.delta, answer.grains)
    assert told == ("is it so?", (("NotPrior", "no"),), 0.05, 0.0, (1,))


def test_releases_and_selections_say_to_what_they_belong(session):
    release = session.release(gives(5), set())
    session.select([gives(1), gives(2), gives(3)], k=2)
    release.revise({5})
    assert [(answer.call, answer.outcome, answer.candidate, answer.release) for answer in session.transcript] == [
        ("release", None, None, release.seq),
        ("select", 3, 2, None),
        ("select", 2, 1, None),
        ("revise", 5, None, release.seq),
    ]


def test_indices_and_slices_work_as_those_of_a_list(session):
    for outcome in (False, True, False, True):
        session.test(gives(outcome))
    whole = list(session.transcript)
    transcript = session.transcript
    assert [transcript[index] for index in (0, 3, -1, -4, np.int64(2))] == [whole[i] for i in (0, 3, -1, -4, 2)]
    for part in (slice(1, 3), slice(None), slice(-2, None), slice(None, None, -1), slice(9, 12)):
        assert transcript[part] == whole[part]
    assert transcript.last(2) == whole[-2:]
    assert transcript.last(0) == []
    assert transcript.last(99) == whole
    for index in (4, -5):
        with pytest.raises(IndexError, match=f"no answer {index}"):
            transcript[index]
    with pytest.raises(TypeError):
        transcript["first"]


def test_a_transcript_shows_what_is_published_after_it_was_taken(session):
    transcript = session.transcript
    assert len(transcript) == 0
    answer = session.test(gives(True))
    assert list(transcript) == [answer]


def test_an_iterator_shows_each_answer_once_whatever_is_published_meanwhile(session):
    before = [session.test(gives(False)) for _ in range(3)]
    iterator = iter(session.transcript)
    session.test(gives(True))
    session.test(gives(False))
    assert list(iterator) == before


def test_failures_and_refusals_are_not_answers(session):
    with pytest.raises(tc.ComputationFailed):
        session.test(gives(ValueError()))
    with pytest.raises(tc.NotAllowed):
        session.test(gives(True, epsilon=1.0))
    assert list(session.transcript) == []


def test_a_bounded_transcript_forgets_the_oldest_and_the_meter_nothing():
    session = opened(9, transcript=3)
    asked = [session.test(gives(bool(number % 2))) for number in range(8)]
    assert list(session.transcript) == asked[-3:]
    assert session.transcript[-1] == asked[-1]
    assert session.meter.hits == 4
    with pytest.raises(IndexError):
        session.transcript[3]


def test_a_bounded_transcript_does_not_forget_what_is_pending():
    session = opened(9, transcript=1)
    release = session.release(gives(7), set())
    for _ in range(5):
        session.test(gives(False))
    assert release.revise({7}).outcome == 7


def test_the_transcript_goes_on_after_a_restart(tmp_path):
    def start():
        return tc.Session(None, budget_of(9), EPSILON, ledger=tmp_path / "ledger.db")

    outcomes = [None, True, -3, 2.5, "text", b"bytes", tc.Side.ABOVE, (1, (2.0, None)), float("inf")]
    with start() as session:
        first = [session.ask(gives(outcome), tc.Everything()) for outcome in outcomes[:5]]
    with start() as session:
        second = [session.ask(gives(outcome), tc.Everything()) for outcome in outcomes[5:]]
        assert list(session.transcript) == first + second
    with start() as session:
        found = [answer.outcome for answer in session.transcript]
        assert [(type(each), each) for each in found] == [(type(each), each) for each in outcomes]
        assert session.transcript[-1] == second[-1]


def test_a_closed_file_cannot_be_read_and_says_so(tmp_path):
    session = opened(ledger=tmp_path / "ledger.db")
    session.test(gives(True))
    transcript = session.transcript
    session.close()
    with pytest.raises(tc.NotAllowed, match="this session is closed"):
        list(transcript)
