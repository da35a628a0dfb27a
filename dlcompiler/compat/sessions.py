"""TVM's sessions with other machines: always this process, and a note says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlcompiler.compat.accelerator_modules import AcceleratorModule, load_module
from dlcompiler.compat.devices import Device, device
from dlcompiler.compat.missing import Named
from dlcompiler.compat.modules import Module
from dlcompiler.compat.notes import note
from dlcompiler.errors import UserError


class LocalSession(Named):
    """A session with this process: what is uploaded can be loaded by its name."""

    classic = "tvm.rpc.LocalSession"

    def __init__(self) -> None:
        self._files: dict[str, Path] = {}

    def upload(self, data: Any, target: str | None = None) -> None:
        """Make a file known by its name.

        Parameters
        ----------
        data : path
            The file.
        target : str, optional
            Another name.
        """
        path = Path(data)
        if not path.is_file():
            raise UserError(f"upload {path}", "there is no such file")
        self._files[target or path.name] = path

    def load_module(self, path: str) -> Module | AcceleratorModule:
        """Load a module that was uploaded, by its name.

        Raises
        ------
        UserError
            Nothing of this name was uploaded.
        """
        if path not in self._files:
            raise UserError(
                f"load {path}", "nothing of this name was uploaded",
                expected=", ".join(sorted(self._files)) or "remote.upload(path) before",
            )  # fmt: skip
        return load_module(self._files[path])

    def remove(self, path: str) -> None:
        """Forget a file that was uploaded."""
        self._files.pop(path, None)

    def device(self, dev_type: Any, dev_id: int = 0) -> Device:
        """Return a device of this process."""
        return device(dev_type, dev_id)

    context = device
    """The older name."""

    def cpu(self, dev_id: int = 0) -> Device:
        """Return the CPU."""
        return device("cpu", dev_id)

    def ext_dev(self, dev_id: int = 0) -> Device:
        """Return the accelerator, which is simulated."""
        return device("ext_dev", dev_id)

    def __repr__(self) -> str:
        return "LocalSession()"


def connect(
    url: str, port: int, key: str = "", session_timeout: int = 0, **options: Any
) -> LocalSession:
    """Return a session with this process, and say so: no other machine is reached.

    Parameters
    ----------
    url, port, key, session_timeout, **options
        Accepted, without effect.
    """
    del key, session_timeout, options
    note(f"rpc.connect: {url}:{port} is not reached; programs run here, and boards are simulated")
    return LocalSession()
