"""Save built functions in files, and load them in another process.

Two kinds of file. A *container* is this project's own: the function's description and its LLVM
text, compiled when it is loaded. A *shared object* is machine code that any program can load; it
takes a C compiler to link, and carries the same description. Both are code that runs with the
rights of the user who loads it: a file that others may write is refused. Each carries a SHA-256
digest of all its bytes: a container in its first line, an object and a shared object in a *seal*
behind their end, which linkers and loaders do not look at. It is checked before anything is
compiled or mapped.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlcompiler.errors import DLCompilerError, InternalError, UserError
from dlcompiler.input_files import read_regular
from dlcompiler.json_text import JsonError, parse
from dlcompiler.output_files import replacing
from dlcompiler.runtime import native
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.c_source import c_compiler, run_compiler
from dlcompiler.runtime.externs import calls_outside
from dlcompiler.runtime.function import Code, Function
from dlcompiler.runtime.llvm import LLVMTexts, Options, compile_ir, emit_object
from dlcompiler.runtime.private_folders import private_folder
from dlcompiler.runtime.symbols import Check, Variable
from dlcompiler.runtime.trust import load_shared, read_trusted
from dlcompiler.target.detect import host

SCHEMA = 1
MAGIC = b"#dlcompiler library "
SHARED_SUFFIXES = (".so", ".dylib", ".dll")
SYMBOL = "dlc_library"
"""Name of the description in an object."""
HOOKS = {
    native.PARALLEL_FOR: "dlc_library_parallel_for",
    native.WORKSPACE[0]: "dlc_library_workspace_alloc",
    native.WORKSPACE[1]: "dlc_library_workspace_free",
}
"""Hooks into which a loader of the object stores runtime functions. Without these, simple
implementations in the object are used."""
_MARK = b'{"dlcompiler_library":'
_SEAL = re.compile(rb"\n#dlcompiler sha256 ([0-9a-f]{64})\n\Z")
_SEAL_BYTES = 85
DEEPEST_FORMULA = 400

_SERIAL = """
  %empty = icmp sge i64 %c, %d
  br i1 %empty, label %done, label %run
run:
  call void %a(i64 %c, i64 %d, ptr %b)
  ret void
done:
  ret void"""
_ALLOCATE = """
  %more = add i64 %a, 127
  %size = and i64 %more, -64
  %block = call ptr @aligned_alloc(i64 64, i64 %size)
  ret ptr %block"""
_FREE = """
  call void @free(ptr %a)
  ret void"""


def _define(symbol: str, result: str, types: Sequence[str], alone: str) -> str:
    """Return LLVM IR of a function that calls its hook if one is set, else runs `alone`."""
    parameters = ", ".join(f"{type_} %{name}" for type_, name in zip(types, "abcd", strict=False))
    call, give = (
        ("call void", "ret void")
        if result == "void"
        else (f"%given = call {result}", f"ret {result} %given")
    )
    return f"""
@{HOOKS[symbol]} = global ptr null
define internal {result} @{symbol}({parameters}) {{
  %hook = load ptr, ptr @{HOOKS[symbol]}
  %none = icmp eq ptr %hook, null
  br i1 %none, label %alone, label %given.hook
given.hook:
  {call} %hook({parameters})
  {give}
alone:{alone}
}}
"""


_STANDALONE = {
    native.PARALLEL_FOR: _define(
        native.PARALLEL_FOR, "void", ("ptr", "ptr", "i64", "i64"), _SERIAL
    ),
    native.WORKSPACE[0]: "declare ptr @aligned_alloc(i64, i64)\n"
    + _define(native.WORKSPACE[0], "ptr", ("i64",), _ALLOCATE),
    native.WORKSPACE[1]: "declare void @free(ptr)\n"
    + _define(native.WORKSPACE[1], "void", ("ptr",), _FREE),
}


@dataclass(frozen=True)
class Written:
    """A written file and its kind."""

    path: Path
    kind: str
    """``"shared object"`` or ``"container"``."""
    because: str = ""
    """Why its kind is not that of its suffix."""

    @property
    def surprise(self) -> bool:
        """Whether the file's kind differs from the one that its suffix suggests."""
        return bool(self.because)

    def __str__(self) -> str:
        reason = f": {self.because}" if self.because else ""
        return f"{self.path.name} is a {self.kind} of dlcompiler{reason}"


