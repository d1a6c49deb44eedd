"""Answers to questions of a table, as a session hands them to a ledger."""

from targetcharge.ledger import Answer, BatchEntry, QuestionId, Settlement


def asked(name="old", **more):
    return QuestionId(f'{{"what":"{name}"}}', 0.1, **{"snapshot": 1, **more})


def answer_to(ledger, asked, hit=True, **more):
    fields = {"question": asked.question, "epsilon": asked.epsilon, "prior": asked.prior}
    facts = {**fields, "snapshot": asked.snapshot, "grains": (int(hit),), "received": 5.0, **more}
    return Answer(facts.pop("outcome", 57), hit, float(hit), ledger.next_seq(), **facts)


def publish(ledger, most, *make):
    """Let a call publish what these make, once it is reserved; return that."""
    ledger.reserve(most)
    entries = [one() for one in make]
    ledger.settle(Settlement(entries))
    ledger.end_call()
    return entries


def batch_of(ledger, asked, keys, hits):
    """A batch entry: the outcome of a hit is 10 times its place."""
    seq = ledger.next_seq(len(keys))
    fields = {"question": asked.question, "epsilon": asked.epsilon, "snapshot": asked.snapshot}
    first = Answer(None, True, 1.0, seq, key=keys[0], grains=(1,), received=6.0, **fields)
    outcomes = tuple(10 * place if place in hits else None for place in range(len(keys)))
    return BatchEntry(first, outcomes, bytes(range(len(keys))), tuple(hits), tuple(keys))
