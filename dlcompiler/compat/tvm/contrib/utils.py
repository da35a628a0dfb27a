"""Classic TVM's ``tvm.contrib.utils``: temporary folders."""

import shutil
import tempfile
import weakref
from pathlib import Path

from dlcompiler.compat.missing import Named, reporter


class TempDirectory(Named):
    """A folder that only this user may enter; it is removed together with this object."""

    classic = "tvm.contrib.utils.TempDirectory"

    def __init__(self) -> None:
        self.temp_dir = tempfile.mkdtemp(prefix="dlcompiler-")
        """The path of the folder."""
        self._remove = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return Path(self.temp_dir)

    def relpath(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return str(self.path / name)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def listdir(self) -> list[str]:
        """Return the names of the files in the folder."""
        return sorted(item.name for item in self.path.iterdir())

    def remove(self) -> None:
        """Remove the folder now."""
        self._remove()

    def __enter__(self) -> "TempDirectory":
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """Return a new temporary folder; the arguments are ignored."""
    del custom_path, keep_for_debug
    return TempDirectory()


__getattr__ = reporter(__name__)
__all__ = ["TempDirectory", "tempdir"]
