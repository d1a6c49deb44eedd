"""Tables that ask every question, also one whose hit is published: tests of noise and charges need fresh draws."""


class _Anew:
    """Asks as a table's asker does, and again."""

    def __init__(self, asker):
        self._asker = asker

    def __getattr__(self, name):
        found = getattr(self._asker, name)
        return (lambda *given, **more: found(*given, **{**more, "again": True})) if name in _ASKING else found


_ASKING = ("one", "watch", "many", "top", "histogram", "quantiles")


def anew(table):
    """Return a table that asks every question."""
    table._asker = _Anew(table._asker)
    return table
