"""Files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cads_env.files import is_partial, write_whole


def test_a_file_is_replaced_whole_and_may_be_read_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, [b"one ", b"two"])

    def twice() -> Iterator[bytes]:
        yield path.read_bytes()
        assert [is_partial(p) for p in sorted(tmp_path.iterdir())] == [True, False]
        yield path.read_bytes()

    write_whole(path, twice())
    assert path.read_bytes() == b"one twoone two"
    mask = os.umask(0o022)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, [b"old"])

    def breaks() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, breaks())
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_bytes() == b"old"
