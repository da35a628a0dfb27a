"""Figures for papers, drawn from the same view models as the widgets.

`speedup_ladder` and `memory_map` are drawn for print; `figure` draws any picture of a tuning run as
it stands in the dashboard.

The first figure loads matplotlib. Equal data give equal files: an SVG has no date, fixed ids, and
its words as text.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlcompiler.autotune import TuningRun
from dlcompiler.display import model
from dlcompiler.errors import MeasurementError
from dlcompiler.measurement import StepTable
from dlcompiler.pipeline.checks import default_args
from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor
from dlcompiler.views.memory.footprints import footprint_of
from dlcompiler.views.memory.scopes import Level, MemoryUse, memory_use
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.units import format_bytes
from dlcompiler.views.tuning import Watched, compare_tuners
from dlcompiler.views.tuning.compare import RunLike
from dlcompiler.views.tuning.one_scene import run_scene
from dlcompiler_widgets.paper import SETTINGS, PaperFigure
from dlcompiler_widgets.scene_figure import scene_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "+++")
"""Patterns beside the colours, so that a figure reads in print without them."""
_GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
"""Behind words that a line may cross."""
_WIDTH_INCH = 6.4
_LAYOUTS = 3


def speedup_ladder(steps: StepTable | Mapping[str, Any], title: str = "") -> PaperFigure:
    """Draw the measured speed of each step of a schedule, relative to the first step.

    Parameters
    ----------
    steps : StepTable or mapping
        Measured steps, or the view model of them (``dlcompiler.display.model("steps", table)``).
    title : str, optional
        What stands above it.

    Raises
    ------
    MeasurementError
        If there are no steps.
    """
    data = model("steps", steps) if isinstance(steps, StepTable) else steps
    rows = [step["row"] for step in data["steps"]]
    if not rows:
        raise MeasurementError("draw a speed-up ladder", "there are no steps")
    first = rows[0]["median_s"]
    speeds = [first / row["median_s"] for row in rows]
    spreads = _spreads(rows, first)
    labels = {row["label"] for row in rows}
    figure, (axes,) = _figure(1, max(2.6, 1.6 + 0.1 * max(len(row["step"]) for row in rows)))
    names = [row["step"] for row in rows]
    bars = axes.bar(
        range(len(rows)), [speed - 1 for speed in speeds], bottom=1, width=0.62, color=HUES[0],
        edgecolor="black", linewidth=0.8,
        yerr=spreads, error_kw={"elinewidth": 1.2, "capsize": 3},
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(0.8 * min(1.0, *speeds), 1.9 * max(1.0, *speeds))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xticks(range(len(rows)), names, rotation=20 if max(map(len, names)) > 9 else 0,
                    ha="right" if max(map(len, names)) > 9 else "center")  # fmt: skip
    axes.set_ylabel(f"speed-up over “{names[0]}” [×]\n({', '.join(sorted(labels))})")
    for bar, row, speed, above in zip(bars, rows, speeds, spreads[1], strict=True):
        text = f"{format_ratio(speed)}\n{format_seconds(row['median_s'])}"
        at = (bar.get_x() + bar.get_width() / 2, max(speed + above, 1.0) * 1.06)
        axes.annotate(text, at, ha="center", va="bottom", fontsize=7, bbox=_GROUND)
    beside = _baseline(axes, data.get("baseline"), rows, speeds)
    each = zip(names, map(format_ratio, speeds), strict=True)
    words = ", ".join(f"{name} {ratio}" for name, ratio in each)
    return _finished(figure, title or "Speed-up of each step", f"{words}{beside}; measured.")


def memory_map(
    schedule: Schedule,
    args: Sequence[Tensor] | None = None,
    target: str | Target = "cpu",
    loop: str | None = None,
    title: str = "",
) -> PaperFigure:
    """Draw the memory level of each buffer, and the traffic between the levels.

    Parameters
    ----------
    schedule
        The schedule, at the state to draw.
    args
        Parameters of the function; by default all inputs, then the outputs.
    target
        The machine.
    loop
        Key of the loop of which one iteration is drawn, such as ``"C/k"``; by default, the whole
        program.
    title
        What stands above it.

    Raises
    ------
    DLCompilerError
        If the state cannot be lowered, or the sizes are known only when the program runs.
    """
    machine = resolve(target)
    chosen = default_args(schedule) if args is None else args
    use = memory_use(footprint_of(schedule, chosen, machine), machine, loop)
    levels = [level for level in use.levels if level.capacity_bytes]
    figure, (left, right) = _figure(2, 1.9 + 0.42 * len(levels))
    _draw_use(left, use, levels)
    _draw_moved(right, use, levels)
    what = "the whole program" if use.key is None else f"one iteration of {use.key}"
    moved = "; ".join(f"{level.name} {format_bytes(level.moved_bytes)}" for level in levels)
    words = (
        f"{what} touches {format_bytes(use.touched_bytes)} ({_how_known(use)}); moved in "
        f"all by the program (predicted): {moved}"
    )
    return _finished(figure, title or f"Memory on {machine.name}: {what}", f"{words}.")


def figure(run: TuningRun | Watched, what: str = "best", **options: Any) -> PaperFigure:
    """Return a picture of a tuning run.

    Parameters
    ----------
    run : TuningRun or Watched
        The run, going on or ended.
    what : str
        As for `tuning_picture`.
    **options
        Of the picture: ``against="seconds"`` for ``best``, ``across=`` and ``up=`` for ``map``.

    Raises
    ------
    TuningError
        If there is no such picture, or the tuner has no model to ask.
    """
    return scene_figure(run_scene(run, what, **options))


def tuners(groups: Mapping[str, Sequence[RunLike]], **options: Any) -> PaperFigure:
    """Return the medians and the spread of several runs of several tuners.

    Parameters
    ----------
    groups : mapping
        As for `dlcompiler.views.tuning.compare_tuners`, as are the options.
    """
    return scene_figure(compare_tuners(groups, **options))


def _draw_use(axes: Axes, use: MemoryUse, levels: Sequence[Level]) -> None:
    """Draw, for each memory level, the share that each buffer occupies."""
    names = sorted({held.footprint.buffer.name for level in use.levels for held in level.held})
    for row, level in enumerate(levels):
        capacity = level.capacity_bytes or 1
        start = level.nearer_bytes / capacity
        axes.barh(row, start, color="#dddddd", edgecolor="black", linewidth=0.6, height=0.6)
        for held in level.held:
            name = held.footprint.buffer.name
            n = names.index(name) % len(HUES)
            axes.barh(row, held.bytes / capacity, left=start, color=HUES[n], hatch=HATCHES[n],
                      edgecolor="black", linewidth=0.6, height=0.6)  # fmt: skip
            start += held.bytes / capacity
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel(f"in use, share of the capacity ({_how_known(use)})")
    axes.set_yticks(
        range(len(levels)),
        [f"{level.name}\n{format_bytes(level.capacity_bytes or 0)}" for level in levels],
    )
    axes.invert_yaxis()
    outside = [held.footprint.buffer.name for held in use.levels[-1].held]
    note = f"; only in memory: {', '.join(outside)}" if outside else ""
    handles = [_swatch(name, HUES[n % len(HUES)], HATCHES[n % len(HATCHES)])
               for n, name in enumerate(names)]  # fmt: skip
    handles.append(_swatch("in nearer levels, too", "#dddddd", ""))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=3,
                title=f"buffers{note}", fontsize=7, title_fontsize=7, frameon=False)  # fmt: skip


def _how_known(use: MemoryUse) -> str:
    is_exact = all(held.footprint.is_exact for level in use.levels for held in level.held)
    return "exact" if is_exact else "at most"


def _swatch(label: str, color: str, hatch: str) -> Any:
    patches = importlib.import_module("matplotlib.patches")
    return patches.Patch(facecolor=color, hatch=hatch, edgecolor="black", linewidth=0.6,
                         label=label)  # fmt: skip


def _draw_moved(axes: Axes, use: MemoryUse, levels: Sequence[Level]) -> None:
    """Draw the bytes that move between each memory level and the next one."""
    moved = [max(level.moved_bytes, 1) for level in levels]
    axes.barh(range(len(levels)), moved, color=HUES[0], edgecolor="black", linewidth=0.6,
              height=0.6)  # fmt: skip
    least = max(use.compulsory_bytes, 1)
    axes.axvline(least, color="black", linestyle="--", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(least, *moved) / 4, max(least, *moved) * 64)
    for row, value in enumerate(moved):
        axes.annotate(f" {format_bytes(value)}", (value, row), va="center", fontsize=7)
    axes.xaxis.set_major_formatter(lambda value, _: format_bytes(value))
    axes.tick_params(axis="x", labelrotation=20)
    axes.set_yticks(range(len(levels)), [f"{level.name} ↔\n{level.behind}" for level in levels])
    axes.set_ylim(len(levels) - 0.4, -0.6)
    axes.set_xlabel(f"moved by the whole program [byte] (predicted)\n"
                    f"dashed: {format_bytes(least)}, which no schedule saves")  # fmt: skip


def _baseline(
    axes: Axes, name: str | None, rows: Sequence[Mapping[str, Any]], speeds: Sequence[float]
) -> str:
    """Draw the speed of the baseline, if there is one; return a text about it, or ''."""
    beside = [s / row["ratio"] for s, row in zip(speeds, rows, strict=True) if row["ratio"]]
    if not name or not beside:
        return ""
    at = statistics.median(beside)
    axes.axhline(at, color=HUES[1], linestyle="--", linewidth=1.4)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, at * 0.8), max(high, at * 1.4))
    said = f"{name} {format_ratio(at)}"
    axes.annotate(said, (0.01, at * 1.04), xycoords=("axes fraction", "data"), ha="left",
                  va="bottom", fontsize=7, bbox=_GROUND)  # fmt: skip
    return f"; {said}"


def _spreads(rows: Sequence[Mapping[str, Any]], first: float) -> list[list[float]]:
    """Return the lower and the upper lengths of the error bars, from the spread of each time."""
    below, above = [], []
    for row in rows:
        median, spread = row["median_s"], min(row["spread_s"], 0.9 * row["median_s"])
        below.append(first / median - first / (median + spread))
        above.append(first / (median - spread) - first / median)
    return [below, above]


def _figure(columns: int, height_inch: float) -> tuple[Figure, tuple[Axes, ...]]:
    matplotlib = importlib.import_module("matplotlib")
    with matplotlib.rc_context(SETTINGS):
        figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=(_WIDTH_INCH, height_inch), layout="constrained"
        )
        axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, tuple(axes)


def _finished(figure: Figure, title: str, words: str) -> PaperFigure:
    with importlib.import_module("matplotlib").rc_context(SETTINGS):
        figure.suptitle(title, fontsize=9, fontweight="bold")
        # Each drawing lays out anew, starting where the last one ended; here it settles, and stays.
        for _ in range(_LAYOUTS):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return PaperFigure(title, words, figure)
