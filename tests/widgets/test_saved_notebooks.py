"""Notebooks as their readers run, save and convert them, and open them where no kernel runs."""

import json
import shutil
from pathlib import Path

import pytest
from traitlets.config import Config

from tests.notebook_sizes import SMALLER
from tests.widgets import jupyter

pytest.importorskip("dlcompiler_widgets")
pytestmark = pytest.mark.campaign(whole_file=True)

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
CLASS_HOUR = "02_explorer.ipynb"
WIDGETS = 6
"""How many widgets the class hour displays."""
PICTURES = 4
"""How many of them have a drawn picture; the others are texts."""
IPC = Config({"KernelManager": {"transport": "ipc"}})  # ports could be taken by another test

LOADED = "image => image.complete && image.naturalWidth > 0 && image.checkVisibility()"
HAS_RUN = """
() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
  .every((prompt) => /\\d/.test(prompt.innerText))
  || [...document.querySelectorAll(".jp-OutputArea-output")]
  .some((output) => output.textContent.includes("Traceback"))
"""
HOLDS = """
text => document.querySelector(".dlc-static")?.textContent.includes(text)
"""
ANSWERS = {
    "01_quickstart.ipynb": [
        "print(dlc.lower(s, [image, weight, result], observers=[dlc.show_changes]))",
        "kernel = dlc.build(s, [image, weight, result])\nassert kernel.llvm_ir and kernel.assembly",
        "assert s.trace.to_python() and s.trace.to_json() and s.moves(s[tile])",
    ],
    "03_autotuning.ipynb": [
        "lucky = autotune.tune(work, trials=2, tuner='random', seed=0, block=True,\n"
        "                      db=autotune.RecordStore(':memory:'))\n"
        "tuning_picture(lucky)",
        "a, b = [trial.index for trial in run.trials if trial.seconds][:2]\n"
        "tuning_picture(run, 'why', a=a, b=b)",
        "mine = autotune.tune(work, trials=2, first=[own.values], block=True,\n"
        "                     db=autotune.RecordStore(':memory:'))\n"
        "assert mine.trials[0].config.values == own.values",
    ],
    "04_gpu.ipynb": [
        "s[tile].storage_align(s[tile].op.axis[0], 32, 1)\n"
        "assert 'No lane waits for a bank' in Banks(s, target=gpu).static_text()",
        "gpu = 'v100'\nprint(rung(gpu_ladders.SGEMM.rungs[0]))",
        "Waves(*gpu_ladders.tiles_1d(512), target=gpu)",
    ],
    "05_accelerator.ipynb": [
        "three = Accelerator(\n"
        "    'unit', unit.memories, [Engine('move'), Engine('math'), Engine('store')],\n"
        "    [copy('move', into='vectors', cycles=lambda n: 8 + 4 * n),\n"
        "     copy('store', out_of='vectors', cycles=lambda n: 8 + 4 * n),\n"
        "     tensor_op('math', multiply_add, cycles=lambda n: 4 + n)])\n"
        "kernel = dlc.build(*filtered(8, 2), target=three)\n"
        "assert kernel.report().cycles < overlapped.report().cycles",
        "unit = unit.with_(memories=[Memory('vectors', (16,), 'int32', 128)])\n"
        "assert run_filter(16, threads=2).report().cycles < overlapped.report().cycles",
        "try:\n    run_filter(64)\nexcept TargetError as error:\n    print(error)",
        "slow = vta.with_(port=MemoryPort(8, 200))\n"
        "waits = [dlc.build(*blocked(*how), target=slow).report().cycles\n"
        "         for how in ((), (1, True), (2, True))]\n"
        "assert waits == sorted(waits, reverse=True)",
    ],
    "06_fusion.ipynb": [
        "(moved,) = [d for d in graph.optimize(builders.resnet(50, image=32).bound).decisions()\n"
        "            if d.rule == 'moved after anchor']\n"
        "assert 'flatten' in moved.subject[1]",
        "for each in (block, graph.keep_apart(block, 'conv', 'bn')):\n"
        "    model = graph.build(each)\n"
        "    print(model, sum(t.seconds for t in model.profile(*graphs.inputs_of(model))))",
        "from dlcompiler.graph.passes import FusionOptions\n"
        "powers = op.exp(graph.var('x', (8, 8)))\n"
        "softmax = op.divide(powers, op.sum(powers, axis=-1, keepdims=True))\n"
        "module = graph.Module.from_expr(softmax)\n"
        "rows = {'fuse_ops': {'options': FusionOptions(rows=True)}}\n"
        "whole = graph.optimize(module, context=PassContext(3, config=rows))\n"
        "assert len(graph.plan_memory(whole).kernels) == 1",
    ],
    "07_models.ipynb": [
        "one = graph.from_onnx('models/digits.onnx', shapes={'image': (1, 1, 8, 8)})\n"
        "batch = batches[0][:1]\n"
        "slow = profile(graph.build(one, threads=1))\n"
        "assert 'conv' in max(slow, key=slow.get)",
        "batch = batches[0]\n"
        "apart = graph.build(graph.keep_apart(module, 'block_add', 'block_relu'), threads=1)\n"
        "assert len(apart.steps) == len(model.steps) + 1\n"
        "print(sum(profile(apart).values()) - sum(times.values()))",
        "code = graph.build(module, 'c')\ncode.save('digits_c')\nassert 'model' in code.header",
    ],
}
"""What a reader answers to the suggestions at the end of a notebook."""


