"""A clinic whose visits arrive day by day, and the file of its monitor."""

import datetime as dt
import json

import pandas as pd

FILE = """
table: visits
unit: person
epsilon: 200
delta: 1e-6
query_epsilon: 1
day: day
alerts: alerts.jsonl
rules:
  - {name: ill, where: ill = TRUE, threshold: 500}
  - {name: all, tolerance: 25%}
"""
COUNTS = {"2024-01-01": (800, 100), "2024-01-02": (900, 700), "2024-01-03": (1500, 700), "2024-01-04": (1500, 0)}
FIRED = [
    ("all", "2024-01-01", "first"),
    ("ill", "2024-01-02", "rose"),
    ("all", "2024-01-03", "moved"),
    ("ill", "2024-01-04", "fell"),
]


def arrive(folder, day, part=1):
    """Put the file of a day into the folder: so many visitors, of whom so many are ill; or only a part of it."""
    many, ill = (int(part * number) for number in COUNTS[day])
    columns = {"person": range(many), "ill": [True] * ill + [False] * (many - ill)}
    columns["day"] = [dt.date.fromisoformat(day)] * many
    pd.DataFrame(columns).to_parquet(folder / "visits" / f"{day}.parquet", index=False)


def founded(folder):
    """Put the file of the monitor and the first day into a folder."""
    (folder / "visits").mkdir()
    arrive(folder, "2024-01-01")
    (folder / "clinic.yaml").write_text(FILE)
    return folder


def told(text):
    alerts = [json.loads(line) for line in text.splitlines()]
    return [(alert["rule"], alert["day"], alert["kind"]) for alert in alerts]
