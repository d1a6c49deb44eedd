"""Files: which ones a table is made of, and whether they are still what they were."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import EngineError, InvalidParameter, NotAllowed, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ENDINGS: Final = {"parquet": (".parquet", ".pq"), "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz")}
_FORMS: Final = "a Parquet, CSV or DuckDB file, a folder or pattern of Parquet or CSV files, or a data frame"

_HEAD: Final = 12_288
"""Bytes at the beginning of a DuckDB file that change with every checkpoint."""
_WHOLE: Final = 1 << 30
"""Parquet files of no more bytes than this, all together, are hashed as a whole: it takes a second."""
_CHUNK: Final = 1 << 20


@final
@dataclass(frozen=True)
class Files:
    """The files of a table, as they were when it was opened.

    Attributes:
        kind: "parquet", "csv" or "duckdb".
        paths: absolute, in order.
        root: the folder they were found in (of a pattern, what comes before it), or the file itself.
        stats: of each: device, inode, size, and when it was changed.
    """

    kind: str
    paths: tuple[Path, ...]
    root: Path
    stats: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each file, as it is found from the root; of a file alone, its own."""
        return (self.root.name,) if self.root in self.paths else self.names_from(self.root)

    def names_from(self, folder: Path) -> tuple[str, ...]:
        """Return the name of each file as it is found from a folder; none if one of them is not in it."""
        if not all(path.is_relative_to(folder) for path in self.paths):
            return ()
        return tuple(path.relative_to(folder).as_posix() for path in self.paths)

    def at(self, places: Iterable[int]) -> Files:
        """Return the files at these places, in the order given."""
        paths, stats = zip(*((self.paths[place], self.stats[place]) for place in places), strict=True)
        return replace(self, paths=paths, stats=stats)

    @property
    def folders(self) -> set[str]:
        """Return the names of the folders between the root and the files."""
        if not self.root.is_dir():
            return set()
        return {part for path in self.paths for part in path.relative_to(self.root).parts[:-1]}

    def check_unchanged(self) -> None:
        """Refuse if a file was replaced, rewritten or removed.

        Raises:
            NotAllowed: if so.
        """
        for path, before in zip(self.paths, self.stats, strict=True):
            if _stat(path) != before:
                msg = (
                    f"{path} was changed, moved or removed while the table was open: nothing was asked or charged."
                    " Close the table; to go on with the same budget on the new data, open it again with "
                )
                raise NotAllowed(msg, Setting("new_data", value=True))

    def fingerprint(self, key: bytes) -> str:
        """Return a keyed hash of names and contents (of DuckDB and large Parquet files, a telling part)."""
        keyed = hmac.new(key, self.kind.encode(), hashlib.sha256)
        whole = self.kind == "csv" or (self.kind == "parquet" and sum(stat[2] for stat in self.stats) <= _WHOLE)
        for path in self.paths:
            name = os.path.relpath(path, self.root) if len(self.paths) > 1 else ""
            keyed.update(b"\0" + os.fsencode(name) + b"\0")
            keyed.update(str(path.stat().st_size).encode() + b"\0")
            for part in _all(path) if whole else _telling(self.kind, path):
                keyed.update(part)
        return keyed.hexdigest()


def find(source: str | os.PathLike[str]) -> Files:
    """Return the files that a path or pattern names.

    Raises:
        InvalidParameter: if there are none, or they are of no kind that can be read.
    """
    text = os.fsdecode(source)
    if not text.strip() or "\0" in text:
        raise InvalidParameter("source", source, _FORMS)
    if "://" in text:
        raise InvalidParameter("source", source, f"{_FORMS} on this machine: copy it here first")
    try:
        return _find(text)
    except OSError as error:  # a name too long for the file system, a folder that may not be read
        msg = f"{text} cannot be looked for: {error.strerror}"
        raise EngineError(msg) from None


def _find(text: str) -> Files:
    root = Path(text).absolute()
    if root.is_dir():
        paths = sorted(path for path in root.rglob("*") if _is_part(path, root) and path.is_file())
        expected = "a folder with Parquet or CSV files, and this one has none"
    elif root.is_file():
        paths, expected = [root], _FORMS
    elif has_magic(text):
        paths = sorted(Path(name).absolute() for name in glob(text, recursive=True) if Path(name).is_file())  # noqa: PTH207 - absolute patterns too
        expected = "a pattern that matches files, and this one matches none"
        while has_magic(str(root)):
            root = root.parent
    else:
        raise InvalidParameter("source", text, f"{_FORMS}; there is no such file")
    if not paths:
        raise InvalidParameter("source", text, expected)
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1 or "" in kinds or (kinds == {"duckdb"} and len(paths) > 1):
        raise InvalidParameter("source", text, f"{_FORMS}, all files of one kind")
    return Files(kinds.pop(), tuple(paths), root, tuple(map(_stat, paths)))


def split(files: Files, snapshots: Sequence[Sequence[str]] | None) -> tuple[Files, ...]:
    """Return the files of each snapshot; those that are not named are one more, the last.

    Raises:
        InvalidParameter: if the snapshots are no lists of names, each once.
        NotAllowed: if a file that is named is gone.
    """
    left = {name: place for place, name in enumerate(files.names)}
    parts = []
    for names in _checked([] if snapshots is None else snapshots):
        if gone := [name for name in names if name not in left]:
            msg = (
                f"{gone[0]} is not in {files.root} any more, and was when it was last used: put it back as it was"
            )
            raise NotAllowed(msg)
        parts.append(files.at(left.pop(name) for name in names))
    return (*parts, files.at(left.values())) if left else tuple(parts)


def _checked(snapshots: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return the names of each snapshot's files, if that is what they are."""
    lists = isinstance(snapshots, list | tuple) and all(isinstance(names, list | tuple) for names in snapshots)
    every = [name for names in snapshots for name in names] if lists else []
    texts = all(isinstance(name, str) for name in every)
    if not lists or not texts or not all(snapshots) or len(set(every)) < len(every):
        expected = "a list for each snapshot, of the names of its files, each once and at least one"
        raise InvalidParameter("snapshots", snapshots, expected)
    return snapshots


def _is_part(path: Path, root: Path) -> bool:
    """Return whether a file in a folder is part of the table: not if a name on the way begins with . or _."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
    return not hidden and _named_kind(path) is not None


def _named_kind(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for kind, endings in _ENDINGS.items() if name.endswith(endings)), None)


def _kind(path: Path) -> str:
    """Return what kind of file it is, by its name or its first bytes; empty if that is none we know."""
    if kind := _named_kind(path):
        return kind
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise EngineError(msg) from None
    if head[:4] == b"PAR1":
        return "parquet"
    return "duckdb" if head[8:12] == b"DUCK" else ""


def _stat(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _telling(kind: str, path: Path) -> Iterator[bytes]:
    """Yield what changes when a file does: a Parquet file's footer, a DuckDB file's header and its log."""
    with path.open("rb") as file:
        if kind == "duckdb":
            yield file.read(_HEAD)
        else:
            file.seek(-8, os.SEEK_END)
            footer = int.from_bytes(file.read(4), "little") + 8
            file.seek(-min(footer, path.stat().st_size), os.SEEK_END)
            yield file.read()
    log = path.with_name(path.name + ".wal")
    if kind == "duckdb" and log.exists():
        yield from _all(log)


def _all(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part
