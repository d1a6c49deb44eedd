"""Random texts: predicates by a grammar, and what becomes of them under mutation."""

import string

from tests.queries.patients import DATES, SCHEMA, TEXTS, TIMES

from targetcharge.queries.tree import Kind

NUMBERS = [
    "0", "1", "65", "127", "128", "300", "1.5", "0.005", "1.50", "99999999.99", "1e3", "1E-2", "5.", "0.1",
    "9007199254740993", "9223372036854775807", "2.5e0", "0e9", "00012",
]  # fmt: skip
PATTERNS = ["%", "_", "%flu%", "f_u", "", "fl%", "\\%", "it''s%", "%\n"]
OPERATORS = ["=", "==", "<>", "!=", "<", "<=", ">", ">="]
NASTY = [
    "read_csv('/etc/passwd')", "; DROP TABLE patients", ";", "--", "/*", "*/", "/* x */", "'", '"', "''", "$$",
    "$1", "?", ":x", "@x", "#1", "`", "\\", "\x00", "\ud800", "\u200b", "\u00a0", "\ufeff", "١", "ａｇｅ", "é",
    "🙂", "\r", "\n", "\t", "(", ")", "((((", "))))", "(" * 30, "NOT " * 30, ",", ".", "::int", "->", "||", "~",
    "!", "%", "&&", "+", "-", "- -", "*", "/", "[1]", "{'a': 1}", "{{ x }}", "{% x %}", "SELECT", "(SELECT 1)",
    "SELECT * FROM patients", "EXISTS", "CASE WHEN", "END", "CAST(age AS INT)", "DATE '2024-01-31'",
    "INTERVAL 1 DAY", "ILIKE", "ESCAPE '\\'", "COLLATE", "IS TRUE", "IS DISTINCT FROM", "NULL", "ANY", "ALL",
    "TRUE", "FALSE", "AS x", "x'00'", "e'\\n'", "b'0'", "U&'x'", "0x1F", "1_000", "1e400", "1e-400", "9" * 50,
    "9223372036854775808", "0." + "0" * 50 + "1", "1e99999999999", "NaN", "Infinity", "age", "AGE", "ages",
    '"age"', "t.age", "Home Town", '"home town"', "date", "IN", "BETWEEN", "LIKE", "AND", "OR", "NOT", "IS",
    "= 1", "IN (1)", "IN ()", "current_date", "now()", "COPY", "ATTACH", "PRAGMA x", "SHOW", "BEGIN",
    "getenv('HOME')", "lambda x: x", "x -> x + 1", "COLUMNS(*)", "age[1]", "age.x", "SIMILAR TO", "GLOB", "ıs",
    "ſ", "K",
]  # fmt: skip
PIECES = string.ascii_letters + string.digits + string.punctuation + " \n\t"


def quoted(text):
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


class Texts:
    """A source of texts; the same for the same random numbers."""

    def __init__(self, random):
        self.random = random

    def predicate(self, depth=3):
        """Return a text that is a predicate."""
        kind = self.random.randrange(6) if depth else 5
        if kind == 0:
            return f"NOT {self.predicate(depth - 1)}"
        if kind in (1, 2):
            return f"({self.predicate(depth - 1)})"
        if kind in (3, 4):
            joined = self.random.choice([" AND ", " OR ", " and\n"])
            return joined.join(self.predicate(depth - 1) for _ in range(self.random.randrange(2, 4)))
        return self.comparison()

    def comparison(self):
        column = self.random.choice(list(SCHEMA.values()))
        name, literal = self.name(column), lambda: self.literal(column)
        negated = self.random.choice(["", "NOT "])
        operators = ["=", "<>"] if column.kind is Kind.BOOLEAN else OPERATORS
        forms = [
            lambda: f"{name} {self.random.choice(operators)} {literal()}",
            lambda: f"{name}{self.random.choice(operators)}{literal().lstrip('+- ')}",
            lambda: f"{name} {negated}IN ({', '.join(literal() for _ in range(self.random.randrange(1, 5)))})",
            lambda: f"{name} IS {negated}NULL",
        ]
        if column.kind is not Kind.BOOLEAN:
            forms.append(lambda: f"{name} {negated}BETWEEN {literal()} AND {literal()}")
        if column.kind is Kind.TEXT:
            forms.append(lambda: f"{name} {negated}LIKE '{self.random.choice(PATTERNS)}'")
        return self.random.choice(forms)()

    def name(self, column):
        spelled = self.random.choice([column.name, column.name.upper(), column.name.title()])
        return spelled if spelled.isidentifier() and self.random.random() < 0.8 else f'"{spelled}"'

    def literal(self, column):
        match column.kind:
            case Kind.NUMBER:
                numbers = NUMBERS if column.exact else [*NUMBERS, "1e22", "1e-300"]
                return self.random.choice(["", "", "-", "- ", "+"]) + self.random.choice(numbers)
            case Kind.TEXT:
                return quoted(self.random.choice(TEXTS))
            case Kind.DATE:
                return quoted(self.random.choice(DATES).isoformat())
            case Kind.TIME:
                time = self.random.choice(TIMES)
                whole, separator = time.isoformat(), self.random.choice("T ")
                forms = [whole.replace("T", separator), time.date().isoformat(), whole[:16]]
                return quoted(self.random.choice(forms))
            case Kind.BOOLEAN:
                return self.random.choice(["TRUE", "FALSE", "true"])

    def mutated(self, text):
        """Return a text with a few things changed."""
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 2, 3, 8])):
            text = self.random.choice(
                [self._swapped, self._shortened, self._inserted, self._spelled, self._grown, self._recased]
            )(text)
        return text

    def _swapped(self, text):
        words = text.split(" ")
        first, second = (self.random.randrange(len(words)) for _ in range(2))
        words[first], words[second] = words[second], words[first]
        return " ".join(words)

    def _shortened(self, text):
        words = text.split(" ")
        start = self.random.randrange(len(words))
        del words[start : start + self.random.randrange(1, 3)]
        return " ".join(words)

    def _inserted(self, text):
        words = text.split(" ")
        words.insert(self.random.randrange(len(words) + 1), self.random.choice(NASTY))
        return " ".join(words)

    def _spelled(self, text):
        place = self.random.randrange(len(text) + 1)
        return text[:place] + self.random.choice([*PIECES, *NASTY]) + text[place + self.random.randrange(2) :]

    def _grown(self, text):
        other = self.predicate(1)
        return self.random.choice(
            [f"{text} OR {other}", f"({text})", f"NOT ({text}) AND {other}", f"{other} {text}"]
        )

    def _recased(self, text):
        return self.random.choice([str.upper, str.lower, str.swapcase])(text)
