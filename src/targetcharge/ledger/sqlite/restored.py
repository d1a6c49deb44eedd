"""Restored copies: how a ledger that has forgotten charges is told from one that has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.errors import NotAllowed

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.sqlite.state import State
    from targetcharge.ledger.sqlite.store import Store
    from targetcharge.ledger.sqlite.witness import Recalled, Testimony


def distrust(store: Store, recalled: Recalled, inode: int) -> str:
    """Return why a ledger must count as spent, in a sentence that says what to do; empty if it need not."""
    state, beside = store.state(), recalled.beside
    missing = missing_entries(store, recalled)
    if missing:
        why = missing
    elif beside is None:
        why = "it has no witness file beside it"
    elif beside.ledger != state.ledger:
        why = "the witness file beside it belongs to another ledger"
    elif beside.inode != inode:
        why = "it is not the file that was written to"
    else:
        return ""
    return (
        f"this ledger looks like a restored copy: {why}. Charges may be missing, so its budget counts as spent."
        " If its owner knows the number and hash of the last entry ever published, and this ledger ends there,"
        " restored=(number, hash) opens it as it is"
    )


def missing_entries(store: Store, recalled: Recalled) -> str:
    """Return what a witness remembers and the ledger does not hold, in words; empty if there is nothing."""
    state = store.state()
    return next(filter(None, (_missing(store, state, known) for known in recalled.about(state.ledger))), "")


def _missing(store: Store, state: State, known: Testimony) -> str:
    if known.number > state.number:
        return f"it ends at entry {state.number} and entry {known.number} was published"
    if (store.hash_at(known.number) or b"").hex() != known.head:
        return f"its entry {known.number} is not the one that was published"
    return ""


def check_named(path: Path, store: Store, recalled: Recalled, named: tuple[int, str]) -> None:
    """Refuse an owner's word that names another last entry than the ledger's, or that a witness contradicts."""
    state, (number, head) = store.state(), named
    if (number, head.lower()) != (state.number, state.head.hex()):
        sentence = (
            f"restored names entry {number} with hash {head}, and the ledger {path} ends at entry {state.number},"
            " not there: if more was published than it holds, its budget is spent"
        )
        raise NotAllowed(sentence)
    missing = missing_entries(store, recalled)
    if missing:
        msg = f"the ledger {path} cannot be opened as complete: {missing}. What is missing was charged"
        raise NotAllowed(msg)
