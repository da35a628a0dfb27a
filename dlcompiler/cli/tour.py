"""``dlcompiler tour``: run the quickstart notebook on this machine, without a browser."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlcompiler.cli.command import Command, add_overwrite, output_rules
from dlcompiler.errors import UserError
from dlcompiler.measurement.steps import STEPS_MIME
from dlcompiler.output_files import Rules, check_output, make_folder, write_file
from dlcompiler.runtime.private_folders import private_folder
from dlcompiler.runtime.timing import format_rate, format_ratio, format_seconds
from dlcompiler.terminal import show
from dlcompiler.views.history.steps import StepsModel, steps_page
from dlcompiler.views.render.text import text_table

NOTEBOOK = Path("notebooks/01_quickstart.ipynb")
CELL_LIMIT_S = 300
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # IPython paints what Python reports
COLUMNS = ("step", "threads", "time", "±", "GFLOP/s", "NumPy", "ratio", "")


def run(args: argparse.Namespace) -> int:
    """Execute the notebook, print its measured steps, and write both results."""
    source, folder = Path(args.notebook), Path(args.output)
    if not source.is_file():
        raise UserError(
            "tour",
            "there is no such notebook",
            got=str(source),
            hint="run it from the folder of the checkout, or name one with --notebook",
        )
    make_folder(folder)
    executed, page = folder / source.name, folder / f"{source.stem}.html"
    rules = output_rules(args, source)
    for path in (executed, page):
        check_output(path, rules)
    start = time.perf_counter()
    notebook, failure = _execute(source, executed, rules)
    if failure is not None:
        text = _COLOURS.sub("", str(failure))
        show(f"a cell failed; see {executed}", *text.split("\n"), file=sys.stderr)
        return 1
    tables = list(_tables(notebook))
    write_file(page, steps_page(tables, "From a tensor expression to a tuned kernel"), rules)
    for table in tables:
        show(*_text(table).split("\n"), "")
    show(f"measured and verified in {format_seconds(time.perf_counter() - start)}")
    show(f"executed notebook  {executed}", f"static page        {page}")
    return 0


def _execute(source: Path, executed: Path, rules: Rules) -> tuple[Any, Exception | None]:
    """Run a notebook and write it; return the notebook, and the error that ended it, if any."""
    nbformat, nbclient, config = _notebook_libraries()
    try:
        notebook = nbformat.read(source, as_version=4)
        nbformat.validate(notebook)
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError,
            ValueError, nbformat.ValidationError) as error:  # fmt: skip
        raise UserError("tour", "not a notebook", got=f"{source}: {error}"[:1000]) from None
    errors = nbclient.exceptions
    failure = None
    with private_folder() as sockets:
        client = nbclient.NotebookClient(
            notebook,
            timeout=CELL_LIMIT_S,
            kernel_name="python3",
            config=config.Config(_private_sockets(sockets)),
            resources={"metadata": {"path": str(source.parent)}},
            store_widget_state=False,
            on_cell_start=lambda cell, cell_index: _progress(cell_index, len(notebook.cells)),
        )
        try:
            client.execute()
        except (
            errors.CellExecutionError,
            errors.CellTimeoutError,
            errors.DeadKernelError,
        ) as error:
            failure = error
    _clear_progress()
    write_file(executed, nbformat.writes(notebook) + "\n", rules)
    return notebook, failure


def _private_sockets(folder: Path) -> dict[str, Any]:
    """Return Jupyter's configuration that lets only this user connect to the kernel.

    Without it, Jupyter opens ports that other users of the machine can connect to.
    """
    if os.name != "posix":
        return {}
    return {"KernelManager": {"transport": "ipc", "ip": str(folder / "kernel")}}


def _notebook_libraries() -> tuple[Any, ...]:
    try:
        return tuple(map(importlib.import_module, ("nbformat", "nbclient", "traitlets.config")))
    except ImportError as error:
        raise UserError(
            "tour",
            "the packages that execute notebooks are not installed",
            got=str(error),
            hint='pip install "dlcompiler-lab[lab]"',
        ) from None


def _progress(index: int, count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r  cell {index + 1} of {count} ", end="", file=sys.stderr, flush=True)


def _clear_progress() -> None:
    if sys.stderr.isatty():
        print("\r" + " " * 30 + "\r", end="", file=sys.stderr)


def _tables(notebook: Any) -> Iterator[StepsModel]:
    """Yield each table of steps that the notebook shows, in its last state."""
    found: list[StepsModel] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            model = output.get("data", {}).get(STEPS_MIME)
            if model is not None:
                # A table shown again later has all of its earlier steps.
                found = [old for old in found if not _continues(model, old)]
                found.append(model)
    yield from found


def _continues(model: StepsModel, old: StepsModel) -> bool:
    titles = [step["row"]["step"] for step in model["steps"]]
    earlier = [step["row"]["step"] for step in old["steps"]]
    return model["baseline"] == old["baseline"] and titles[: len(earlier)] == earlier


def _text(model: StepsModel) -> str:
    rows = []
    for step in model["steps"]:
        row = step["row"]
        rows.append(
            (
                row["step"],
                row["threads"] or "all",
                format_seconds(row["median_s"]),
                format_seconds(row["spread_s"]),
                _rate(row["gflops"]),
                _rate(row["baseline_gflops"]),
                "" if row["ratio"] is None else format_ratio(row["ratio"]),
                "verified",
            )
        )
    return text_table(COLUMNS, rows)


def _rate(gflops: float | None) -> str:
    return "" if gflops is None else format_rate(gflops)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", default="build/tour", help="folder for the results")
    parser.add_argument("--notebook", default=str(NOTEBOOK), help="notebook to run")
    add_overwrite(parser)


COMMAND = Command("run the quickstart notebook on this machine", _add_arguments, run)
