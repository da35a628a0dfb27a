"""Compiled objects from one process to the next: found, checked, bounded, and never in the way."""

import ctypes
import dataclasses
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import warnings

import pytest

from dlcompiler.runtime import object_cache
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.object_cache import CompiledObject, Counts, ObjectCache, ObjectCacheWarning
from dlcompiler.runtime.source import Interface
from dlcompiler.runtime.workers import Worker

ANSWER = "define i32 @answer() {\n  %x = add i32 40, 2\n  ret i32 %x\n}\n"
MADE = CompiledObject(b"code" * 100, ("f", "g"), ("expf",))


@pytest.fixture
def cache(tmp_path):
    before = object_cache.current()
    chosen = ObjectCache(tmp_path / "objects")
    object_cache.use(chosen)
    yield chosen
    object_cache.use(before)


@pytest.fixture
def happened():
    """Return the counts that changed since the test began."""
    before = dataclasses.asdict(object_cache.counts())

    def changes():
        now = dataclasses.asdict(object_cache.counts())
        return {name: now[name] - before[name] for name in now if now[name] != before[name]}

    return changes


def entries(cache):
    return sorted(cache.folder.glob("*.object"))


def answer(module):
    return ctypes.CFUNCTYPE(ctypes.c_int32)(module.address("answer"))()


def test_what_was_compiled_once_is_only_linked(cache, options, happened):
    assert answer(compile_ir(ANSWER, options)) == 42
    assert happened() == {"misses": 1, "compiles": 1, "stores": 1}
    again = compile_ir(ANSWER, options)
    assert answer(again) == 42
    assert happened() == {"misses": 1, "compiles": 1, "stores": 1, "hits": 1}
    assert "ret i32 42" in again.optimized_ir
    assert "answer:" in again.assembly


def test_all_that_decides_the_code_is_in_the_key(cache, options, happened):
    for text in (ANSWER, ANSWER.replace("40", "41")):
        for changed in (options, dataclasses.replace(options, opt_level=1)):
            assert answer(compile_ir(text, changed)) in (42, 43)
    assert happened()["compiles"] == 4
    assert object_cache.key([1, "a"], "b") != object_cache.key([1], "ab")


def test_functions_outside_are_found_by_name(cache, options, happened):
    text = """
    declare double @tanh(double)
    define double @f(double %x) {
      %y = call double @tanh(double %x)
      ret double %y
    }
    """
    for _ in range(2):
        module = compile_ir(text, options)
        f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(module.address("f"))
        assert f(0.0) == 0.0
        assert module.imports == {"tanh"}
    assert happened()["hits"] == 1


PROGRAM = """
import json, dataclasses
from dlcompiler.bench.quickstart import register_tile
from dlcompiler.measurement import verify
from dlcompiler.pipeline import build
from dlcompiler.runtime import object_cache

schedule, args = register_tile(32)
build(schedule, args)
verify(schedule, args)
print(json.dumps(dataclasses.asdict(object_cache.counts())))
"""


def test_a_second_run_compiles_nothing(tmp_path):
    def run():
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, object_cache.VARIABLE: str(tmp_path / "objects")},
            capture_output=True,
            text=True,
            check=True,
        )
        return Counts(**json.loads(done.stdout))

    first, second = run(), run()
    assert first.compiles == first.stores > 0
    assert (second.compiles, second.misses) == (0, 0)
    assert second.hits == first.compiles + first.hits


def test_a_worker_uses_the_same_cache(cache, options):
    request = {
        "language": "llvm", "device": "host", "interface": Interface("answer").to_json(),
        "options": dataclasses.asdict(options),
    }  # fmt: skip
    with Worker() as worker:
        for compiles in (2, 2):  # this function, and the entries of all functions
            outcome = worker.call("load", request, data=ANSWER.encode(), timeout_s=60)
            assert outcome.ok, outcome.message
            counts = worker.call("counts", timeout_s=60).value
            assert counts["compiles"] == compiles
    assert counts["hits"] == 1
    assert len(entries(cache)) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other"])