def save_library(function: Function, path: Path) -> Written:
    """Write a function to a file.

    Parameters
    ----------
    function : Function
        What to save.
    path : Path
        A suffix of `SHARED_SUFFIXES` gives a shared object where a C compiler is found; all else
        a container.

    Raises
    ------
    UserError
        It cannot be written.
    """
    is_bound = calls_outside(function.module.text)
    if path.suffix in SHARED_SUFFIXES and c_compiler() is not None and not is_bound:
        with private_folder() as folder:
            image = folder / "code.o"
            image.write_bytes(object_image(function))
            link_shared(path, [image])
        return Written(path, "shared object")
    _write(path, _container(describe(function)))
    return Written(path, "container", _surprise(path.suffix, is_bound=is_bound))


def _surprise(suffix: str, *, is_bound: bool = False) -> str:
    if suffix in SHARED_SUFFIXES and is_bound:
        return "it calls functions that the loading process must register"
    if suffix in SHARED_SUFFIXES:
        return "no C compiler (cc, gcc or clang) is there to link a shared object"
    if suffix in (".tar", ".zip", ".o", ".a"):
        return f"a {suffix[1:]} file cannot be written here; runtime.load_module reads this one"
    return ""


def save_object(function: Function, path: Path) -> None:
    """Write a function as an object for the system's linker."""
    _write(path, object_image(function))


def object_image(function: Function) -> bytes:
    """Return a function as a sealed object: its code, and its description for `load_library`."""
    description = describe(function)
    if calls_outside(description["text"]):
        raise UserError(
            f"write {function.name} as an object", "it calls code from outside",
            because="the system's linker cannot resolve functions that a process registers",
            hint="write a container: any suffix but that of an object",
        )  # fmt: skip
    text: str = description["text"]
    for symbol, definition in _STANDALONE.items():
        declaration = rf"^declare[^\n]*@{symbol}\([^\n]*\n"
        text, count = re.subn(declaration, "", text, flags=re.MULTILINE)
        text += definition if count else ""
    data = json.dumps(description).encode() + b"\0"
    escaped = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)
    text += f'\n@{SYMBOL} = constant [{len(data)} x i8] c"{escaped}"\n'
    return _sealed(emit_object(text, _options(description)))


def link_shared(path: Path, objects: Sequence[Path]) -> Written:
    """Link objects into a shared object; without a C compiler, write a single one as a container.

    Raises
    ------
    UserError
        An object of `save_object` is damaged; the linker refuses them; or there is none, and the
        objects are not of `save_object`.
    """
    compiler = c_compiler()
    images = [_image(item) for item in objects]
    if compiler is None:
        if len(images) != 1:
            raise UserError(f"link {path}", "there is no C compiler (cc, gcc or clang)")
        _write(path, _container(_embedded(images[0], objects[0])))
        return Written(path, "container", _surprise(path.suffix))
    with _replacing(path) as new, private_folder() as folder:
        copies = [folder / f"{number}{item.suffix}" for number, item in enumerate(objects)]
        for copy, image in zip(copies, images, strict=True):
            # The bytes that were checked are linked, not the file, which may change.
            copy.write_bytes(image)
        command = [compiler, "-shared", "-fPIC", "-o", str(new), *map(str, copies), "-lm"]
        _link(command, path)
        new.write_bytes(_sealed(new.read_bytes()))
    return Written(path, "shared object")


def _link(command: Sequence[str], path: Path) -> None:
    operation = f"link {path}"
    done = run_compiler(command, operation, UserError)
    if done.returncode:
        raise UserError(operation, f"{command[0]} failed", got=done.stderr.strip())


def _image(path: Path) -> bytes:
    """Return the bytes of an object; one made by `save_object` must be unchanged."""
    try:
        data = read_regular(path)
    except OSError as error:
        raise UserError(f"link {path}", "cannot be read", got=error.strerror) from error
    return _unsealed(data, path) if _MARK in data else data


