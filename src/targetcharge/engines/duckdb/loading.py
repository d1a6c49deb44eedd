"""Loading: from a source to a table on a connection that can reach nothing else.

The order of steps matters: first what needs the file system, then the lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from targetcharge.engines.duckdb.connecting import Connection, told
from targetcharge.engines.duckdb.describing import describe
from targetcharge.engines.duckdb.files import Files, split
from targetcharge.engines.duckdb.filling import fill_from_files, fill_from_frame, sought
from targetcharge.engines.duckdb.parquet_files import patterns
from targetcharge.engines.duckdb.parts import Parts, Snapshot
from targetcharge.engines.duckdb.quoting import RELATION
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

    from targetcharge.engines.duckdb.describing import Shape
    from targetcharge.engines.duckdb.filling import Options
    from targetcharge.engines.duckdb.frames import Frame
    from targetcharge.engines.duckdb.parts import First, Relation


@final
@dataclass(frozen=True, eq=False)
class Loaded:
    """An open table. It never changes: with what is appended it is another one.

    Attributes:
        link: its connection, locked down.
        shape: of the rows that it was opened with.
        parts: where all its rows are.
        options: that it was opened with.
        root: what its files were found in; None for a frame.
        opened: how many snapshots it was opened with.
    """

    link: Connection
    shape: Shape
    parts: Parts
    options: Options
    root: Path | None
    opened: int

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return DuckDB's own connection."""
        return self.link.raw

    @property
    def spill(self) -> Path:
        """Return the folder that DuckDB may write to when memory is short."""
        return self.link.spill

    def relation(self, snapshot: int | None = None, *, placed: bool = False) -> Relation:
        """Return the rows of the first snapshots, or of all, with the place of every row if that is needed.

        Raises:
            InvalidParameter: if there are not so many snapshots.
            EngineError: if places are needed and cannot be told.
        """
        parts = self.parts if snapshot is None else self.parts.until(self.number(snapshot))
        return parts.relation(self.shape, placed=placed)

    def number(self, snapshot: int | None) -> int:
        """Return the number of a snapshot that there is; of the last, if none is given."""
        last = len(self.parts.snapshots)
        if snapshot is not None and not 1 <= snapshot <= last:
            raise InvalidParameter("snapshot", snapshot, f"from 1 to {last}, the last")
        return last if snapshot is None else snapshot

    def check_unchanged(self) -> None:
        """Refuse if DuckDB has failed for good, or a file was changed. A frame was copied, and cannot."""
        if self.link.failed:
            msg = "the engine has failed: nothing was asked or charged. Close the table and open it again"
            raise EngineError(msg)
        for snapshot in self.parts.snapshots:
            if snapshot.files is not None:
                snapshot.files.check_unchanged()


def load(
    source: object, options: Options, snapshots: Sequence[Sequence[str]] | None = None, within: Path | None = None
) -> Loaded:
    """Return a table, locked in.

    Args:
        source: files or a frame.
        options: of the table.
        snapshots: which files belong to which snapshot, by their names.
        within: the folder to make the private one in.

    Raises:
        InvalidParameter: if the source is none, or the declared types do not fit it.
        NotAllowed: if a file of a snapshot is gone.
        EngineError: if it cannot be read.
    """
    found = sought(source, options)
    if options.table is not None and not (isinstance(found, Files) and found.kind == "duckdb"):
        raise InvalidParameter("table", options.table, "left out: only a DuckDB file has tables with names")
    if isinstance(found, Files):
        return load_files(split(found, snapshots), options, within)
    if snapshots is not None:
        raise InvalidParameter("snapshots", snapshots, "left out: they are of files")
    return _load_frame(found, options)


def load_files(snapshots: Sequence[Files], options: Options, within: Path | None = None) -> Loaded:
    """Return a table of files."""
    link = Connection(options.memory, within)
    try:
        return told(str(snapshots[0].root), partial(_of_files, link, snapshots, options))
    except BaseException:
        link.close()
        raise


def _of_files(link: Connection, snapshots: Sequence[Files], options: Options) -> Loaded:
    first, own_column = fill_from_files(link.raw, snapshots, options, link.spill)
    link.lock(reached(first))
    copied = snapshots[0].kind == "csv"
    shape = describe(link.raw, RELATION, options.declared, options.unit, own_column, copied=copied)
    ended = tuple(Snapshot(files, end) for files, end in zip(snapshots, first.ends, strict=True))
    return Loaded(link, shape, Parts(first, ended), options, snapshots[0].root, len(ended))


def _load_frame(frame: Frame, options: Options) -> Loaded:
    link = Connection(options.memory)
    try:
        return told(f"{frame.kind} table", partial(_of_frame, link, frame, options))
    except BaseException:
        link.close()
        raise


def _of_frame(link: Connection, frame: Frame, options: Options) -> Loaded:
    first, own_column = fill_from_frame(link.raw, frame, options)
    link.lock(())
    shape = describe(link.raw, RELATION, options.declared, options.unit, own_column, copied=True)
    shape.other.update(frame.other)
    return Loaded(link, shape, Parts(first, (Snapshot(None, first.ends[-1]),)), options, None, 1)


def reached(first: First) -> list[str]:
    """Return the paths that a connection to these rows must reach, and patterns that match nothing else."""
    paths = () if first.parquet is None else first.parquet.paths
    return [*map(str, paths), *patterns(paths)]
