"""Mistakes that a caller of a table can make, by name: each is refused, and nothing is told."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np

import targetcharge as tc
from targetcharge.tables import questions as q

NO_NUMBERS = {"NaN": math.nan, "infinite": math.inf, "text": "5", "none": None, "true": True, "complex": 1j}
NO_NUMBERS |= {"huge": 2**54, "list": [5], "minus infinite": -math.inf}

PREDICATES = {
    "unknown column": "salary > 5",
    "no predicate": "age >",
    "a function": "length(kind) > 3",
    "arithmetic": "age + 1 > 3",
    "two columns": "age > weight",
    "a subquery": "age IN (SELECT age FROM data)",
    "a semicolon": "age > 5; DROP TABLE data",
    "a comment": "age > 5 -- all",
    "empty": "  ",
    "a number": 5,
    "too long": "age > 5 OR " * 2000 + "age > 5",
    "text for a number": "age > 'old'",
    "number for a text": "kind = 5",
    "no date": "day > '2024-99-99'",
    "pattern of a number": "age LIKE '1%'",
    "a column that cannot be asked about": "photo = 'x'",
    "markup": "<script>alert(1)</script> > 5",
    "a NUL": "kind = '\0'",
    "unclosed": "kind = 'a",
    "a script": "kind = '<script>' AND",
}

GRIDS = {"zero": 0, "below zero": -1, "no number": "x", "absurd": "1e999999999", "tiny": "1e-999999999"}
GRIDS |= {
    "true": True,
    "NaN": math.nan,
    "too coarse": 1000,
    "too fine": "1e-14",
    "a list": [1],
    "a fraction of 0": "1/0",
}

KEYS = {
    "none": None,
    "empty": [],
    "twice": ["a", "b", "a"],
    "a number": ["a", 5],
    "missing twice": ["a", None, None],
    "a set": {"a", "b"},
    "a text": "abc",
    "a generator": (key for key in "ab"),
    "a dictionary": {"a": 1},
    "pairs": [("a", "b")],
    "a NUL": ["a\0"],
    "not a number": [math.nan],
}


def asked():
    """Yield questions that are refused: a name, and a function of an open table."""
    for name, text in PREDICATES.items():
        yield f"predicate: {name}", lambda t, text=text: t.above(text, 5)
        yield f"predicate of a watch: {name}", lambda t, text=text: t.watch(text, "kind", ["a"], 5)
        yield f"predicate of a preview: {name}", lambda t, text=text: t.preview(q.above(text, 5))
    for name, number in NO_NUMBERS.items():
        yield f"threshold: {name}", lambda t, n=number: t.above("age > 5", n)
        yield f"threshold of a sum: {name}", lambda t, n=number: t.sum_above("age", 0, 9, threshold=n)
        yield f"threshold of distinct values: {name}", lambda t, n=number: t.distinct_above("kind", n)
        yield f"threshold of a watch: {name}", lambda t, n=number: t.watch(None, "kind", ["a"], n)
        yield f"threshold of a lazy watch: {name}", lambda t, n=number: t.iter_watch(None, "kind", ["a"], n)
        yield f"threshold of a preview: {name}", lambda t, n=number: t.preview(q.above(None, n))
        yield f"low: {name}", lambda t, n=number: t.between(None, n, 9)
        yield f"high: {name}", lambda t, n=number: t.between(None, 5, n)
        yield f"side: {name}", lambda t, n=number: t.side(None, n)
        yield f"distance: {name}", lambda t, n=number: t.preview(q.above(None, 5), [1, n])
        yield f"lower: {name}", lambda t, n=number: t.sum_above("age", n, 9, threshold=5)
        yield f"upper: {name}", lambda t, n=number: t.sum_above("age", 0, n, threshold=5)
        if number is not None:
            yield f"tolerance: {name}", lambda t, n=number: t.count(None, prior=5, tolerance=n)
            yield f"prior: {name}", lambda t, n=number: t.count(None, prior=n, tolerance=0)
            yield f"tolerance of what is prepared: {name}", lambda t, n=number: t.prepare(q.above(None, 5, 5, n))
            yield f"prior of what is prepared: {name}", lambda t, n=number: t.prepare(q.count(None, n, 0))
            yield f"tolerance without a prior: {name}", lambda t, n=number: t.above(None, 5, tolerance=n)
            yield f"threshold of a top: {name}", lambda t, n=number: t.top(None, "kind", ["a"], threshold=n)
    yield "tolerance below 0", lambda t: t.count(None, prior=5, tolerance=-1)
    yield "prior: a text", lambda t: t.above(None, 5, prior="many", tolerance=0)
    yield "prior: an object", lambda t: t.above(None, 5, prior=object(), tolerance=0)
    yield "prior without a tolerance", lambda t: t.count(None, prior=5)
    yield "prior without a tolerance, of a threshold", lambda t: t.prepare(q.above(None, 5, 5))
    yield "bounds: reversed", lambda t: t.sum_above("age", 9, 0, threshold=5)
    yield "bounds: nothing", lambda t: t.sum_above("age", 0, 0, threshold=5)
    yield "bounds: absurd", lambda t: t.sum_above("age", 0, 10**16, threshold=5)
    yield "sum: of text", lambda t: t.sum_above("kind", 0, 9, threshold=5)
    yield "sum: of no column", lambda t: t.sum_above("salary", 0, 9, threshold=5)
    yield "sum: of a number", lambda t: t.sum_above(5, 0, 9, threshold=5)
    for name, grid in GRIDS.items():
        yield f"grid: {name}", lambda t, g=grid: t.sum_above("weight", 0, 9, threshold=5, grid=g)
    yield from _distinct()
    yield from _batches()
    yield from _always_paid()
    yield from _others()


def _distinct():
    yield "distinct: of no column", lambda t: t.distinct_above("salary", 5)
    yield "distinct: of a blob", lambda t: t.distinct_above("photo", 5)
    for name, most in {"zero": 0, "a half": 0.5, "text": "x", "absurd": 10**16, "too many": 10**12}.items():
        yield f"distinct: {name} for each unit", lambda t, m=most: t.distinct_above("kind", 5, per_unit=m)
    yield "distinct: none at least", lambda t: t.distinct_above("kind", 0)
    yield "distinct: more than can be", lambda t: t.distinct_above("kind", 10**12)
    yield "distinct: as a count", lambda t: t.count(q.distinct("kind"))
    yield "distinct: between", lambda t: t.between(q.distinct("kind"), 5, 9)
    yield "distinct: side", lambda t: t.side(q.distinct("kind"), 5)
    yield "distinct: release", lambda t: t.release(q.distinct("kind"), {5})
    yield "distinct: watch", lambda t: t.watch(q.distinct("kind"), "kind", ["a"], 5)
    yield "distinct: top", lambda t: t.top(q.distinct("kind"), "kind", ["a"], 1)
    yield "distinct: preview of a watch", lambda t: t.preview(q.watch(q.distinct("kind"), "kind", ["a"], 5))


def _batches():
    for name, keys in KEYS.items():
        yield f"keys: {name}", lambda t, k=keys: t.watch(None, "kind", k, 5)
        yield f"keys of a top: {name}", lambda t, k=keys: t.top(None, "kind", k)
        yield f"keys of a preview: {name}", lambda t, k=keys: t.preview(q.watch(None, "kind", k, 5))
    yield "keys: of a number", lambda t: t.watch(None, "weight", ["a"], 5)
    yield "keys: no pairs", lambda t: t.watch(None, ["kind", "age"], ["a"], 5)
    yield "keys: days of a text", lambda t: t.watch(None, "kind", tc.days("2024-01-01", "2024-01-02"), 5)
    yield "keys: hours of a date", lambda t: t.watch(None, "day", tc.hours("2024-01-01", "2024-01-02"), 5)
    yield "keys: reversed days", lambda t: t.watch(None, "day", tc.days("2024-01-02", "2024-01-01"), 5)
    yield "by: no column", lambda t: t.watch(None, "salary", ["a"], 5)
    yield "by: a number", lambda t: t.watch(None, 5, ["a"], 5)
    yield "by: three", lambda t: t.watch(None, ["kind", "age", "day"], [("a", 1, "b")], 5)
    yield "by: twice", lambda t: t.watch(None, ["kind", "kind"], [("a", "b")], 5)
    yield "by: a blob", lambda t: t.watch(None, "photo", ["a"], 5)
    for name, k in {"zero": 0, "too many": 3, "a half": 1.5, "true": True, "text": "1", "none": None}.items():
        yield f"k: {name}", lambda t, k=k: t.top(None, "kind", ["a", "b"], k)
        yield f"k of a preview: {name}", lambda t, k=k: t.preview(q.top(None, "kind", ["a", "b"], k))
    yield "stop: a number", lambda t: t.top(None, "kind", ["a", "b"], 2, stop=5)
    yield "stop: it raises", lambda t: t.top(None, "kind", ["a", "b"], 2, stop=lambda released: released[0].x)
    yield "many: none", lambda t: t.ask_many([])
    yield "many: a text", lambda t: t.ask_many("age > 5")
    yield "many: a number", lambda t: t.ask_many([q.above(None, 5), 5])
    yield "many: a watch", lambda t: t.ask_many([q.count(None), q.watch(None, "kind", ["a"], 5)])
    yield "many: no column at the end", lambda t: t.ask_many([q.count(None), q.above("salary > 5", 5)])
    yield "many: no price at the end", lambda t: t.ask_many([q.count(None), q.between(None, 5, 9)])


def _always_paid():
    for name, number in NO_NUMBERS.items():
        yield f"lower of a mean: {name}", lambda t, n=number: t.mean("age", n, 9)
        yield f"upper of a quantile: {name}", lambda t, n=number: t.quantile("age", 0.5, 0, n)
        yield f"share: {name}", lambda t, n=number: t.quantile("age", n, 0, 9)
        yield f"one of the shares: {name}", lambda t, n=number: t.quantiles("age", [0.5, n], 0, 9)
        yield f"share of a preview: {name}", lambda t, n=number: t.preview(q.quantile("age", n, 0, 9))
        yield f"keys for each unit: {name}", lambda t, n=number: t.histogram(None, "kind", ["a"], n or 0)
    for name, grid in GRIDS.items():
        yield f"grid of a mean: {name}", lambda t, g=grid: t.mean("weight", 0.1, 9, grid=g)
        yield f"grid of a quantile: {name}", lambda t, g=grid: t.quantile("weight", 0.5, 0.1, 9, grid=g)
    for name, text in PREDICATES.items():
        yield f"predicate of a mean: {name}", lambda t, text=text: t.mean("age", 0, 9, text)
        yield f"predicate of a histogram: {name}", lambda t, text=text: t.histogram(text, "kind", ["a"])
    for name, keys in KEYS.items():
        yield f"keys of a histogram: {name}", lambda t, k=keys: t.histogram(None, "kind", k)
    for name, column in {"unknown": "salary", "text": "kind", "a blob": "photo", "a number": 5}.items():
        yield f"mean: {name}", lambda t, c=column: t.mean(c, 0, 9)
        yield f"quantiles: {name}", lambda t, c=column: t.quantiles(c, [0.5], 0, 9)
    yield "share: 0", lambda t: t.quantile("age", 0, 0, 9)
    yield "share: 1", lambda t: t.quantile("age", 1, 0, 9)
    yield "shares: none", lambda t: t.quantiles("age", [], 0, 9)
    yield "shares: a number", lambda t: t.quantiles("age", 0.5, 0, 9)
    yield "bounds of a mean: reversed", lambda t: t.mean("age", 9, 0)
    yield "bounds of a mean: the same", lambda t: t.mean("age", 9, 9)
    yield "bounds of a quantile: reversed", lambda t: t.quantile("age", 0.5, 9, 0)
    yield "cells: too many", lambda t: t.quantile("weight", 0.5, 0, 9, grid="0.000001")
    yield "histogram: of a sum", lambda t: t.histogram(q.sum("age", 0, 9), "kind", ["a"])
    yield "histogram: of distinct values", lambda t: t.histogram(q.distinct("age"), "kind", ["a"])
    yield "threshold without values", lambda t: t.top(None, "kind", ["a"], values=False, threshold=5)
    yield "stop without values", lambda t: t.top(None, "kind", ["a"], values=False, stop=tc.sessions.gap(5))
    yield "values: a number", lambda t: t.top(None, "kind", ["a"], values=1)
    yield "many: a histogram", lambda t: t.ask_many([q.count(None), q.histogram(None, "kind", ["a"])])
    yield "many: quantiles", lambda t: t.ask_many([q.quantiles("age", [0.1, 0.9], 0, 9)])
    yield "distances: of a mean", lambda t: t.preview(q.mean("age", 0, 9), [5])
    yield "release: of a mean", lambda t: t.release(t.prepare(q.mean("age", 0, 9)), {5})


def _others():
    yield "what: a list", lambda t: t.above(["age > 5"], 5)
    yield "what: a question", lambda t: t.above(q.above(None, 5), 5)
    yield "what: a count with a prior", lambda t: t.above(q.count(None, 5), 5)
    yield "what: a count with a label", lambda t: t.above(q.count(None, label="x"), 5)
    yield "what: a text in a class", lambda t: t.ask(q.Above("age > 5", 5))
    yield "what: a text in a class of a watch", lambda t: t.ask(q.Watch("age > 5", "kind", ["a"], 5))
    yield "what: none in a class", lambda t: t.ask(q.Top(None, "kind", ["a"], 1))
    yield "tolerance: an array", lambda t: t.above(None, 5, tolerance=np.array([1, 2]))
    yield "tolerance: an array with a prior", lambda t: t.above(None, 5, 5, np.array([1, 2]))
    yield "question: a text", lambda t: t.ask("age > 5")
    yield "question: of a preview", lambda t: t.preview("age > 5")
    yield "distances: a number", lambda t: t.preview(q.above(None, 5), 5)
    yield "distances: from nothing", lambda t: t.preview(q.count(None), [5])
    for name, epsilon in {"zero": 0, "NaN": math.nan, "text": "x", "too large": 11, "larger": 0.5}.items():
        yield f"epsilon: {name}", lambda t, e=epsilon: t.above(None, 5, epsilon=e)
        yield f"epsilon of a watch: {name}", lambda t, e=epsilon: t.watch(None, "kind", ["a"], 5, epsilon=e)
        yield f"epsilon of a preview: {name}", lambda t, e=epsilon: t.preview(q.above(None, 5), epsilon=e)
    yield "between: reversed", lambda t: t.between(None, 9, 5)
    yield "between: nothing between", lambda t: t.between(None, 5.2, 5.8)
    yield "between: on the exact meter", lambda t: t.between(None, 5, 9)
    yield "side: on the exact meter", lambda t: t.side(None, 5)
    yield "preview: no price", lambda t: t.preview(q.side(None, 5))
    yield "when: no number", lambda t: t.release(None, float("nan"))
    for name, when in {"a text": "count > 100", "bytes": b"5", "a byte array": bytearray(b"5")}.items():
        yield f"when: {name}", lambda t, w=when: t.release(None, w)
    yield "when: it raises", lambda t: t.release(None, lambda count: count["x"] > 5)
    yield "when: it raises below 0", lambda t: t.release(q.sum("age", 0, 9), lambda total: math.log(total) > 5)
    yield "release: of a question with a threshold", lambda t: t.release(t.prepare(q.above(None, 5)), {5})
    yield "release: of a change", lambda t: t.release(t.prepare(q.count(None, 5)), {5})
    yield "revise: no release", lambda t: t._session.revise(77, {5})
    numbers = {"true": True, "a float": 1.0, "text": "1", "none": None, "absurd": 10**30, "below zero": -1}
    for name, seq in numbers.items():
        yield f"revise: {name}", lambda t, s=seq: t._session.revise(s, {5})
    for name, number in numbers.items():
        yield f"since: {name}", lambda t, n=number: t.transcript.since(n)
    yield "pickle", pickle.dumps
    yield "copy", copy.copy
    yield "deep copy", copy.deepcopy
    yield "pickle the transcript", lambda t: pickle.dumps(t.transcript)


OPENING = {
    "unit: no column": {"unit": "nobody"},
    "unit: none": {"unit": None},
    "unit: a number": {"unit": 5},
    "unit: empty": {"unit": ""},
    "unit: a blob": {"unit": "photo"},
    "budget: none": {"budget": None},
    "budget: a pair": {"budget": (1.0, 1e-6)},
    "query_epsilon: zero": {"query_epsilon": 0},
    "query_epsilon: NaN": {"query_epsilon": math.nan},
    "query_epsilon: text": {"query_epsilon": "x"},
    "query_epsilon: too large": {"query_epsilon": 11},
    "charging: each": {"charging": "each"},
    "charging: a number": {"charging": 5},
    "ledger: a number": {"ledger": 5},
    "ledger: empty": {"ledger": ""},
    "ledger: a folder": {"ledger": "."},
    "ledger: an address": {"ledger": "postgresql://me:secret@host/ledger"},
    "ledger: no such folder": {"ledger": "nowhere/ledger.db"},
    "meter: unknown": {"meter": "best"},
    "targets: a number": {"targets": 5},
    "alternatives: one": {"alternatives": [tc.NotPrior(None)]},
    "types: unknown": {"types": {"age": "age"}},
    "types: no column": {"types": {"salary": "number"}},
    "types: a text": {"types": "number"},
    "memory: lots": {"memory": "lots"},
    "new_data: yes": {"new_data": "yes"},
    "restored: a number": {"restored": 5},
    "restored: in memory": {"restored": (1, "ab")},
    "table: unknown": {"table": "nowhere"},
}
"""Options with which no table opens."""

SOURCES = {
    "nothing": None,
    "a number": 5,
    "empty": "",
    "missing": "missing.parquet",
    "missing text": "missing.csv",
    "an address": "s3://bucket/visits.parquet",
    "no pattern": "missing*.parquet",
    "a NUL": "a\0b.parquet",
    "a list of rows": [{"age": 5}],
    "a dictionary": {"age": [5]},
    "bytes": b"visits.parquet",
    "an empty folder": "empty",
    "neither": "notes.txt",
    "too long": "x" * 5000,
}
"""What cannot be opened at all."""