class Reader:
    """Someone who runs a notebook in JupyterLab and does what it asks for."""

    def __init__(self, server, browser, path, front="lab"):
        self.server, self.file = server, server.folder / path
        kernel = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        server.request("/api/sessions", kernel)
        context = browser.new_context(viewport={"width": 1200, "height": 1000})
        self.notebook = jupyter.Notebook(context.new_page(), self.file.stem, front)
        self.notebook.watch()
        self.notebook.open(server.address(path, front))
        self.page = self.notebook.page

    def run_all(self):
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(HAS_RUN, polling=jupyter.POLL_MS)
        errors = self.page.locator(".jp-OutputArea-output", has_text="Traceback")
        assert not errors.all_inner_texts()
        self.notebook.idle()

    def explorer(self):
        return self.page.locator(".dlc-explorer:not(.dlc-single, .dlc-tuning, .dlc-graph)").first

    def click(self, key):
        self.explorer().locator(f'[data-key="{key}"]').first.click()
        self.settle()

    def choose(self, key):
        self.explorer().locator(f'[role="treeitem"][data-key="{key}"]').click()
        self.settle()

    def settle(self):
        self.page.wait_for_function(
            "root => !root.hasAttribute('aria-busy')", arg=self.explorer().element_handle(),
            polling=jupyter.POLL_MS,
        )  # fmt: skip

    def save(self, text):
        """Save the notebook when its first picture, the Explorer's, has a text."""
        self.page.wait_for_function(HOLDS, arg=text, polling=jupyter.POLL_MS)
        before = self.file.stat().st_mtime_ns
        self.notebook.page.locator(".jp-CodeCell .cm-content").first.click()
        self.page.keyboard.press("Control+s")
        while self.file.stat().st_mtime_ns == before:
            self.page.wait_for_timeout(50)

    def close(self):
        self.page.context.close()
        self.server.end_kernels()


def shown_pictures(page):
    """The static pictures that are visible, and how many images in them have been drawn."""
    stills = [each for each in page.locator(".dlc-static").all() if each.is_visible()]
    images = [image for each in stills for image in each.locator("img").all()]
    return stills, [image.evaluate(LOADED) for image in images]


@pytest.fixture(scope="module")
def libraries():
    """nbformat, nbclient and nbconvert, which take a second: not while tests are collected."""
    return tuple(map(pytest.importorskip, ("nbformat", "nbclient", "nbconvert")))


