"""`tct audit`: does the claim of your own mechanism or script hold? `tct attack` and `tct certify`: do ours?

>>> from types import ModuleType
>>> _value("--data0", "[1, 2]", ModuleType("mine"))
[1, 2]
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.text import Text

import targetcharge as tc
from targetcharge.audit.exact import opener, sparse_opener
from targetcharge.audit.sampling import black_box
from targetcharge.cli.errors import AUDIT_FAILED
from targetcharge.cli.options import Json, MeterName  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.plan import Q, TargetOption, Width, new_figure, save_figure, target_of
from targetcharge.cli.results import console
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms import Algorithm

if TYPE_CHECKING:
    from types import ModuleType

    from targetcharge.audit import Verdict

_FORM: Final = "FILE.py:FUNCTION"

Seed = Annotated[int, typer.Option(help="The search is reproducible from it.")]


def audit(
    what: Annotated[str, typer.Argument(metavar=_FORM, help="A @tc.private algorithm, or a function of data.")],
    *,
    data0: Annotated[str, typer.Option(help="An input: a Python literal, a JSON file, or a name in FILE.py.")],
    data1: Annotated[str, typer.Option(help="A neighbour of it, likewise.")],
    epsilon: Annotated[float | None, typer.Option(help="The claimed ε, if the function does not know it.")] = None,
    delta: Annotated[float | None, typer.Option(help="The claimed δ; 0 if only ε is given.")] = None,
    relation: Annotated[
        Literal["add-remove", "replace-one", "any"],
        typer.Option(
            "--relation",
            "--neighbours",
            metavar="RELATION",
            help="What makes the inputs neighbours: add-remove, replace-one, or any: you vouch.",
        ),
    ] = "add-remove",
    runs: Annotated[int, typer.Option(help="Runs on each input.")] = 20_000,
    confidence: Annotated[float, typer.Option(help="How sure a failure is.")] = 0.999,
    seed: Annotated[int, typer.Option(help="Of everything the audit decides.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Draw claimed against attained δ(ε) into this file.")] = None,
) -> None:
    """Run a mechanism many times on two neighbours and bound its ε from below; exit code 6 if its claim fails.

    FUNCTION is an algorithm, or a function of the data (or of the data and `entropy`) that returns what is
    published or the session that did. Algorithms and sessions know their claim; other functions need --epsilon.
    """
    if plot is not None:
        new_figure(plot)  # whether it can be drawn, before the wait
    if delta is not None and epsilon is None:
        raise InvalidParameter("--delta", delta, "given with --epsilon, and only with it")
    console = Console(stderr=True)
    columns, quiet = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()), as_json or not console.is_terminal
    # Refreshed by hand: workers are forked, so that no thread may be started for it.
    bar = Progress("running", *columns, console=console, transient=True, auto_refresh=False, disable=quiet)
    with redirect_stdout(sys.stderr), bar as progress:  # what the audited code prints
        name, function, module = _load(what)
        task, claim = progress.add_task("runs"), None if epsilon is None else tc.Budget(epsilon, delta or 0.0)
        verdict = black_box(
            *(function, _value("--data0", data0, module), _value("--data1", data1, module), claim),
            relation=relation,
            runs=runs,
            confidence=confidence,
            seed=seed,
            workers=workers,
            progress=lambda done, total: progress.update(task, completed=done, total=total, refresh=True),
        )
    _show(verdict, name, as_json=as_json)
    if plot is not None:
        _draw(verdict, name, plot, as_json=as_json)
    if not verdict.passed:
        raise typer.Exit(AUDIT_FAILED)


def attack(
    *,
    query_epsilon: Annotated[float, typer.Option(help="ε of one computation.")] = 1.0,
    hits: Annotated[int, typer.Option(help="Hits that the session covers.")] = 1,
    delta: Annotated[float, typer.Option(help="δ of the session.")] = 0.02,
    meter: Annotated[
        MeterName, typer.Option(metavar="METER", help="How the session adds up: exact, renyi or sparse.")
    ] = "exact",
    offset_epsilon: Annotated[
        float | None, typer.Option(help="Rate of a secret offset in its counts; a sparse meter has one.")
    ] = None,
    target: TargetOption = "not-prior",
    width: Width = None,
    q: Q = None,
    restarts: Annotated[int | None, typer.Option(help="Strategies to start from; else two for each tool.")] = None,
    steps: Annotated[int, typer.Option(help="Changes to try on each.")] = 10,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Search for the game that tells the most through real sessions, and compare it with the meter's claim.

    Every path of every game is enumerated on two neighbouring datasets; exit code 6 if one tells more than that.
    """
    if meter == "sparse":
        for option, value, usual in (
            ("--target", target, "not-prior"),
            ("--offset-epsilon", offset_epsilon, None),
        ):
            if value != usual:
                raise InvalidParameter(option, value, "left out with --meter sparse")
        opened = sparse_opener(query_epsilon, hits, delta)
    else:
        targets = (target_of(target, width, q),)
        opened = opener(query_epsilon, hits, delta, meter=meter, targets=targets, offset_epsilon=offset_epsilon)
    verdict = tc.audit.attack(opened, epsilons=(query_epsilon,), restarts=restarts, steps=steps, seed=seed)
    _show_ours([verdict], as_json=as_json)


