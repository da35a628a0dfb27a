"""Draw simulated hits and misses: bars by level and tensor, and maps over time and the tensors."""

from __future__ import annotations

from dlcompiler.ir import Buffer
from dlcompiler.simulate.cache import CacheSimulation
from dlcompiler.simulate.cache.distances import ReuseDistances
from dlcompiler.views.memory.cache_maps import draw_tensor_maps, draw_time_maps
from dlcompiler.views.memory.caches import DIFFERENCE, TensorCounts, by_loop, by_tensor
from dlcompiler.views.memory.reuse import draw_reuse, reuse_rows
from dlcompiler.views.memory.scene import VIRIDIS, Flow, loop_text
from dlcompiler.views.render.scene import Cell, Mark, Scene, beside
from dlcompiler.views.render.units import format_bytes, format_count, percent

WIDTH, LEFT = 364.0, 4.0
_BAR, _LINE = 10.0, 17.0
_REUSE = (
    " The reuse distance of an access is the number of other lines that are touched since the last "
    "access to its line: what stands right of a dashed line misses in a cache of that capacity "
    "that keeps the lines used last."
)
_OF_SAMPLE = (
    " All counts and bytes are those of the sample, also the predicted ones: the whole program "
    "has more."
)
_MOST_TENSORS = 6
"""Tensors that are drawn; the table has all of them."""
_LEAST = 2.0
"""Width of the narrowest part of a bar; [px]."""
_COLUMNS = (
    "level", "tensor", "loop", "accesses", "hits, simulated", "misses, simulated",
    "misses, predicted", "more than 1.5 × off", "written back [lines], simulated",
)  # fmt: skip


def cache_scene(found: CacheSimulation, reuse: ReuseDistances | None = None) -> Scene:
    """Return the picture of a cache simulation, with a histogram of the reuse distances."""
    levels = by_tensor(found)
    drawn = _drawn(levels)
    bars: list[Mark] = []
    maps: list[Mark] = []
    low = 2.0
    for number, tensors in enumerate(levels):
        low = _draw_level(found, number, tensors, drawn, low, bars)
    low = _draw_memory(found, drawn, low, bars)
    shown = [[each for each in tensors if each.tensor in drawn] for tensors in levels]
    y = draw_time_maps(found, shown, 2.0, maps)
    y = draw_tensor_maps(found, shown, y, maps)
    if reuse is not None:
        y = draw_reuse(reuse, drawn, y + 8, maps)
    return {
        "title": "Caches, simulated",
        "summary": _summary(found, levels),
        "how_to_read": "each bar is the accesses to a tensor that reach a level; the filled part "
        "misses and goes on to the next. The loops run as scheduled, each load and store of an "
        "element is an access, on one core, with empty caches at the start and without prefetcher. "
        f"≠ marks a prediction that is more than {DIFFERENCE} × off: the model knows no sets and "
        "no order of lines. A click chooses the loop with most of these misses."
        + (_REUSE if reuse is not None else "")
        + (_OF_SAMPLE if found.sampled else ""),
        **beside((WIDTH, low + 4, bars), (WIDTH, y + 4, maps)),
        "table": {"columns": list(_COLUMNS), "rows": [*_rows(found, levels), *reuse_rows(reuse)]},
    }


def _summary(found: CacheSimulation, levels: list[list[TensorCounts]]) -> str:
    if not found.accesses:
        return "Simulated: the program accesses no memory."
    first, *others = (
        (percent(each.misses / found.accesses), each.level.name) for each in found.counts()
    )
    rates = [f"{first[0]} miss in {first[1]}", *(f"{share} in {name}" for share, name in others)]
    moved = format_bytes(found.memory_bytes())
    whole = f"of {format_count(found.accesses)} accesses"
    if found.sampled:
        loops = ", ".join(map(str, found.sampled))
        counts = f"{format_count(found.accesses)} of {format_count(found.whole_accesses)}"
        whole = f"a sample of {counts} accesses ({loops})"
    text = f"Simulated: {whole}{':' if found.sampled else ','} {', '.join(rates)}"
    text += f"; {moved} to and from memory{' in the sample' if found.sampled else ''}."
    if found.inputs:
        names = ", ".join(each.name for each in found.inputs)
        text += f" What is accessed depends on {names}: simulated for one choice of values."
    known = [each for tensors in levels for each in tensors if each.predicted is not None]
    wrong = sum(each.differs for each in known)
    if known:
        text += f" ≠: {wrong} of {len(known)} predictions are more than {DIFFERENCE} × off."
    return text


def _drawn(levels: list[list[TensorCounts]]) -> dict[Buffer, str]:
    """Return the tensors to draw, those with most misses, with their colours."""
    most = sorted(levels[0], key=lambda each: (-each.counts.misses, -each.counts.accesses))
    kept = {each.tensor for each in most[:_MOST_TENSORS]}
    tensors = [each.tensor for each in levels[0] if each.tensor in kept]
    return {tensor: VIRIDIS[n % len(VIRIDIS)] for n, tensor in enumerate(tensors)}