def load_library(path: Path) -> Function:
    """Load a function from what `save_library`, `save_object` or `link_shared` wrote.

    Raises
    ------
    UserError
        Others may write the file, it is damaged, or it is not of this project.
    TargetError
        This machine cannot run its code.
    """
    data = read_trusted(path)
    if data.startswith(MAGIC):
        return compiled(_checked(data, path), path)
    if _MARK not in data:
        raise _not_ours(path)
    code = _unsealed(data, path)
    description = _embedded(code, path)
    if path.suffix in (".o", ".obj"):
        return compiled(description, path)
    return _linked(code, description, path)


class SharedObject(LLVMTexts):
    """Machine code in a shared object, with the facts that a `Function` needs."""

    def __init__(self, library: ctypes.CDLL, description: Mapping[str, Any]) -> None:
        self._library = library
        self.text = description["text"]
        self.options = _options(description)
        self.imports = frozenset(symbol for symbol in HOOKS if f"@{symbol}(" in self.text)
        """External functions that it calls."""
        for symbol in self.imports:
            if hasattr(library, HOOKS[symbol]):  # missing in files of earlier versions
                ctypes.c_void_p.in_dll(library, HOOKS[symbol]).value = native.address(symbol)

    def address(self, symbol: str) -> int:
        """Return the address of a function."""
        value = ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value
        assert value is not None
        return value

    def entry(self, symbol: str, types: Sequence[Any]) -> Callable[..., object]:
        """Return a callable for operands of these types."""
        return ctypes.CFUNCTYPE(None, *types)(self.address(symbol))


def _linked(code: bytes, description: Mapping[str, Any], path: Path) -> Function:
    _options(description).check()
    try:
        library = load_shared(code)
    except OSError as error:
        raise UserError(
            f"load {path}", "not a shared object of this system", got=str(error),
            hint="if it is one: programs must be allowed in the folder for temporary files, from "
            "which it is loaded; TMPDIR names another",
        ) from error  # fmt: skip
    return _function(SharedObject(library, description), description, path)


def compiled(description: Mapping[str, Any], path: Path) -> Function:
    """Compile what `describe` returned for this machine.

    Parameters
    ----------
    description : mapping
        Checked by `checked_description`.
    path : path
        The file that it is from, for messages.

    Raises
    ------
    UserError
        Its code does not compile, or the description is damaged.
    TargetError
        This machine cannot run its code.
    """
    try:
        module = compile_ir(description["text"], _here(description))
    except DLCompilerError as error:
        raise UserError(f"load {path}", "its code does not compile here", got=str(error)) from error
    return _function(module, description, path)


def describe(function: Function) -> dict[str, Any]:
    """Return a function as JSON values: its LLVM text, and how it is called.

    Raises
    ------
    UserError
        It is the entry of a model.
    """
    if function.holds is not None:
        raise UserError(
            f"save {function.name}", "its code calls kernels by their addresses",
            because="it is the entry of a model", hint="model.save(path) saves the whole model",
        )  # fmt: skip
    options = function.module.options
    return {
        "dlcompiler_library": SCHEMA,
        "name": function.name,
        "symbol": function.symbol,
        "params": [dataclasses.asdict(param) for param in function.params],
        "variables": [dataclasses.asdict(variable) for variable in function.variables],
        "checks": [dataclasses.asdict(check) for check in function.checks],
        "messages": list(function.messages),
        "triple": options.triple,
        "cpu": options.cpu,
        "features": list(options.features),
        "text": function.module.text,
    }


def _function(module: Code, description: Mapping[str, Any], path: Path) -> Function:
    """Return the function that a description describes."""
    try:
        return Function(
            module,
            description["symbol"],
            [Param(**{**it, "shape": tuple(it["shape"])}) for it in description["params"]],
            description["name"],
            variables=[Variable(**fields) for fields in description["variables"]],
            checks=[Check(**fields) for fields in description["checks"]],
            messages=description["messages"],
        )
    except (AttributeError, InternalError, KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"its description: {type(error).__name__}: {error}") from error


