"""Input files are opened once, and only if they are regular files."""

import io
import os
import socket

import pytest

from dlcompiler import input_files
from dlcompiler.input_files import lines, open_regular, read_regular

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files of POSIX")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    return path


def irregular(folder):
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("pipe")
    server = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(folder)  # the system takes short names only
    server.bind("socket")
    os.chdir(before)
    server.close()
    return [*(folder / name for name in ("pipe", "folder", "link", "socket")), "/dev/zero"]


def test_only_regular_files_are_opened(tmp_path):
    for path in irregular(tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path)


def test_a_pipe_that_takes_the_place_of_a_file_does_not_hang(file, monkeypatch):
    look = os.stat

    def replaced_after(path, **options):
        facts = look(path, **options)
        file.unlink()
        os.mkfifo(file)
        return facts

    monkeypatch.setattr(input_files.os, "stat", replaced_after)
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(file)


def test_what_is_checked_is_what_is_read(file, tmp_path):
    (tmp_path / "other").write_bytes(b"other")

    def replaced_meanwhile(facts):
        assert facts.st_size == 4
        (tmp_path / "other").replace(file)

    assert read_regular(file, check=replaced_meanwhile) == b"data"
    assert read_regular(file) == b"other"


def test_links_are_followed_where_they_may_be(file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_regular(link) == b"data"
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(link, follow_links=False)


def test_a_file_that_is_too_long_is_not_read(file):
    assert read_regular(file, 4) == b"data"
    with pytest.raises(OSError, match="longer than 3 bytes"):
        read_regular(file, 3)
    with file.open("r+b") as grown:
        grown.truncate(2**43)
    with pytest.raises(OSError, match="longer than"):
        read_regular(file, 2**42)


def test_descriptors_are_given_back(file, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for path in (file, *irregular(tmp_path)):
        try:
            read_regular(path, 3)
        except OSError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_lines_are_read_one_by_one():
    found = lines(io.BytesIO(b"a\n" + b"b" * 100 + b"\nccc\n" + b"d" * 100), 4)
    assert list(found) == [(1, b"a\n"), (2, None), (3, b"ccc\n"), (4, None)]
    assert list(lines(io.BytesIO(b"abc\nabcd\nab"), 4)) == [(1, b"abc\n"), (2, None), (3, b"ab")]