def certify(
    *,
    epsilon: Annotated[float, typer.Option(help="ε of one computation.")],
    target: TargetOption = "not-prior",
    width: Width = None,
    q: Q = None,
    order: Annotated[float, typer.Option(help="Rényi order at which to try the price.")] = 2.0,
    pairs: Annotated[int, typer.Option(help="Random pairs, beside a dense family.")] = 200_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Try a target's q and price on many neighbouring pairs and show the worst; exit code 6 if one is beyond."""
    chosen = target_of(target, width, q)
    verdicts = [tc.audit.certify(chosen, epsilon, pairs=pairs, seed=seed)]
    try:
        verdicts.append(tc.audit.certify(chosen, epsilon, order, pairs=pairs, seed=seed))
    except InvalidParameter as error:
        if error.name != "order" or not order > 1:
            raise
        typer.echo(f"the price is not tried: {error}", err=True)
    _show_ours(verdicts, as_json=as_json)


def _load(what: str) -> tuple[str, object, ModuleType]:
    """Return the function that "FILE.py:function" names, after its name; the file is run, as a module."""
    text, colon, name = what.rpartition(":")
    if not colon or not name.isidentifier() or not text.endswith(".py"):
        raise InvalidParameter("FUNCTION", what, _FORM)
    file = Path(text)
    if not file.is_file():
        raise InvalidParameter("FUNCTION", what, f"{_FORM}, and there is no file {text}")
    alias = f"audited_{file.stem}"  # a file called random.py must not stand in for Python's own
    specification = importlib.util.spec_from_file_location(alias, file.resolve())
    if specification is None or specification.loader is None:
        raise InvalidParameter("FUNCTION", what, f"{_FORM}, and {text} cannot be imported")
    module = importlib.util.module_from_spec(specification)
    sys.modules[alias] = module
    sys.path.insert(0, str(file.resolve().parent))  # its neighbours may be imported, as if it were run
    try:
        specification.loader.exec_module(module)
    except KeyboardInterrupt:  # the user's
        raise
    except BaseException as error:
        raise InvalidParameter("FUNCTION", what, f"in a file that can be run: {error!r}") from error
    function = getattr(module, name, None)
    if not isinstance(function, Algorithm) and not callable(function):
        own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == alias)
        algorithms = (name for name, value in vars(module).items() if isinstance(value, Algorithm))
        names = dict.fromkeys((*own, *algorithms))
        raise InvalidParameter("FUNCTION", what, f"{_FORM}; {text} has {', '.join(names) or 'no functions'}")
    return name, function, module


def _value(option: str, text: str, module: ModuleType) -> object:
    """Return an input: a Python literal, what a JSON file holds, or a name in FILE.py (a function is called)."""
    if text.isidentifier() and hasattr(module, text):
        value = getattr(module, text)
        try:
            return value() if callable(value) else value
        except KeyboardInterrupt:  # the user's
            raise
        except BaseException as error:
            expected = f"a variable, or a function without parameters that returns an input; it raised {error!r}"
            raise InvalidParameter(option, text, expected) from error
    try:
        if text.endswith(".json"):
            return json.loads(Path(text).read_text(encoding="utf-8"))
        return ast.literal_eval(text)
    except (OSError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        expected = f"a Python literal, a JSON file that can be read, or a name in FILE.py ({error})"
        raise InvalidParameter(option, text, expected) from None


def _draw(verdict: Verdict, name: str, plot: Path, *, as_json: bool) -> None:
    """Draw the picture; that it cannot be drawn does not hide that the audit failed."""
    try:
        _picture(verdict, name, plot)
    except InvalidParameter as error:
        if verdict.passed:
            raise
        typer.echo(f"tct: {error}", err=True)
        return
    if not as_json:
        Console(soft_wrap=True, highlight=False).print(f"picture: {plot}", markup=False)


def _show(verdict: Verdict, name: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"function": name, **verdict.as_dict()}, indent=2, ensure_ascii=False))
        return
    out = console()
    style, word = ("green", "passed") if verdict.passed else ("bold red", "FAILED")
    out.print(
        Text(f"{word}: ", style),
        f"{name} claims ε = {verdict.claimed:g} at δ = {verdict.at:g}; {verdict.runs:,} runs on each input show"
        f" that it is at least {verdict.attained:.3g}, with confidence {verdict.confidence:g}.",
        sep="",
    )
    out.print(f"Most telling: {verdict.worst}.")
    if verdict.passed:
        out.print("A pass is no proof: other inputs, other events and smaller excesses were not seen.")


def _show_ours(verdicts: list[Verdict], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([verdict.as_dict() for verdict in verdicts], indent=2))
    else:
        out = console()
        for verdict in verdicts:
            out.print(str(verdict), style="green" if verdict.passed else "red")
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(AUDIT_FAILED)


def _picture(verdict: Verdict, name: str, file: Path) -> None:
    """Draw the δ(ε) that a claim implies, and the δ(ε) that the runs show."""
    figure = new_figure(file)
    axes = figure.add_subplot()
    epsilons, claimed, attained = zip(*verdict.curve, strict=True)
    colour = "#08519c" if verdict.passed else "tab:red"
    axes.plot(epsilons, claimed, color="black", linestyle="--", linewidth=1.5, label="claimed: no more than this")
    axes.fill_between(epsilons, attained, color=colour, alpha=0.15)
    axes.plot(epsilons, attained, color=colour, linewidth=2.2, label="attained: at least this")
    axes.axvline(verdict.claimed, color="0.6", linewidth=1, label=f"claimed ε = {verdict.claimed:g}")
    word = "passed" if verdict.passed else "FAILED"
    axes.set(
        xlabel="ε",
        ylabel="δ",
        ylim=(0, None),
        xlim=(0, max(epsilons)),
        title=f"{name}: {word}, {verdict.runs:,} runs on each input, confidence {verdict.confidence:g}",
    )
    save_figure(figure, axes, file)
