"""What was seen of a ledger, over many processes that were killed, compared with what the ledger says."""

from collections import Counter

from tests.ledger.asking import hits, spent


class Client:
    """Remembers every message of `children.asks_until_killed`."""

    def __init__(self):
        self.hits, self.kept, self.published, self.seqs = {}, {}, {}, []

    def sees(self, kind, *facts):
        if kind == "answer":
            seq, hit, outcome = facts
            self.seqs.append(seq)
            if hit:
                self.hits[seq] = outcome
        elif kind == "kept":
            self.kept[facts[0]] = facts[1]
        elif kind == "published":
            self.published[facts[0]] = facts[1]

    def lost(self, session):
        """Return what was seen and is not in the ledger."""
        found = {answer.seq: answer.outcome for answer in hits(session)}
        released = {answer.release: answer.outcome for answer in hits(session) if answer.release}
        waiting = {release.seq for release in session.pending}
        return [
            *(f"hit {seq} is not charged" for seq, _ in self.hits.items() - found.items()),
            *(f"release {seq} is not charged" for seq, _ in self.published.items() - released.items()),
            *(f"pending release {seq} is gone" for seq in self.kept.keys() - waiting - released.keys()),
        ]

    def wrong(self, session):
        """Return what contradicts itself: numbers given twice, outcomes drawn again, sums that do not add up."""
        charged = len(hits(session)) + sum(entry.count for entry in spent(session))
        numbers = Counter(answer.seq for answer in session.transcript)
        again = [seq for seq, outcome in self.published.items() if self.kept.get(seq, outcome) != outcome]
        return [
            *(f"number {seq} is there {count} times" for seq, count in numbers.items() if count > 1),
            *(f"number {seq} was given {count} times" for seq, count in Counter(self.seqs).items() if count > 1),
            *(f"the outcome of release {seq} was drawn again" for seq in again),
            *([f"{session.meter.hits} hits are charged, not {charged}"] if session.meter.hits != charged else []),
        ]

    def unseen(self, session):
        """Return how many hits nobody saw, and how many were spent with the processes that held them."""
        abandoned = sum(entry.count for entry in spent(session) if entry.why == "abandoned")
        return len(hits(session)) - len(self.hits) - len(self.published), abandoned
