"""Audits: attacks on sessions and mechanisms, and certificates of q-values and prices."""

from targetcharge.audit import exact
from targetcharge.audit.certificates import certify
from targetcharge.audit.exact import attack, explore, judge
from targetcharge.audit.sampling import black_box, interaction
from targetcharge.audit.verdict import Verdict

__all__ = ["Verdict", "attack", "black_box", "certify", "exact", "explore", "interaction", "judge"]