def test_a_damaged_entry_is_compiled_anew(cache, options, happened, damage):
    compile_ir(ANSWER, options)
    (path,) = entries(cache)
    data = path.read_bytes()
    changed = data[:-30] + bytes([data[-30] ^ 1]) + data[-29:]
    path.write_bytes({"cut": data[:-1], "changed": changed, "empty": b"", "other": b"x"}[damage])
    assert answer(compile_ir(ANSWER, options)) == 42
    assert happened() == {"misses": 2, "compiles": 2, "stores": 2, "damaged": 1}
    assert path.read_bytes() == data


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_what_others_may_write_is_not_used(cache, options, happened):
    compile_ir(ANSWER, options)
    (path,) = entries(cache)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o620)
    assert answer(compile_ir(ANSWER, options)) == 42
    assert happened() == {"misses": 2, "compiles": 2, "stores": 2, "damaged": 1}

    cache.folder.chmod(0o777)
    with pytest.warns(ObjectCacheWarning, match="others may write"):
        assert answer(compile_ir(ANSWER, options)) == 42
    assert happened() == {"misses": 3, "compiles": 3, "stores": 2, "damaged": 1}
    assert "chmod go-w" in cache.problem()


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_in_the_folder_is_not_followed(cache, options, happened, tmp_path):
    compile_ir(ANSWER, options)
    (path,) = entries(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert answer(compile_ir(ANSWER, options)) == 42
    assert happened() == {"misses": 2, "compiles": 2, "stores": 2, "damaged": 1}
    assert not path.is_symlink()


def test_an_entry_in_the_place_of_another_is_compiled_anew(cache, options, happened):
    for text in (ANSWER, ANSWER.replace("40", "60")):
        compile_ir(text, options)
    first, second = entries(cache)
    first.write_bytes(second.read_bytes())
    second.unlink()
    answers = [answer(compile_ir(t, options)) for t in (ANSWER, ANSWER.replace("40", "60"))]
    assert answers == [42, 62]
    assert happened() == {"misses": 4, "compiles": 4, "stores": 4, "damaged": 1}


def _pipe(path):
    os.mkfifo(path)


def _socket(path):
    server = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(path.parent)  # the system takes short names only
    try:
        server.bind(path.name)
    finally:
        os.chdir(before)
        server.close()


def _device(path):
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero never ends
    except PermissionError:
        pytest.skip("this user may not make devices")


def _link_to(make):
    def link(path):
        make(path.with_name("elsewhere"))
        path.symlink_to(path.with_name("elsewhere"))

    return link


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="files of POSIX")
@pytest.mark.parametrize("make", [_pipe, _socket, _device, _link_to(_pipe), _link_to(_device)])
def test_what_is_no_regular_file_is_never_opened(cache, options, happened, make):
    compile_ir(ANSWER, options)
    (path,) = entries(cache)
    path.unlink()
    make(path)
    assert answer(compile_ir(ANSWER, options)) == 42
    assert happened() == {"misses": 2, "compiles": 2, "stores": 2, "damaged": 1}
    assert path.is_file()
    assert not path.is_symlink()


def test_a_folder_in_the_place_of_an_entry_stays(cache, options, happened):
    compile_ir(ANSWER, options)
    (path,) = entries(cache)
    path.unlink()
    path.mkdir()
    with pytest.warns(ObjectCacheWarning, match="cannot be written"):
        assert answer(compile_ir(ANSWER, options)) == 42
    assert happened()["damaged"] == 1
    assert path.is_dir()
    assert cache.size() == (0, 0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_in_the_place_of_a_new_entry_is_removed(cache, happened, tmp_path):
    cache.store("key", MADE)
    new = cache.folder / f".more.object.{os.getpid()}.{threading.get_ident()}"
    os.mkfifo(new)
    cache.store("more", MADE)
    assert cache.load("more") == MADE
    (tmp_path / "precious").write_text("mine")
    new.symlink_to(tmp_path / "precious")
    cache.store("more", MADE)
    assert cache.load("more") == MADE
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_cache_that_cannot_be_used_warns_once(options, happened, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    chosen = ObjectCache(tmp_path / "file" / "objects")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert chosen.load("key") is None
        chosen.store("key", MADE)
        chosen.store("key", MADE)
    assert [str(w.message).partition(":")[0] for w in caught] == ["the object cache is not used"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ObjectCache(tmp_path / "file").store("key", MADE)
    assert chosen.size() == (0, 0)
    assert "stores" not in happened()


def test_the_entries_used_least_recently_go(tmp_path, happened):
    size = len(object_cache._encoded("key0", MADE))
    cache = ObjectCache(tmp_path / "objects", limit_bytes=10 * size)
    for number in range(10):
        cache.store(f"key{number}", MADE)
        os.utime(cache.folder / f"key{number}.object", (number, number))
    assert cache.load("key0") == MADE
    cache.store("more", MADE)
    assert [path.stem for path in entries(cache)] == [
        "key0",
        *(f"key{n}" for n in range(4, 10)),
        "more",
    ]
    assert happened()["evictions"] == 3
    for number in range(100):
        cache.store(f"new{number}", MADE)
        assert cache.size()[1] <= cache.limit_bytes
    cache.store("large", CompiledObject(b"x" * 20 * size, (), ()))
    assert cache.load("large") is None


def test_what_a_killed_process_left_is_removed(tmp_path):
    folder = tmp_path / "objects"
    folder.mkdir(mode=0o700)
    left, now = folder / ".a.object.1.2", folder / ".b.object.1.2"
    for path in (left, now):
        path.write_bytes(b"half")
    os.utime(left, (1, 1))
    ObjectCache(folder).store("key", MADE)
    assert sorted(path.name for path in folder.iterdir()) == [".b.object.1.2", "key.object"]


def test_the_environment_decides(monkeypatch, tmp_path):
    monkeypatch.setenv(object_cache.VARIABLE, "off")
    assert object_cache.default() is None
    monkeypatch.setenv(object_cache.VARIABLE, str(tmp_path))
    assert object_cache.default().folder == tmp_path
    monkeypatch.delenv(object_cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert object_cache.default().folder.parts[-2:] == ("dlcompiler", "objects")
