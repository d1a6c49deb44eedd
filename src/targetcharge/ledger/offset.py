"""The secret offset of a session as a ledger keeps it: with a key, and with a commitment in the header.

The commitment is the HMAC of the offset under 32 random bytes that are kept beside it. So the header, and with it
the chain of entries and the witnesses, cover the offset and show nothing of it. It is as secret as the data.

>>> secret = SecretOffset.fresh(-17)
>>> secret, secret.value
(SecretOffset(), -17)
>>> SecretOffset.stored(secret.body()).opens(secret.commitment)
True
>>> SecretOffset.fresh(-17).opens(secret.commitment)
False
"""

from __future__ import annotations

import hmac
import numbers
import secrets
from dataclasses import dataclass, field
from typing import Final, final

from targetcharge.errors import InvalidParameter

_KEY_BYTES: Final = 32


@final
@dataclass(frozen=True, slots=True)
class SecretOffset:
    """An offset and the key of its commitment.

    Attributes:
        text: the offset, in decimal.
        key: random bytes, which keep the commitment from being guessed.
    """

    text: bytes = field(repr=False)
    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls, value: int) -> SecretOffset:
        """Return an offset that was just drawn, with a new key."""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise InvalidParameter("fresh_offset", type(value), "an integer")  # its value is in no error
        return cls(b"%d" % int(value), secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def stored(cls, body: bytes) -> SecretOffset:
        """Return what a ledger holds; whether that is what was written, `opens` says."""
        return cls(body[_KEY_BYTES:], body[:_KEY_BYTES])

    def body(self) -> bytes:
        """Return the offset as the private table of a ledger holds it."""
        return self.key + self.text

    @property
    def commitment(self) -> str:
        """Return what the header holds, in hexadecimal: it fixes the offset and shows nothing of it."""
        return hmac.digest(self.key, self.text, "sha256").hex()

    def opens(self, commitment: str) -> bool:
        """Return whether this is the offset that a header was written for."""
        return len(self.key) == _KEY_BYTES and self.commitment == commitment

    @property
    def value(self) -> int:
        """Return the offset, of which `opens` has said that it is what was written."""
        return int(self.text)
