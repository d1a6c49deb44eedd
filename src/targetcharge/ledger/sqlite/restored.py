"""Restored copies: how a ledger that has forgotten charges is told from one that has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.errors import NotAllowed

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.sqlite.store import State, Store
    from targetcharge.ledger.sqlite.witness import Testimony


def distrust(store: Store, testimony: Testimony | None, inode: int) -> str:
    """Return why a ledger must count as spent, in a sentence that says what to do; empty if it need not."""
    state = store.state()
    if testimony is None:
        why = "it has no witness file beside it"
    elif testimony.ledger != state.fields["ledger"]:
        why = "the witness file beside it belongs to another ledger"
    elif testimony.inode != inode:
        why = "it is not the file that was written to"
    elif testimony.number > state.number:
        why = f"it ends at entry {state.number} and entry {testimony.number} was published"
    elif (store.hash_at(testimony.number) or b"").hex() != testimony.head:
        why = f"its entry {testimony.number} is not the one that was published"
    else:
        return ""
    return (
        f"this ledger looks like a restored copy: {why}. Charges may be missing, so its budget counts as spent."
        " If its owner knows the number and hash of the last entry ever published, and this ledger ends there,"
        " restored=(number, hash) opens it as it is"
    )


def check_named(path: Path, state: State, named: tuple[int, str]) -> None:
    """Refuse an owner's word that names another last entry than the ledger's."""
    number, head = named
    if (number, head.lower()) != (state.number, state.head.hex()):
        sentence = (
            f"restored names entry {number} with hash {head}, and the ledger {path} ends at entry {state.number},"
            " not there: if more was published than it holds, its budget is spent"
        )
        raise NotAllowed(sentence)
