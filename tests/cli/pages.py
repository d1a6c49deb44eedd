"""Pages as a strict reader sees them, and ledgers that are written entry by entry, without a session."""

import time
from html.parser import HTMLParser
from types import SimpleNamespace

from targetcharge.ledger import Answer, BatchEntry, Unit
from targetcharge.ledger.sqlite.database import Database, inode
from targetcharge.ledger.sqlite.witness import WitnessFile, WitnessRecord
from targetcharge.ledger.state import LedgerState
from targetcharge.ledger.terms import Terms

EMPTY = {"meta", "br", "hr", "input"}

SHARED = Terms(3.0, 1e-6, "exact", 0.1, 0.0, (("NotPrior",),), (), 6.2, (7,), (1,), Unit("column", "patient"))


class Page(HTMLParser):
    """Elements in order, each with attributes, text and the elements around it. What is not closed is refused."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source, self.elements, self.open = source, [], []
        self.feed(source)
        self.close()
        assert self.open == [], [each.name for each in self.open]

    def handle_starttag(self, name, attributes):
        assert len(dict(attributes)) == len(attributes), f"twice the same attribute in {attributes}"
        made = SimpleNamespace(name=name, attributes=dict(attributes), parts=[], around=list(self.open))
        self.elements.append(made)
        if name not in EMPTY:
            self.open.append(made)

    def handle_startendtag(self, name, _):
        assert not name, "an element that closes itself is not HTML"

    def handle_endtag(self, name):
        assert self.open.pop().name == name

    def handle_data(self, data):
        for each in self.open:
            each.parts.append(data)

    def all(self, name, **attributes):
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [each for each in self.elements if each.name == name and wanted.items() <= each.attributes.items()]

    def one(self, name, **attributes):
        (result,) = self.all(name, **attributes)
        return result

    def section(self, name):
        return self.one("section", **{"aria-labelledby": name})

    def told(self, section):
        return words(self.section(section))

    def text(self, name="html", **attributes):
        return words(self.one(name, **attributes))

    def within(self, outer, name, **attributes):
        return [each for each in self.all(name, **attributes) if outer in each.around]

    def rows(self, section, number=0):
        """The cells of a section's table, row by row; the heads first."""
        table = self.within(self.section(section), "table")[number]
        return [
            [words(cell) for cell in self.elements if cell.name in ("th", "td") and row in cell.around]
            for row in self.within(table, "tr")
        ]

    def facts(self):
        """The fine print's names and what they are."""
        inside = self.section("fine-print")
        names, values = self.within(inside, "dt"), self.within(inside, "dd")
        return dict(zip(map(words, names), map(words, values), strict=True))

    def tiles(self):
        (tiles,) = self.all("dl", class_="tiles")
        names, figures = self.within(tiles, "dt"), self.within(tiles, "dd", class_="figure")
        return {words(name): int(words(each).replace(",", "")) for name, each in zip(names, figures, strict=True)}


def words(element):
    return " ".join("".join(element.parts).split())


def batch(keys, outcome, seq, name="q", **more):
    """Answers of a watch that left together: all but the last key miss."""
    first = Answer(None, True, 1.0, seq, name, (("NotPrior", None),), 0.1, grains=(1,), key=keys[0], **more)
    codes = bytes([0] * (len(keys) - 1) + [1])
    return BatchEntry(first, (None, outcome), codes, (len(keys) - 1,), tuple(keys), (None, (1, 61)))


def write(path, terms, entries):
    """Write a ledger with these entries, and the witness that makes it trusted."""
    path.touch()
    database = Database(path)
    with database.transaction():
        database.create(LedgerState.new(terms, path.stem))
        database.save(database.append(database.state(), entries))
    database.checkpoint()
    state = database.state()
    database.close()
    for witness in (WitnessFile.beside(path), WitnessFile.at_home(path.stem)):
        witness.path.parent.mkdir(parents=True, exist_ok=True)
        witness.forget()
        witness.remember(WitnessRecord(path.stem, inode(path), state.last_entry, state.head.hex()))
    return path


class Clock:
    """Sessions receive questions when the test says."""

    def __init__(self, monkeypatch, now=1_700_000_000.0):
        self.now = now
        monkeypatch.setattr(time, "time", lambda: self.now)

    def wait(self, seconds):
        self.now += seconds
