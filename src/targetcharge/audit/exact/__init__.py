"""Exact audits: whole interactions of small sessions, enumerated through the real session code."""

from targetcharge.audit.exact.attack import attack
from targetcharge.audit.exact.explore import LIMIT, View, Views, curve, explore, hockey_stick, losses, moment
from targetcharge.audit.exact.judge import ODOMETER, Claim, Running, judge, opener, sparse_opener
from targetcharge.audit.exact.pairs import Pair, Twin, check_pair, leaky, mixed, response, saturated
from targetcharge.audit.exact.player import Player

__all__ = [
    "LIMIT",
    "ODOMETER",
    "Claim",
    "Pair",
    "Player",
    "Running",
    "Twin",
    "View",
    "Views",
    "attack",
    "check_pair",
    "curve",
    "explore",
    "hockey_stick",
    "judge",
    "leaky",
    "losses",
    "mixed",
    "moment",
    "opener",
    "response",
    "saturated",
    "sparse_opener",
]