# -- a notebook that is saved, and opened in another JupyterLab ------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def saved(folder, browser):
    """A folder in which a reader has run the class hour, done its tasks, and saved it."""
    with jupyter.serving(folder) as server:
        server.set(jupyter.TRACKER, windowingMode="none")
        shutil.copy(FOLDER / CLASS_HOUR, server.folder)
        reader = Reader(server, browser, CLASS_HOUR)
        reader.run_all()
        _do_the_tasks(reader)
        assert reader.page.locator(".dlc-explorer").count() == WIDGETS
        assert reader.page.locator(".dlc-static").count() == WIDGETS
        assert shown_pictures(reader.page) == ([], []), "live views hide their pictures"
        reader.save("cache_write")
        assert not reader.notebook.errors
        reader.close()
    return folder


def _do_the_tasks(reader):
    """Do what the class hour asks for, by clicks in its Explorer."""
    explorer = reader.explorer()
    explorer.scroll_into_view_if_needed()
    explorer.locator('[data-key="level"]').select_option(label="work")
    reader.settle()
    jupyter.open_panes(explorer)
    reader.choose("C/k.inner")
    reader.click("unroll C C.k.inner")
    assert "unrolled" in explorer.locator(".dlc-tree").inner_text()
    reader.click("measure")
    explorer.locator(".dlc-known", has_text="measured").wait_for()
    reader.choose("C")
    refused = explorer.locator('[data-key="cache_write C C local"]')
    assert refused.get_attribute("aria-disabled") == "true"
    assert "parallel" in refused.get_attribute("aria-label")
    explorer.locator(".dlc-state", has_text="create").first.click()
    reader.settle()
    reader.choose("C")
    reader.click("cache_write C C local")
    explorer.locator('[role="treeitem"][data-key="C.local"]').wait_for()


@pytest.fixture(scope="module")
def another_lab(saved):
    """A server that is started anew; it knows which notebooks were saved by its user."""
    with jupyter.serving(saved) as server:
        foreign = json.loads((server.folder / CLASS_HOUR).read_text())
        foreign["cells"][0]["source"] = ["# Somebody else wrote this"]
        (server.folder / "foreign.ipynb").write_text(json.dumps(foreign))
        yield server


@pytest.mark.parametrize(
    ("front", "path"),
    [("lab", CLASS_HOUR), ("lab", "foreign.ipynb"), ("notebook", CLASS_HOUR)],
    ids=["lab-trusted", "lab-untrusted", "notebook-trusted"],
)
def test_a_saved_notebook_shows_its_pictures_in_another_lab(another_lab, browser, front, path):
    reader = Reader(another_lab, browser, path, front)
    page = reader.page
    page.locator(".dlc-static").last.wait_for()
    is_trusted = path == CLASS_HOUR
    assert bool(page.locator(".jp-OutputArea .jp-mod-trusted").count()) is is_trusted
    stills, images = shown_pictures(page)
    assert len(stills) == WIDGETS
    assert len(images) >= PICTURES
    assert all(images)
    assert page.locator(".dlc-explorer").count() == 0
    assert not any(each.is_visible() for each in page.get_by_text("model not found").all())
    assert not any(each.is_visible() for each in page.get_by_text("Loading widget").all())
    explorer = stills[0].inner_text()
    assert "cache_write C" in explorer
    assert "measured" in explorer
    assert "C.local[i.c, j.c] += A[i.c, k]*B[k, j.c]" in explorer.replace("\xa0", " ")
    assert not reader.notebook.foreign
    reader.close()


def test_each_picture_in_the_file_is_bounded(saved, libraries):
    nbformat, _, _ = libraries
    book = nbformat.read(saved / "root" / CLASS_HOUR, as_version=4)
    pages = [
        output.data["text/html"]
        for cell in book.cells
        for output in cell.get("outputs", ())
        if "dlc-static" in output.get("data", {}).get("text/html", "")
    ]
    assert len(pages) == WIDGETS
    assert all(len(page.encode()) < 61_000 for page in pages)


# -- a notebook that is converted ------------------------------------------------------------------

DISPLAYS = [
    "%load_ext dlcompiler_widgets\n"
    "from dlcompiler import te\n"
    "from dlcompiler_widgets import Explorer, MemoryScopes, TuningView\n"
    "from tests import watched_runs\n"
    "A = te.placeholder((64, 64), name='A')\n"
    "B = te.compute((64, 64), lambda i, j: A[j, i], name='B')\n"
    "s = te.create_schedule(B.op)\n"
    "s",
    "display(MemoryScopes(s, target='x86-64-avx2'))",
    "TuningView(watched_runs.ended(24))",
    "s[B].parallel(B.op.axis[0]);",
]