def _options(description: Mapping[str, Any]) -> Options:
    return Options(description["triple"], description["cpu"], tuple(description["features"]))


def _here(description: Mapping[str, Any]) -> Options:
    """Return options to compile the text for this machine, even if it was saved on another one."""
    here = host()
    family = str(description["triple"]).partition("-")[0]
    if family != here.triple.partition("-")[0]:
        return _options(description)  # `compile_ir` refuses it
    return Options(here.triple, here.llvm_cpu, here.features)


def _container(description: Mapping[str, Any]) -> bytes:
    body = json.dumps(description).encode()
    return _head(body) + body


def _head(body: bytes) -> bytes:
    return MAGIC + f"{SCHEMA} {hashlib.sha256(body).hexdigest()}\n".encode()


def _checked(data: bytes, path: Path) -> dict[str, Any]:
    """Check the first line of a container, with its checksum; return the description."""
    head, end, body = data.partition(b"\n")
    if not head.endswith(hashlib.sha256(body).hexdigest().encode()):
        raise damaged(path, "its checksum differs")
    description = _parsed(body, path)
    if head + end != _head(body):
        raise damaged(path, "its first line differs")
    return description


def _sealed(data: bytes) -> bytes:
    """Return an object with its digest appended."""
    return data + b"\n#dlcompiler sha256 %s\n" % hashlib.sha256(data).hexdigest().encode()


def _unsealed(data: bytes, path: Path) -> bytes:
    """Check the digest at the end of an object; return the object without it."""
    seal = _SEAL.match(data, max(len(data) - _SEAL_BYTES, 0))
    if seal is None:
        raise damaged(path, "the digest at its end is missing: it was cut, stripped, linked by "
                       "another program, or written by an earlier version")  # fmt: skip
    code = data[: seal.start()]
    if hashlib.sha256(code).hexdigest().encode() != seal[1]:
        raise damaged(path, "its checksum differs")
    return code


def _embedded(data: bytes, path: Path) -> dict[str, Any]:
    """Return the description that is embedded in an object."""
    start = data.find(_MARK)
    end = data.find(b"\0", start)
    if start < 0 or end < 0:
        raise _not_ours(path)
    return _parsed(data[start:end], path)


def _parsed(data: bytes, path: Path) -> dict[str, Any]:
    try:
        description = parse(data, deepest=DEEPEST_FORMULA)
    except JsonError as error:
        raise damaged(path, str(error)) from error
    return checked_description(description, path)


def checked_description(description: Any, path: Path) -> dict[str, Any]:
    """Return what `describe` wrote, after a check of its fields.

    Raises
    ------
    UserError
        A field is missing or has another type, or another version wrote it.
    """
    match description:
        case {"dlcompiler_library": int(schema)} if schema != SCHEMA:
            raise UserError(
                f"load {path}", "written by another version",
                got=f"schema {schema}", expected=SCHEMA,
            )  # fmt: skip
        case {"dlcompiler_library": int(), "name": str(), "symbol": str(), "text": str(),
              "triple": str(), "cpu": str(), "features": list(), "params": list(),
              "variables": list(), "checks": list(), "messages": list()}:  # fmt: skip
            return dict(description)
    raise damaged(path, "its description lacks a field, or one has the wrong type")


def damaged(path: Path, because: str) -> UserError:
    """Return the error of a file that is not as it was written."""
    return UserError(
        f"load {path}", "the file is damaged", because=because, hint="write it again, or copy it"
    )


def _not_ours(path: Path) -> UserError:
    return UserError(
        f"load {path}", "not a library that dlcompiler wrote",
        hint="write it with export_library",
    )  # fmt: skip


def _write(path: Path, data: bytes) -> None:
    with _replacing(path) as new:
        new.write_bytes(data)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Provide a temporary path, then replace `path` by it, not writable for others.

    A library in use is never overwritten in place: processes that use it would crash.
    """
    with replacing(path) as new:
        yield new
        new.chmod(0o755 if path.suffix in SHARED_SUFFIXES else 0o644)
