"""Errors come through a pickle, as between processes, with class, sentence and values."""

import copy
import pickle

import pytest

import targetcharge as tc
from targetcharge.errors import ComputationFailed, EngineError, InvalidKey, Setting, TooLarge

ERRORS = [
    tc.InvalidParameter("epsilon", -1.0, "above 0"),
    tc.InvalidQuestion("where", "age >", 5, "something is missing"),
    InvalidKey(2, "a", "another", same_as=1),
    TooLarge("hits", 10**9, "smaller"),
    tc.BudgetSpent("nothing is left", asked=2.0, left=1.5),
    tc.NotAllowed("open it with ", Setting("new_data", True), "; else not"),
    ComputationFailed(),
    tc.LedgerError("it cannot be read"),
    EngineError("it cannot be opened"),
    tc.BudgetWarning("go on with ", Setting("ledger", "first.db")),
]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301 - made here
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_a_pickle_or_a_copy(error, again):
    other = again(error)
    assert (type(other), str(other), other.args, vars(other)) == (type(error), str(error), error.args, vars(error))