@pytest.fixture(scope="module")
def executed(libraries):
    """A notebook as ``nbconvert --execute`` leaves it: with the state of its widgets."""
    nbformat, nbclient, _ = libraries
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in DISPLAYS])
    client = nbclient.NotebookClient(book, kernel_name="python3", timeout=None, config=IPC)
    client.execute()
    assert book.metadata.widgets
    return book


@pytest.mark.parametrize("has_state", [True, False], ids=["state stored", "no state"])
def test_a_converted_notebook_shows_its_pictures_offline(
    libraries, browser, executed, tmp_path, has_state
):
    nbformat, _, nbconvert = libraries
    book = nbformat.from_dict(json.loads(json.dumps(executed)))
    if not has_state:
        del book.metadata["widgets"]
    html, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    (tmp_path / "converted.html").write_text(html)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(20_000)
    # Without network, the page of nbconvert waits for its own scripts: only ours matter.
    page.goto((tmp_path / "converted.html").as_uri(), wait_until="commit")
    page.locator(".dlc-static").last.wait_for()
    stills, images = shown_pictures(page)
    assert len(stills) == 3
    assert len(images) >= 4
    assert all(images)
    assert "1 parallel" in stills[0].inner_text(), "the picture is that of the last cell"
    context.close()


# -- the other notebooks ---------------------------------------------------------------------------


def _copied(nbformat, server, name):
    """Copy a notebook at sizes that a test has time for, with a reader's answers at its end."""
    book = nbformat.read(FOLDER / name, as_version=4)
    for text, smaller in SMALLER[name].items():
        (cell,) = [cell for cell in book.cells if text in cell.source]
        cell.source = cell.source.replace(text, smaller)
    book.cells += [nbformat.v4.new_code_cell(answer) for answer in ANSWERS[name]]
    shutil.copytree(FOLDER / "models", server.folder / "models", dirs_exist_ok=True)
    nbformat.write(book, server.folder / name)


@pytest.mark.campaign(longest=True)  # by itself: it needs nothing of the saved notebook
@pytest.mark.parametrize("name", sorted(SMALLER))
def test_a_notebook_runs_as_its_readers_run_it(libraries, lab, browser, name):
    if name.startswith("07"):
        pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")
    _copied(libraries[0], lab, name)
    lab.set(jupyter.TRACKER, windowingMode="none")
    reader = Reader(lab, browser, name)
    reader.run_all()
    if name.startswith("03"):
        page = reader.page
        page.locator('.dlc-tuning [data-key="tab knobs"]').click()
        page.locator(".dlc-tuning tbody tr").first.click()
        page.locator('.dlc-tuning [data-key="open"]').click()
    if name.startswith(("06", "07")):
        _open_a_kernel(reader)
    if name.startswith("05"):
        shown = reader.page.locator(".jp-OutputArea svg, .jp-OutputArea img")
        shown.first.wait_for()
        assert shown.count() >= 6
    else:
        tree = reader.explorer().locator('[role="treeitem"]')
        tree.first.wait_for()
    assert not reader.notebook.errors
    assert not reader.notebook.foreign
    lab.set(jupyter.TRACKER)
    reader.close()


def _open_a_kernel(reader):
    """Open the schedule of a kernel below its graph, go back, and open it again."""
    view = reader.page.locator(".dlc-graph").first
    view.scroll_into_view_if_needed()
    view.locator('.dlc-graph-frame[data-kind="kernel"]').first.click(position={"x": 5, "y": 5})
    view.locator('[data-key="schedule"]').click()
    reader.explorer().wait_for()
    back = reader.page.get_by_role("button", name="Back to the graph")
    back.click()
    back.wait_for(state="detached")
    assert not reader.explorer().count()
    view.locator('[data-key="schedule"]').click()


def test_every_notebook_is_run():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == {CLASS_HOUR, *SMALLER}
