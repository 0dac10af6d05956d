"""Paths that are too long for the file system."""

import os
from pathlib import Path

import pytest

from rerank.errors import UsageError
from rerank.files.outputs import check_folder, check_outputs
from rerank.files.paths import refuse_long


def test_a_path_is_refused_where_the_system_cannot_hold_it(tmp_path: Path) -> None:
    most = os.pathconf(tmp_path, "PC_NAME_MAX")
    refuse_long(tmp_path / ("a" * most))
    refuse_long(tmp_path / "nowhere" / "file")
    with pytest.raises(UsageError, match=rf"^.{{40}}… is too long .*{most + 1} in one name"):
        refuse_long(str(tmp_path / ("a" * (most + 1))))
    with pytest.raises(UsageError, match="is too long for the file system"):
        refuse_long("/".join(["a"] * os.pathconf(tmp_path, "PC_PATH_MAX")))


def test_an_output_leaves_room_for_the_name_that_it_has_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    most = os.pathconf(tmp_path, "PC_PATH_MAX") - 1
    folder = str(tmp_path)
    while most - len(folder) > 240:
        folder += "/" + "d" * 200
        os.mkdir(folder)
    folder += "/" + "d" * (most - len(folder) - 12)
    os.mkdir(folder)
    path = f"{folder}/{'f' * (most - len(folder) - 1)}"
    refuse_long(path)  # the path itself fits
    with pytest.raises(UsageError, match="is too long for the file system"):
        check_outputs([path], [])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("file/out", "output file/out: file is not a folder; name another"),
        ("file/a/b/out", "output file/a/b/out: file is not a folder; name another"),
        ("no/out", "output no/out: no folder no; make it with: mkdir -p no"),
        ("my no/out", "output my no/out: no folder my no; make it with: mkdir -p 'my no'"),
    ],
)
def test_the_cure_for_a_missing_folder_is_one_that_works(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    with pytest.raises(UsageError) as fault:
        check_outputs([path], [])
    assert str(fault.value) == message


def test_a_folder_to_make_is_refused_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    check_folder(tmp_path / "new" / "folder", "--out")
    with pytest.raises(UsageError, match=r"--out: .*file is not a folder; name another"):
        check_folder(tmp_path / "file" / "model", "--out")