def _draw_level(
    found: CacheSimulation, number: int, tensors: list[TensorCounts], drawn: dict[Buffer, str],
    y: float, marks: list[Mark],
) -> float:  # fmt: skip
    level = found.levels[number]
    flow = Flow(marks, LEFT, y)
    flow.text(level.name, "name")
    size = format_bytes(level.bytes)
    flow.text(f"{size}, {level.ways} ways, lines of {level.line} B", "soft")
    y = flow.y + _LINE
    most = max((each.counts.accesses for each in tensors), default=1)
    rest = [each.counts for each in tensors if each.tensor not in drawn]
    for each in tensors:
        if each.tensor in drawn:
            y = _draw_tensor(each, most, drawn[each.tensor], y, marks)
    if rest or not tensors:
        accesses, misses = (sum(getattr(e, n) for e in rest) for n in ("accesses", "misses"))
        others = (
            f"{len(rest)} other tensors {format_count(misses)} of {format_count(accesses)} miss"
        )
        Flow(marks, LEFT, y).text(others if rest else "no access reaches it", "soft")
        y += _LINE
    return y + 6


def _draw_tensor(each: TensorCounts, most: int, color: str, y: float, marks: list[Mark]) -> float:
    counts, name, keys = each.counts, each.tensor.name, list(each.keys)
    words = (
        f"{name}: {counts.misses:,} of {counts.accesses:,} accesses miss in {counts.level.name}, "
        f"{counts.hits:,} hit; simulated"
    )
    flow = Flow(marks, LEFT, y)
    text = f"{name} {format_count(counts.misses)} of {format_count(counts.accesses)} miss"
    flow.text(f"{text}, {percent(counts.miss_rate)}", "label", keys, words)
    if each.predicted is not None:
        shown, title = _prediction(each)
        flow.text(shown, "label" if each.differs else "soft", keys, title)
    y = flow.y + _LINE + 1
    whole = (WIDTH - 2 * LEFT) * counts.accesses / most
    marks.append({"shape": "rect", "role": "axis", "x": LEFT, "y": y,
                  "w": round(max(whole, _LEAST), 1), "h": _BAR, "title": words,
                  "keys": keys})  # fmt: skip
    if counts.misses:
        part = max(whole * counts.miss_rate, _LEAST)
        marks.append({"shape": "rect", "role": "bar", "x": LEFT, "y": y, "w": round(part, 1),
                      "h": _BAR, "fill": color, "title": words, "keys": keys})  # fmt: skip
    return y + _BAR + 4


def _prediction(each: TensorCounts) -> tuple[str, str]:
    """Return the prediction of misses as a short and as a long text."""
    predicted, misses = each.predicted or 0, each.counts.misses
    title = f"{each.tensor.name}: {predicted:,} misses predicted, {misses:,} simulated"
    if not each.differs:
        return f"predicted {format_count(predicted)}", title
    if not predicted or not misses:
        return f"≠ predicted {format_count(predicted)}", title
    quotient = max(predicted, misses) / min(predicted, misses)
    times = f"{quotient:.1f}" if quotient < 9.95 else f"{quotient:,.0f}"
    word = "more" if predicted > misses else "fewer"
    return f"≠ predicted {format_count(predicted)}, {times} × {word}", title


def _draw_memory(
    found: CacheSimulation, drawn: dict[Buffer, str], y: float, marks: list[Mark]
) -> float:
    flow = Flow(marks, LEFT, y)
    flow.text("To and from memory", "name")
    flow.text("of the sample:" if found.sampled else "simulated:", "soft")
    for tensor, color in drawn.items():
        size = format_bytes(found.memory_bytes(tensor))
        title = f"{tensor.name}: lines that the last cache fetches and writes back"
        flow.swatch(color, f"{tensor.name} {size}", [], title)
    rest = sum(found.memory_bytes(tensor) for tensor in found.tensors if tensor not in drawn)
    if rest:
        flow.text(f"others {format_bytes(rest)}", "soft")
    return flow.y + _LINE + 8


def _rows(found: CacheSimulation, levels: list[list[TensorCounts]]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for number, tensors in enumerate(levels):
        for each in tensors:
            written = int(found.written[number, found.placements[each.tensor].number])
            counts = each.counts
            mark = "≠" if each.differs else ""
            rows.append([
                counts.level.name, each.tensor.name, "the program", counts.accesses, counts.hits,
                counts.misses, each.predicted, mark, written,
            ])  # fmt: skip
    for loop in by_loop(found):
        counts = loop.counts
        rows.append([
            counts.level.name, loop.tensor.name, loop_text(loop.key), counts.accesses, counts.hits,
            counts.misses, None, "", None,
        ])  # fmt: skip
    return rows
