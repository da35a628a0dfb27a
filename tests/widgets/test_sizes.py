"""What is sent to the page stays small: no trait over 1 MB, whatever tab or export is open."""

import json

import pytest

from dlcompiler.bench.programs import chain, packed_conv2d, six_step_gemm

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

LIMIT = 1_000_000
PROGRAMS = {
    "gemm": lambda: six_step_gemm(1024),
    "conv2d": packed_conv2d,
    "chain": lambda: chain(40),
}


def sizes(explorer):
    shown = {name: getattr(explorer, name) for name in explorer.keys if not name.startswith("_")}
    return {
        name: len(json.dumps(value))
        for name, value in shown.items()
        if isinstance(value, dict | list | str)
    }


@pytest.mark.campaign
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_trait_is_over_a_megabyte(program):
    schedule, args = PROGRAMS[program]()
    explorer = Explorer(schedule, args, level="all")

    def send(op, **request):
        explorer.intent = {"id": f"{op} {request}", "op": op, "args": request}
        explorer._session.exporting.wait()
        found = {name: size for name, size in sizes(explorer).items() if size > LIMIT}
        assert not found, (op, request)

    nodes = explorer.history["rows"]
    loops = [row["key"] for row in explorer.tree["rows"] if row["type"] == "loop"]
    send("choose", key=loops[-1])
    for pane in ("picture", "text"):
        for tab in getattr(explorer, pane)["tabs"]:
            send(pane, tab=tab["name"])
    send("compare", a=nodes[0]["id"], b=nodes[-1]["id"])
    explorer._session.code.compiling.close()
    kinds = ("python", "json", "notebook", "link")
    for kind in (*kinds, "html") if program == "gemm" else kinds:
        send("export", kind=kind)
        assert explorer.export["state"] == "ready"
    explorer.close()
