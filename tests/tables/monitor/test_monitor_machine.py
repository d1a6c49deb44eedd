"""A monitor against a model without noise: looks, crashes on the way, new objects, rows that do not fit."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.sizes import size
from tests.tables.monitor.days import breaking, day, opened, people

import targetcharge as tc
from targetcharge.tables.monitor import Monitor, Rule

RULES = [
    Rule("crossing", threshold=550, margin=200),
    Rule("both", threshold=550, margin=200, tolerance=250),
    Rule("keys", threshold=550, margin=200, by="kind", keys=["b", "a", "c"]),  # all are of kind a
    Rule("anew", threshold=750, anew=True),
    Rule("moving", tolerance=150),
    Rule("so far", threshold=3050, so_far=True),
]
NUMBERS = len(RULES) + 2
HUNDREDS = st.integers(0, 12).map(lambda number: 100 * number)  # 50 scales of the noise from every threshold


class Model:
    """What fires if there is no noise. A value that was published stands for itself."""

    def __init__(self):
        self.high = dict.fromkeys(("crossing", "both", "keys", "so far"), False)
        self.value = dict.fromkeys(("both", "moving"))
        self.total = 0

    def look(self, many):
        self.total += many
        fired = [
            ("crossing", self._crossed("crossing", many, 550, 350)),
            ("both", self._crossed("both", many, 550, 350) or self._moved("both", many, 250)),
            ("keys", self._crossed("keys", many, 550, 350)),
            ("anew", "rose" if many >= 750 else None),
            ("moving", self._moved("moving", many, 150)),
            ("so far", self._crossed("so far", self.total, 3050, 3046)),
        ]
        if fired[1][1] is not None:
            self.value["both"] = many
        return [(name, kind) for name, kind in fired if kind is not None]

    def _crossed(self, name, many, threshold, floor):
        if self.high[name] and many < floor:
            self.high[name] = False
            return "fell"
        if not self.high[name] and many >= threshold:
            self.high[name] = True
            return "rose"
        return None

    def _moved(self, name, many, tolerance):
        before = self.value[name]
        if name == "both" and not self.high[name]:
            return None
        if before is not None and abs(many - before) <= tolerance:
            return None
        self.value[name] = many
        return "first" if before is None else "moved"


class Monitoring(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        ledger = Path(self.folder.name) / "ledger.db"  # where misses wait to be written
        self.table = opened(budget=tc.Budget(2000.0, 1e-6), ledger=ledger)
        self.monitor = Monitor(self.table, RULES, day="day")
        self.model = Model()
        self.day = -1
        self.fired = []

    def expected(self, many):
        fired = self.model.look(many)
        self.fired += [(day(self.day), *each) for each in fired]
        return fired

    def rows(self, many):
        return people(self.day, many, start=self.model.total)

    def check(self, look, fired):
        assert [(alert.rule, str(alert.kind)) for alert in look.alerts] == fired
        assert len(look.alerts) + len(look.quiet) == NUMBERS
        assert not look.unanswered
        assert not look.stopped

    @rule(many=HUNDREDS, days=st.integers(1, 3))
    def look(self, many, days):
        self.day += days
        self.check(self.monitor.look(day(self.day), self.rows(many)), self.expected(many))

    @rule(many=HUNDREDS, after=st.integers(0, 8), anew=st.booleans())
    def look_that_breaks(self, many, after, anew):
        self.day += 1
        asked = len(self.table.transcript)
        with breaking(self.table, after):
            try:
                self.monitor.look(day(self.day), self.rows(many))
            except tc.LedgerError:
                assert len(self.table.transcript) < asked + NUMBERS
            else:
                assert after > 0
        if anew:
            self.monitor = Monitor(self.table, RULES, day="day")
        self.check(self.monitor.look(day(self.day)), self.expected(many))
        assert len(self.table.transcript) == asked + NUMBERS

    @rule()
    def another_object(self):
        self.monitor = Monitor(self.table, RULES, day="day")

    @rule(many=HUNDREDS)
    def rows_that_do_not_fit(self, many):
        before = self.table.snapshot, len(self.table.transcript)
        with pytest.raises(tc.InvalidParameter):
            self.monitor.look(day(self.day + 1), self.rows(many).assign(another=1))
        assert (self.table.snapshot, len(self.table.transcript)) == before

    @rule(many=HUNDREDS, back=st.integers(1, 5))
    def backwards(self, many, back):
        before = self.table.snapshot, len(self.table.transcript)
        if self.monitor.last is not None:
            with pytest.raises(tc.InvalidParameter, match="or later"):
                self.monitor.look(day(self.day - back), self.rows(many))
        assert (self.table.snapshot, len(self.table.transcript)) == before

    @rule()
    def the_same_day_again(self):
        if self.monitor.last is not None:
            asked = len(self.table.transcript)
            again = self.monitor.look(day(self.day))
            fired = [each[1:] for each in self.fired if each[0] == day(self.day)]
            self.check(again, fired)
            assert len(self.table.transcript) == asked

    @invariant()
    def alerts_are_all_there(self):
        found = sorted((alert.day, alert.rule, str(alert.kind)) for alert in self.monitor.alerts())
        assert found == sorted(self.fired)
        assert len({alert.seq for alert in self.monitor.alerts()}) == len(self.fired)
        assert self.monitor.last == (day(self.day) if self.day >= 0 else None)

    def teardown(self):
        self.table.close()
        self.folder.cleanup()


TestMonitoring = Monitoring.TestCase
TestMonitoring.settings = settings(max_examples=size(10, 60), stateful_step_count=20, deadline=None)
