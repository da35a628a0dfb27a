"""All readers of files: a good file for each, and what must hold of a damaged one.

A reader refuses what is damaged with a `UserError`, or returns what the file truly holds: where the
format has a digest, exactly what was written; where people may edit it, something that can be used
and written again. Where the rest of a file is promised, the undamaged lines or rows come back.

`tests/architecture/test_file_readers.py` holds `READERS` and `NO_CAMPAIGN` against the code.

Long because it is one table: a reader, its good file and what a damaged one may become.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import sqlite3
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dlcompiler import graph, te
from dlcompiler.autotune import RecordStore, read_records, write_line
from dlcompiler.autotune.pools.replay import ReplayTable, TableRow
from dlcompiler.autotune.records.autotvm_log import LogLine, read_log, read_log_line, write_log_line
from dlcompiler.autotune.records.autotvm_records import import_autotvm
from dlcompiler.autotune.templates import parameters_of
from dlcompiler.bench.array_files import read_array
from dlcompiler.bench.document import merged, read_document
from dlcompiler.bench.gpu_model import read_space
from dlcompiler.bench.gpu_model_works import KERNELS
from dlcompiler.bench.page import page
from dlcompiler.bench.shipping import known_configs
from dlcompiler.bench.sweep import read_sweep, summary, texts_of
from dlcompiler.compat.autotvm.recording import encode, load_from_file
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph import op
from dlcompiler.graph.passes import fuse_ops
from dlcompiler.json_text import parse
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.measurement.known_ceilings import ceilings_text, read_ceilings
from dlcompiler.ops import tuned
from dlcompiler.pipeline import build
from dlcompiler.runtime import libraries
from dlcompiler.runtime.c_source import c_compiler
from dlcompiler.runtime.libraries import load_library, save_library, save_object
from dlcompiler.runtime.object_cache import CompiledObject, ObjectCache
from dlcompiler.runtime.object_files import read_facts
from dlcompiler.runtime.timing import measured_here
from dlcompiler.schedule import Trace, create_schedule
from dlcompiler.schedule.saved.document import (
    FRAGMENT,
    Saved,
    from_json,
    from_link,
    to_json,
    to_link,
)
from dlcompiler.simulate.accelerators import (
    DramBuffer,
    InstructionProgram,
    assemble,
    disassemble,
    encoding_of,
    load_program,
)
from dlcompiler.simulate.accelerators.measured import compare_file
from dlcompiler.space import Knob, Workload
from dlcompiler.target import resolve
from dlcompiler.target.accelerators.vta import preset
from tests import model_files
from tests.autotune.conftest import make_record
from tests.file_samples import Inside, Reader, Sample

ROOT = Path(__file__).parents[1]


# -- code ------------------------------------------------------------------------------------------


def _kernel() -> Any:
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i, j] * 2 + 1, name="B")
    return build(create_schedule(B.op), [A, B], name="lines")


def _library(suffix: str) -> Callable[[Path], Sample | None]:
    def make(folder: Path) -> Sample | None:
        if suffix == ".so" and c_compiler() is None:
            return None
        path = folder / f"good{suffix}"
        (save_object if suffix == ".o" else save_library)(_kernel(), path)
        data = path.read_bytes()
        a = np.arange(12, dtype="float32").reshape(3, 4)

        def check(changed: bytes, place: Path) -> None:
            function = load_library(place)
            assert changed == data, "a changed file was loaded"
            b = np.empty((3, 4), "float32")
            function(a, b)
            assert (b == a * 2 + 1).all()

        return Sample(data, check, suffix=suffix)

    return make


def _container(folder: Path) -> Sample:
    """Return a container whose digest holds, with damage in its description (not in its code)."""
    del folder
    good = libraries.describe(_kernel())
    code = {name: good.pop(name) for name in ("text", "triple", "cpu", "features")}

    def pack(text: bytes) -> bytes:
        fields = json.loads(text)
        whole = {**fields, **code} if isinstance(fields, dict) else fields
        return libraries._container(whole)

    def check(changed: bytes, place: Path) -> None:
        del changed
        repr(load_library(place))

    text = json.dumps(good).encode()
    return Sample(pack(text), check, Inside(text, pack))


def _model(folder: Path) -> Sample:
    """Return a model in a file whose digest holds, with damage in its text (not in its code)."""
    x = graph.var("x", (2, 8))
    weight, bias = (graph.constant(np.ones(shape, "f")) for shape in ((4, 8), 4))
    made = op.nn.softmax(op.nn.bias_add(op.nn.dense(x, weight), bias))
    path = folder / "good"
    graph.build(graph.Module.from_expr(made)).save(path)
    head, length, rest = path.read_bytes().split(b"\n", 2)
    text, weights = json.loads(rest[: int(length)]), rest[int(length) :]
    codes = [kernel["code"] for kernel in text["kernels"]]
    names = ("text", "triple", "cpu", "features")
    hidden = [{name: code.pop(name) for name in names} for code in codes]

    def pack(changed: bytes) -> bytes:
        with contextlib.suppress(Exception):
            found = json.loads(changed)
            for kernel, code in zip(found["kernels"], hidden, strict=True):
                kernel["code"].update(code)
            changed = json.dumps(found).encode()
        body = b"%d\n%b%b" % (len(changed), changed, weights)
        digest = hashlib.sha256(body).hexdigest().encode()
        return head[: -len(digest)] + digest + b"\n" + body

    def check(changed: bytes, place: Path) -> None:
        del changed
        model = graph.load_model(place)
        repr(model)

    inside = json.dumps(text).encode()
    return Sample(pack(inside), check, Inside(inside, pack))


def _cache_entry(folder: Path) -> Sample:
    made = CompiledObject(bytes(range(256)) * 40, ("f", "g"), ("expf",))
    cache_folder = folder / "objects"
    store = ObjectCache(cache_folder)
    store.store("key", made)
    place = cache_folder / "key.object"

    def check(changed: bytes, path: Path) -> None:
        del path
        place.write_bytes(changed)
        assert store.load("key") in (made, None)

    return Sample(place.read_bytes(), check)


def _ceilings(folder: Path) -> Sample:
    del folder
    made = Ceilings(2, "float32", 120.5, _reads(), measured_here())

    def check(changed: bytes, path: Path) -> None:
        del path
        text = changed.decode(errors="replace")
        assert read_ceilings(text, 2, "float32", 1001.0) in (made, None)

    return Sample(ceilings_text(made, 1000.0).encode(), check)


def _reads() -> tuple[tuple[str, float], ...]:
    levels = [level.name for level in resolve("cpu").caches]
    return tuple((name, 400.0 / (n + 1)) for n, name in enumerate([*levels, "memory"]))


def _object_facts(folder: Path) -> Sample:
    save_object(_kernel(), folder / "facts.o")

    def check(changed: bytes, path: Path) -> None:
        del path
        facts = read_facts(changed)
        assert facts is None or all(isinstance(name, str) for name in facts.needs)

    return Sample((folder / "facts.o").read_bytes(), check, refuses_with=DLCompilerError)


# -- records ---------------------------------------------------------------------------------------

RECORDS = [
    make_record(
        trial=n, target=("x86:zen", "arm:one")[n % 2], outcome=("ok", "crashed")[n % 3 == 2]
    )
    for n in range(8)
]


def _kept(changed: bytes, good: dict[bytes, Any], found: Sequence[Any]) -> None:
    """Hold that what an undamaged line says was found, in its order."""
    rest = iter(found)
    for line in changed.split(b"\n"):
        if line in good:
            assert good[line] in rest, f"the undamaged line {line!r} was not read"


def _record_lines(folder: Path) -> Sample:
    del folder
    good = {write_line(record).encode(): record for record in RECORDS}

    def check(changed: bytes, path: Path) -> None:
        found, _ = read_records(path)
        _kept(changed, good, found)
        unkeyed = sum(b'"key"' not in line for line in changed.split(b"\n"))
        assert sum(record not in RECORDS for record in found) <= unkeyed
        with RecordStore() as store:
            assert store.add(found) <= len(found)
            store.records()
            assert not store.unreadable

    return Sample(b"".join(line + b"\n" for line in good), check)


def _record_line(folder: Path) -> Sample:
    del folder

    def check(changed: bytes, path: Path) -> None:
        del changed
        for record in read_records(path)[0]:
            with RecordStore() as store:
                store.add([record])
                assert list(store.records()) == [record]

    text = json.dumps(RECORDS[0].to_json()).encode()
    return Sample(text, check, Inside(text, bytes))


def _database(*, is_log: bool) -> Callable[[Path], Sample]:
    """Make a database; the file that is damaged is it, or its write-ahead log."""

    def make(folder: Path) -> Sample:
        path = folder / "records.db"
        with RecordStore(path) as store:
            store.add(RECORDS)
            store.claim("run", "plan")
            if is_log:
                main, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
        if not is_log:
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            main, log = path.read_bytes(), b""

        def check(changed: bytes, place: Path) -> None:
            del place
            for end in ("-wal", "-shm", "-journal"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            path.write_bytes(main if is_log else changed)
            if is_log:
                Path(f"{path}-wal").write_bytes(changed)
            for is_read_only in (True, False):
                _check_database(path, is_read_only, is_whole=not is_log)

        return Sample(log if is_log else main, check)

    return make


def _check_database(path: Path, is_read_only: bool, *, is_whole: bool) -> None:
    with RecordStore(path, is_read_only=is_read_only) as store:
        found = store.records()
        assert all(record in RECORDS for record in found), "a record that nobody stored"
        if is_whole and not store.unreadable:
            assert list(found) == RECORDS
        best = store.best(RECORDS[0].workload, "x86:zen")
        assert best is None or best in RECORDS
        store.check()
        if not is_read_only:
            store.claim("next", "plan")
            store.add(RECORDS)


# -- logs of AutoTVM -------------------------------------------------------------------------------

LINE = LogLine(
    "llvm -keys=cpu -mcpu=core-avx2", "tutorial/matmul", (512, ("TENSOR", (4, 8), "float32")),
    (("tile_y", "sp", (-1, 8)), ("order", "re", (1, 0)), ("ann", "an", ("unroll", "vec")),
     ("unroll", "ot", 512)), (0.0013, 0.0012), 0, 0.81, 1600000000.5, {}, 17, "0.8.0",
)  # fmt: skip
LOG = [replace(LINE, index=n, args=(512, n)) for n in range(6)]


def _log_check(changed: bytes, path: Path) -> None:
    good = {write_log_line(line).encode(): line for line in LOG}
    found, _ = read_log(path)
    _kept(changed, good, found)
    for line in found:
        assert read_log_line(write_log_line(line)) == line
    with RecordStore() as store:
        import_autotvm(store, path)
        store.records()
        assert not store.unreadable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = list(load_from_file(path))
    _kept(changed, good, [read_log_line(encode(*pair)) for pair in pairs])


def _log(folder: Path) -> Sample:
    del folder
    return Sample(b"".join(write_log_line(line).encode() + b"\n" for line in LOG), _log_check)


def _log_line(folder: Path) -> Sample:
    del folder
    text = write_log_line(LINE).encode()
    return Sample(text, _log_check, Inside(text, bytes))


# -- replay tables, configs, documents -------------------------------------------------------------

TABLE = ReplayTable(
    "small", Workload.of("x", n=8), "cpu:x", {"cpu": "one"}, "2026-01-02",
    (Knob("tile", (1, 2, 4)), Knob("pack", (False, True)), Knob("order", ((0, 1), (1, 0)))),
    ("a rule",),
    (TableRow(0, "ok", 2e-3, 1.5e-3, 2.5e-3), TableRow(1, "ok", 1e-3, 0.9e-3, 1.1e-3),
     TableRow(4, "wrong answer"), TableRow(10, "crashed")),
)  # fmt: skip


def _replay_table(folder: Path) -> Sample:
    TABLE.save(folder / "good.json.gz")

    def check(changed: bytes, path: Path) -> None:
        table = ReplayTable.load(path)
        assert table == TABLE or _is_valid_gzip_of_other(changed)
        rounded = table.to_json()  # times to six digits
        assert ReplayTable.from_json(rounded).to_json() == rounded
        assert table.best.point in table.points
        for row in table.rows:
            repr((table.space.at(row.point), row.result, row.rate))

    text = json.dumps(TABLE.to_json()).encode()
    return Sample((folder / "good.json.gz").read_bytes(), check, Inside(text, gzip.compress))


def _is_valid_gzip_of_other(data: bytes) -> bool:
    """Tell whether a file is a whole gzip: then somebody wrote it so."""
    try:
        return bool(gzip.decompress(data))
    except (OSError, EOFError, zlib.error):
        return False


def _measured_space(folder: Path) -> Sample:
    del folder
    kernel = KERNELS["convolution"]
    names = ",".join((*kernel.parameters, "time_ms"))
    text = f"{names}\n32,4,1,2,0,1,1.25\n64,2,2,2,0,1,\n".encode()

    def check(changed: bytes, path: Path) -> None:
        del changed
        for each in read_space(path, kernel):
            assert each.row.keys() == set(kernel.parameters)
            assert 0 < each.time_ms < 1e9

    return Sample(text, check, suffix=".csv")


def _configs(folder: Path) -> Sample:
    del folder

    def check(changed: bytes, path: Path) -> None:
        del changed
        found = known_configs(path)
        assert tuned.read(parse(json.dumps(tuned.write(found)))) == found

    works = [Workload.of("matmul", m=m, n=64, k=64, dtype="float32") for m in (16, 32)]
    values = {"tile_m": 8, "pack": True, "order": "ij", "sizes": [2, 4]}
    text = json.dumps(tuned.write(dict.fromkeys(works, values))).encode()
    return Sample(text, check, Inside(text, bytes))


def _document(folder: Path) -> Sample:
    del folder
    whole = json.loads((ROOT / "docs/benchmarks/paper.json").read_text("utf-8"))
    names = [table["name"] for table in whole["tables"]][:2]
    whole["tables"] = [t for t in whole["tables"] if t["name"] in names]
    whole["results"] = [r for r in whole["results"] if r["table"] in names][:12]

    def check(changed: bytes, path: Path) -> None:
        del changed
        found = read_document(path)
        page(merged(found, found))

    text = json.dumps(whole).encode()
    return Sample(text, check, Inside(text, bytes))


def _sweep(folder: Path) -> Sample:
    del folder
    names = ("ratio", "ours_seconds", "bound_seconds", "of_bound")
    rows = [
        {"work": f"gemm:{m}x4x4", "family": "gemm", "best_peer": "numpy", "verified": True,
         "reason": "", **dict.fromkeys(names, m / 2)}
        for m in (1, 2)
    ]  # fmt: skip

    def check(changed: bytes, path: Path) -> None:
        del changed
        list(texts_of(read_sweep(path)))

    whole = {"suite": "sweep", "machine": {"cpu": "a processor"}, "results": rows}
    text = json.dumps({**whole, **summary(rows)}).encode()
    return Sample(text, check, Inside(text, bytes))


# -- schedules -------------------------------------------------------------------------------------


def _saved() -> Saved:
    A = te.placeholder((6, 8), name="A")
    B = te.placeholder((8, 20), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((6, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    outer, inner = s[C].split(j, factor=8)
    s[C].reorder(outer, i, k, inner)
    s[C].vectorize(inner)
    s[C].parallel(outer)
    return Saved(s, (A, B, C), name="matmul")


def _schedule(folder: Path) -> Sample:
    del folder

    def check(changed: bytes, path: Path) -> None:
        del path
        saved = from_json(changed.decode("utf-8", "surrogateescape"))
        repr(from_json(to_json(saved)).schedule)

    text = to_json(_saved()).encode()
    return Sample(text, check, Inside(text, bytes))


def _link(folder: Path) -> Sample:
    del folder

    def pack(text: bytes) -> bytes:
        packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
        packed = packer.compress(text) + packer.flush() + zlib.crc32(text).to_bytes(4, "big")
        return FRAGMENT.encode() + base64.urlsafe_b64encode(packed).rstrip(b"=")

    def check(changed: bytes, path: Path) -> None:
        del path
        saved = from_link(changed.decode("utf-8", "surrogateescape"))
        from_link(to_link(saved))

    link = to_link(_saved())
    code = link.partition(FRAGMENT)[2]
    packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
    json_text = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
    return Sample(link.encode(), check, Inside(json_text, pack))


def _small_graph() -> graph.Module:
    x, w = graph.var("x", (2, 4)), graph.constant(np.arange(12, dtype="float32").reshape(3, 4))
    parts = op.split(op.nn.dense(x, w), 3, axis=1)
    return fuse_ops(graph.Module.from_expr(op.clip(parts[0], a_min=0.0, a_max=np.inf)))


def _graph(folder: Path) -> Sample:
    del folder

    def check(changed: bytes, path: Path) -> None:
        del path
        module = graph.from_json(changed)
        repr(module)
        assert graph.modules_equal(graph.from_json(graph.to_json(module)), module)

    text = graph.to_json(_small_graph()).encode()
    return Sample(text, check, Inside(text, bytes))


def _graph_text(folder: Path) -> Sample:
    del folder
    text = graph.module_text(_small_graph()).encode()
    return model_files.read_by(
        text, lambda changed: graph.parse(changed.decode("utf-8", "surrogateescape"))
    )


def _array_file(folder: Path) -> Sample:
    del folder
    stream = io.BytesIO()
    np.save(stream, np.arange(6.0, dtype="float32").reshape(2, 3))

    def check(changed: bytes, path: Path) -> None:
        found = read_array(path)
        assert len(changed) > found.nbytes
        assert changed.endswith((found.tobytes("C"), found.tobytes("F")))

    return Sample(stream.getvalue(), check)


def _trace(folder: Path) -> Sample:
    del folder

    def check(changed: bytes, path: Path) -> None:
        del path
        trace = Trace.from_json(changed.decode("utf-8", "surrogateescape"))
        assert Trace.from_json(trace.to_json()) == trace
        A = te.placeholder((6, 20), name="A")
        C = te.compute((6, 20), lambda i, j: A[i, j] + 1, name="C")
        trace.replay(create_schedule(C.op))

    A = te.placeholder((6, 20), name="A")
    C = te.compute((6, 20), lambda i, j: A[i, j] + 1, name="C")
    s = create_schedule(C.op)
    fused = s[C].fuse(*s[C].op.axis)
    outer, inner = s[C].split(fused, factor=8)
    s[C].vectorize(inner)
    s[C].pragma(outer, "auto_unroll_max_step", 16)
    text = s.trace.to_json().encode()
    return Sample(text, check, Inside(text, bytes))


def _parameters(folder: Path) -> Sample:
    """Return parameters of a workload, which records keep as text."""
    del folder

    def check(changed: bytes, path: Path) -> None:
        del path
        repr(parameters_of(Workload.of("x", shape="json:" + changed.decode("utf-8", "replace"))))

    text = b'[[4, 8], "float32", [[1]], null]'
    return Sample(text, check, Inside(text, bytes))


# -- accelerators ----------------------------------------------------------------------------------


def _instruction_program() -> Any:
    machine = preset("vta-pynq")
    text = (
        "load uop y_size=1 x_size=2 dram_base=512\nload acc y_size=1 x_size=4\n"
        "alu uop_end=1 iter_out=1 iter_in=4 dst_factor_in=1 src_factor_in=1 operation=2 use_imm=1"
        " imm=3 push compute->store\n"
        "store y_size=1 x_size=4 dram_base=64 pop compute->store push store->compute\n"
        "load uop pop store->compute\nfinish"
    )
    return InstructionProgram(
        machine, assemble(machine, text), (DramBuffer("A", 0, (4, 16), "int32"),),
        np.array([[0, 0, 0], [1, 1, 1]]), 2048, 3072, 4096,
    )  # fmt: skip


def _accelerator_program(folder: Path) -> Sample:
    program = _instruction_program()
    program.save(folder / "good")
    head, length, rest = (folder / "good").read_bytes().split(b"\n", 2)
    text, words = rest[: int(length)], rest[int(length) :]

    def pack(changed: bytes) -> bytes:
        body = b"%d\n%b%b" % (len(changed), changed, words)
        digest = hashlib.sha256(body).hexdigest().encode()
        return head[: -len(digest)] + digest + b"\n" + body

    def check(changed: bytes, place: Path) -> None:
        del changed
        found = load_program(place)
        assert disassemble(found) == disassemble(program)
        found.save(place)

    return Sample(pack(text), check, Inside(text, pack))


def _measured_programs(folder: Path) -> Sample:
    del folder
    program = _instruction_program()
    words = encoding_of(program.accelerator).encode_all(program.steps).hex()
    record = {
        "config": {"LOG_BLOCK": 4}, "dram_bytes": 4096, "insn_address": 3072,
        "uop_address": 2048, "instructions": [words[n : n + 32] for n in range(0, len(words), 32)],
        "uops": [0, 1], "dram": [
            {"address": 0, "seed": 1, "dtype": "int32", "low": -9, "high": 9, "count": 64},
            {"address": 1024, "fill": 119, "count": 64},
        ],
        "outputs": [{"address": 1024, "bytes": 64, "sha256": "0" * 64}], "cycles_2021": 1,
        "trace_2021": {"load": [], "compute": [[1, 2]], "store": []},
    }  # fmt: skip
    good = [json.dumps({"id": f"program {n}", **record}).encode() for n in range(3)]

    def check(changed: bytes, place: Path) -> None:
        found = list(compare_file(place, "B"))
        whole = [line for line in changed.split(b"\n") if line in good]
        ran = [each for each in found if each.cycles is not None and each.problem is None]
        assert len(ran) >= len(whole), "an undamaged program was not run"
        json.dumps([each.to_json() for each in found])

    return Sample(b"".join(line + b"\n" for line in good), check)


def _measured_program(folder: Path) -> Sample:
    line = _measured_programs(folder).data.split(b"\n")[0]

    def check(changed: bytes, place: Path) -> None:
        del changed
        for each in compare_file(place, "A"):
            assert each.problem is None or "\n" not in each.problem

    return Sample(gzip.compress(line), check, Inside(line, gzip.compress))


READERS = (
    Reader("library", ("runtime.libraries", "runtime.trust"), _library(".bin")),
    Reader("object", ("runtime.libraries", "runtime.trust"), _library(".o")),
    Reader("shared object", ("runtime.libraries", "runtime.trust"), _library(".so")),
    Reader("description", ("runtime.libraries", "runtime.formulas"), _container),
    Reader("model", ("graph.execution.saving", "runtime.trust"), _model),
    Reader("object cache", ("runtime.object_cache",), _cache_entry),
    Reader("accelerator program", ("simulate.accelerators.containers",), _accelerator_program),
    Reader("measured programs", ("simulate.accelerators.measured",), _measured_programs),
    Reader("measured program", ("simulate.accelerators.measured",), _measured_program),
    Reader("ceilings", ("measurement.known_ceilings",), _ceilings),
    Reader("object facts", ("runtime.object_files",), _object_facts),
    Reader("records", ("autotune.records.jsonl", "autotune.records.record"), _record_lines),
    Reader("record", ("autotune.records.jsonl", "autotune.records.record"), _record_line),
    Reader(
        "database", ("autotune.records.database", "autotune.records.store"), _database(is_log=False)
    ),
    Reader(
        "database log",
        ("autotune.records.database", "autotune.records.store"),
        _database(is_log=True),
    ),
    Reader("AutoTVM log", ("autotune.records.autotvm_log", "compat.autotvm.recording"), _log),
    Reader(
        "AutoTVM line",
        ("autotune.records.autotvm_log", "autotune.records.autotvm_records"),
        _log_line,
    ),
    Reader("replay table", ("autotune.pools.replay",), _replay_table),
    Reader("tuned configs", ("ops.tuned", "bench.shipping"), _configs),
    Reader("measured space", ("bench.gpu_model",), _measured_space),
    Reader("array", ("bench.array_files",), _array_file),
    Reader("bench document", ("bench.document",), _document),
    Reader("sweep", ("bench.sweep",), _sweep),
    Reader("schedule", ("schedule.saved.document",), _schedule),
    Reader("link", ("schedule.saved.document",), _link),
    Reader("trace", ("schedule.trace",), _trace),
    Reader("graph", ("graph.text.document",), _graph),
    *model_files.READERS,
    Reader("graph as text", ("graph.text.parser",), _graph_text),
    Reader("parameters", ("autotune.templates",), _parameters),
)

NO_CAMPAIGN = {
    "autotune.candidate": "JSON that it wrote itself; `record` checks what a file holds",
    "input_files": "opens and reads for the readers above",
    "json_text": "parses for the readers above",
    "output_files": "the first bytes, to tell a database; and new files of its own",
    "runtime.private_folders": "folders, to lock them",
    "shell": "the null device, in place of a closed stream",
    "runtime.native": "LLVM text that is part of the package",
    "runtime.entry": "LLVM text that is part of the package",
    "simulate.cache.model": "LLVM text that is part of the package",
    "dlcompiler_widgets.assets": "scripts and styles that are part of the package",
    "runtime.llvm": "its own source, to name the compiler",
    "runtime.c_source": "what it just compiled, in a private folder; read by runtime.trust",
    "compat.accelerator_modules": "a line that names a module of this process",
    "compat.tvm.contrib.nvcc": "what it just compiled, in a private folder",
    "runtime.shared": "arrays in a private folder, of a size that is checked",
    "runtime.frames": "messages of a worker; tests/faults/test_replies.py damages them",
    "runtime.externs": "the process itself and the system's libm",
    "runtime.fork_server": "the process itself",
    "runtime.thread_pool": "the process itself",
    "measurement.guarded": "the process itself; memory without a file",
    "autotune.records.owners": "the kernel's list of processes",
    "target.detect": "the kernel's facts of the processor",
    "autotune.pools.simulation": "what it wrote itself, to see what a text preserves",
    "bench.threads": "what a child process of its own printed",
    "runtime.serve": "the null device, in place of standard input",
    "cli.tour": "a notebook that runs as a program; nbformat reads it",
}
"""Modules that open or parse something else, and why that needs no campaign."""


@cache
def reader(name: str) -> Reader:
    """Return a reader by its name."""
    return next(item for item in READERS if item.name == name)
