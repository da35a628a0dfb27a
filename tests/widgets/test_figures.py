"""Figures for papers: what they say, and that they are written the same each time."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.errors import DLCompilerError, MeasurementError
from dlcompiler.measurement import StepTable
from dlcompiler.schedule import create_schedule

pytest.importorskip("dlcompiler_widgets")
pytest.importorskip("matplotlib")
from dlcompiler_widgets import compare_tuners, figures, tuning_picture

from dlcompiler.views.tuning.one_scene import run_scene
from tests import watched_runs

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</svg><script>alert(1)</script>"


def steps(*times_s, baseline=None, ratio=None, names="abcdefgh"):
    rows = [
        {"step": name, "median_s": t, "spread_s": t / 50, "gflops": 1 / t, "ratio": ratio,
         "label": "measured"}
        for name, t in zip(names, times_s, strict=False)
    ]  # fmt: skip
    return {"baseline": baseline, "steps": [{"row": row} for row in rows]}


def matmul(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op)


def words_of(figure):
    root = ET.fromstring(figure.svg())
    return " ".join("".join(node.itertext()) for node in root.iter(f"{SVG}text"))


def test_a_ladder_says_how_much_faster_each_step_is():
    figure = figures.speedup_ladder(steps(2.0, 0.5, 0.1))
    words = words_of(figure)
    for text in ("1.0×", "4.0×", "20×", "2 s", "500 ms", "100 ms", "(measured)", "over “a”"):
        assert text in words
    assert figure.words == "a 1.0×, b 4.0×, c 20×; measured."


def test_a_ladder_has_its_baseline():
    figure = figures.speedup_ladder(steps(2.0, 0.5, baseline="numpy.matmul", ratio=0.5))
    # The baseline is twice as fast as each step: 2 and 8 times the first one; 5 in the middle.
    assert "numpy.matmul 5.0×" in words_of(figure)
    assert "numpy.matmul 5.0×" in figure.words


def test_a_ladder_takes_a_table_of_steps():
    with pytest.raises(MeasurementError, match="no steps"):
        figures.speedup_ladder(StepTable())


def test_a_map_of_memory_has_units_and_says_what_its_numbers_are():
    words = words_of(figures.memory_map(matmul(), target="x86-64-avx2", loop="C/k"))
    for text in ("L1d", "32 KiB", "L2", "L3", "memory", "[byte]", "(predicted)", "(exact)"):
        assert text in words
    for buffer in "ABC":
        assert buffer in words.split()


def test_a_map_shows_what_the_picture_shows():
    from dlcompiler.pipeline.checks import default_args
    from dlcompiler.target import resolve
    from dlcompiler.views.memory.footprints import footprint_of
    from dlcompiler.views.memory.scopes import memory_use
    from dlcompiler.views.render.units import format_bytes

    s, target = matmul(), resolve("x86-64-avx2")
    use = memory_use(footprint_of(s, default_args(s), target), target, "C/k")
    words = words_of(figures.memory_map(s, target=target, loop="C/k"))
    for level in use.levels[:-1]:
        assert format_bytes(level.moved_bytes) in words


def test_what_cannot_be_drawn_is_said():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(DLCompilerError):
        figures.memory_map(create_schedule(B.op))


@pytest.mark.campaign
@pytest.mark.parametrize("ending", ["svg", "pdf"])
@pytest.mark.parametrize("kind", ["ladder", "map"])
def test_it_is_written_the_same_each_time(kind, ending, tmp_path):
    def made():
        if kind == "ladder":
            return figures.speedup_ladder(steps(2.0, 0.5, baseline="numpy.matmul", ratio=0.5))
        return figures.memory_map(matmul(), target="x86-64-avx2")

    figure = made()
    paths = [tmp_path / f"{n}.{ending}" for n in range(3)]
    figure.save(paths[0])
    figure.save(paths[1])
    made().save(paths[2])
    assert len({path.read_bytes() for path in paths}) == 1
    assert b"0x" not in repr(figure).encode()


def test_a_png_can_be_written(tmp_path):
    figures.speedup_ladder(steps(2.0, 0.5)).save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_names_are_text():
    svg = figures.speedup_ladder(steps(1.0, 0.5, names=[HOSTILE, "b"]), title=HOSTILE).svg()
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))
    assert "alert(1)" in svg


@pytest.mark.campaign
def test_matplotlib_waits_for_the_first_figure():
    code = (
        "import sys, dlcompiler_widgets.figures as f; assert 'matplotlib' not in sys.modules; "
        "import dlcompiler_widgets; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# -- tuning runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["best", "predicted", "knobs", "map", "time"])
def test_every_picture_of_a_run_is_a_figure(what):
    seen = watched_runs.seen()
    figure = figures.figure(seen, what)
    scene = run_scene(seen, what)
    assert (figure.title, figure.words) == (scene["title"], scene["summary"])
    words = words_of(figure)
    for mark in scene["marks"]:
        assert mark.get("text", "") in words


def test_a_figure_of_a_run_is_written_the_same_each_time():
    seen = watched_runs.seen()
    first, again = (figures.figure(seen, "best", against="seconds").svg() for _ in range(2))
    assert first == again
    assert "seconds since the start [s]" in first


def test_a_figure_that_there_is_not_is_refused():
    with pytest.raises(DLCompilerError, match="there is no such picture"):
        figures.figure(watched_runs.seen(), "cost")
    with pytest.raises(DLCompilerError, match="explain a run by its cost model: there is none"):
        figures.figure(watched_runs.seen(), "importance")


def test_why_is_a_picture_and_a_figure():
    run = watched_runs.ended(40)
    best = tuning_picture(run, "why")
    assert best.scene["title"] == f"Why trial {run.best.index}"
    assert tuning_picture(run, "why", a=9, b=10).scene["title"] == "Why trial 9 before trial 10"
    assert figures.figure(run, "why", a=9).title == "Why trial 9"
    assert "decides mostly by" in repr(tuning_picture(run, "importance"))
    with pytest.raises(DLCompilerError, match="there is no such trial"):
        tuning_picture(run, "why", a=99)


def test_tuners_are_a_figure_and_a_picture():
    groups = {"$x^2$ & <b>": [[1.0, 5.0, 9.0]], "random": [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]}
    words = words_of(figures.tuners(groups, title=HOSTILE))
    assert "$x^2$ & <b> (1)" in words
    picture = compare_tuners(groups, title=HOSTILE)
    assert HOSTILE not in picture._repr_html_()
    assert words_of(picture.figure()) == words
    assert "random never" in repr(picture)
