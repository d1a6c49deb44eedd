"""Tables: a session over a table, with questions in plain words.

>>> import targetcharge as tc
>>> import pandas as pd
>>> visits = pd.DataFrame({"patient": range(3000), "age": [20, 70, 80] * 1000})
>>> with tc.open(visits, unit="patient", budget=tc.Budget(3.0, 1e-6)) as t:
...     answer = t.above("age > 65", threshold=1200)
...     answer.hit, abs(answer.outcome - 2000) < 300
(True, True)
"""

from targetcharge.tables import questions
from targetcharge.tables.answers import Answers
from targetcharge.tables.monitor import Alert, Look, Monitor, Rule
from targetcharge.tables.opening import ROW, open_table
from targetcharge.tables.table import Table

__all__ = ["ROW", "Alert", "Answers", "Look", "Monitor", "Rule", "Table", "open_table", "questions"]
