"""Score cache: a shard is whole and right or it is none, whatever happens; faults 81, 86-89."""

import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray
from safetensors.numpy import load

from rerank.cache import Cache, info
from rerank.errors import InputError
from rerank.notices import Notices

Arrays = Mapping[str, NDArray[Any]]
ROOT = Path(__file__).parents[2]
GROUP, OTHER = "0123456789abcdef", "fedcba9876543210"
DAMAGED = "damaged score cache shard, computed again"
SMALL: Arrays = {
    "unary": np.array([1.5, -2.25], np.float32),
    "lengths": np.array([3, 0, 1], np.int8),
}
DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.float32, np.float64]


def name_of(number: int) -> str:
    return f"{number:016x}"


def cache_in(folder: Path, limit: int = 10**9) -> Cache:
    return Cache(folder, Notices(), limit)


def told(cache: Cache) -> list[str]:
    return cache.notices.lines()


def path_of(cache: Cache, number: int = 0, group: str = GROUP) -> Path:
    return cache.folder / group / f"{name_of(number)}.scores"


def same(found: Arrays | None, wanted: Arrays) -> bool:
    """Whether the arrays are equal bit for bit, NaN and −0 too."""
    return found is not None and bits(found) == bits(wanted)


def bits(arrays: Arrays) -> dict[str, tuple[object, ...]]:
    return {key: (a.dtype, a.shape, a.tobytes()) for key, a in arrays.items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache in a folder of its own that is not there yet."""
    return cache_in(tmp_path / "deep" / "scores")


# What is put is what is got.


@st.composite
def some_arrays(draw: st.DrawFn) -> dict[str, NDArray[Any]]:
    """Arrays of any kept type and shape, some of them views with steps or other orders."""
    found = {}
    for key in draw(st.lists(st.text(max_size=9), max_size=4, unique=True)):
        shape = draw(arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
        array = draw(arrays_of.arrays(draw(st.sampled_from(DTYPES)), shape))
        found[key] = draw(st.sampled_from([array, array.T, array[..., ::-1] if shape else array]))
    return found


@given(some_arrays())
def test_any_arrays_come_back_bit_for_bit(arrays: dict[str, NDArray[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_in(Path(folder))
        assert cache.put(GROUP, name_of(0), arrays)
        found = cache.get(GROUP, name_of(0))
        assert same(found, arrays)
        assert found is not None
        assert all(a.flags.aligned and not a.flags.writeable for a in found.values())
        assert same(cache_in(Path(folder)).get(GROUP, name_of(0)), arrays)
        assert told(cache) == []


def test_a_shard_is_safetensors_and_a_digest_over_schema_group_name_and_these(
    cache: Cache,
) -> None:
    """safetensors and hashlib read what we wrote."""
    cache.put(GROUP, name_of(7), SMALL)
    data = path_of(cache, 7).read_bytes()
    payload, digest = data[:-32], data[-32:]
    assert same(load(payload), SMALL)
    assert digest == digest_of(payload, number=7)


def digest_of(payload: bytes, number: int = 0, schema: int = 1) -> bytes:
    head = f"rerank score cache {schema}\n{GROUP}\n{name_of(number)}\n"
    return hashlib.sha256(head.encode() + payload).digest()


def test_the_same_arrays_are_the_same_bytes_whatever_their_order_and_layout(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), {"a": np.ones((2, 3)), "b": np.zeros(1)})
    first = path_of(cache).read_bytes()
    swapped = {"b": np.zeros(1, ">f8"), "a": np.ones((3, 2)).T}
    cache.put(GROUP, name_of(0), swapped)
    assert path_of(cache).read_bytes() == first


def test_large_arrays_are_views_of_the_one_buffer_that_was_read(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), {"a": np.arange(99_999.0), "b": np.arange(9)})
    found = cache.get(GROUP, name_of(0))
    assert found is not None
    assert not any(array.flags.owndata for array in found.values())
    assert found["a"].base is not None
    one, other = (found[key].__array_interface__["data"][0] for key in "ab")
    assert abs(one - other) in (99_999 * 8, 9 * 8)


def test_hits_misses_and_saved_shards_are_counted(cache: Cache) -> None:
    assert cache.get(GROUP, name_of(0)) is None
    cache.put(GROUP, name_of(0), SMALL)
    cache.put(GROUP, name_of(1), SMALL)
    assert cache.get(GROUP, name_of(0)) is not None
    assert (cache.hits, cache.misses, cache.saved) == (1, 1, 2)
    assert told(cache) == []


def test_only_the_owner_can_look_into_the_folder(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    for folder in (cache.folder, cache.folder / GROUP):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_groups_and_names_never_mix(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    assert cache.get(OTHER, name_of(0)) is None
    assert cache.get(GROUP, name_of(1)) is None
    assert told(cache) == []
    for stranger in (path_of(cache, group=OTHER), path_of(cache, 1)):
        stranger.parent.mkdir(exist_ok=True)
        stranger.write_bytes(path_of(cache).read_bytes())
        assert cache.get(stranger.parent.name, stranger.stem) is None
    assert told(cache) == [f"2 x {DAMAGED}, first at {path_of(cache, group=OTHER)}"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "", "0" * 15, "0" * 65, "A" * 16, "0" * 16 + "\n"]
)
def test_names_that_are_no_digests_are_refused(cache: Cache, name: str) -> None:
    for group, shard in ((GROUP, name), (name, GROUP)):
        with pytest.raises(ValueError, match="expected hex digests"):
            cache.get(group, shard)
        with pytest.raises(ValueError, match="expected hex digests"):
            cache.put(group, shard, SMALL)


@pytest.mark.parametrize("dtype", [np.complex64, np.float16, object, "U3", bool])
def test_numbers_that_could_not_be_read_back_are_refused(cache: Cache, dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"array 'a' of .* cannot be kept"):
        cache.put(GROUP, name_of(0), {"a": np.zeros(1, dtype)})


# Damage


def test_every_cut_and_every_changed_byte_is_noticed_and_counts_as_missing(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    path = path_of(cache)
    whole = path.read_bytes()
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"\0"]
    for place in range(len(whole)):
        for mask in (0x01, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[place] ^= mask
            damaged.append(bytes(changed))
    for data in damaged:
        path.write_bytes(data)
        assert cache.get(GROUP, name_of(0)) is None
    assert cache.misses == len(damaged)
    assert told(cache) == [f"{len(damaged)} x {DAMAGED}, first at {path}"]
    assert cache.put(GROUP, name_of(0), SMALL)
    assert same(cache.get(GROUP, name_of(0)), SMALL)


def test_a_damaged_shard_is_an_error_under_strict(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    path_of(cache).write_bytes(b"")
    with pytest.raises(InputError, match="damaged score cache shard"):
        Cache(cache.folder, Notices(strict=True), 10**9).get(GROUP, name_of(0))


def sealed(cache: Cache, payload: bytes, schema: int = 1) -> dict[str, NDArray[Any]] | None:
    """What comes of bytes whose digest is right, as a stranger could make them."""
    path_of(cache).parent.mkdir(parents=True, exist_ok=True)
    path_of(cache).write_bytes(payload + digest_of(payload, schema=schema))
    return cache.get(GROUP, name_of(0))


def payload_of(header: object, data: bytes = b"", pad: int = 8) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % pad)
    return len(text).to_bytes(8, "little") + text + data


def entry(shape: object, begin: object, end: object, dtype: object = "U8") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_payloads_made_by_hand_are_read(cache: Cache) -> None:
    header = {"a": entry([2], 0, 2), "e": entry([0, 3], 2, 2), "s": entry([], 2, 3)}
    wanted = {"a": np.array([1, 2]), "e": np.zeros((0, 3)), "s": np.array(3)}
    found = sealed(cache, payload_of(header, b"\1\2\3"))
    assert same(found, {key: array.astype(np.uint8) for key, array in wanted.items()})
    assert same(sealed(cache, payload_of({})), {})


@pytest.mark.parametrize(
    "payload",
    {
        "nothing": b"",
        "half a length": b"\0\0\0",
        "no header": payload_of(b""),
        "header beyond the end": (99).to_bytes(8, "little") + b"{}",
        "gigantic header": b"\xff" * 8 + b"{}",
        "gigantic header of an entry": b"\xff" * 8 + payload_of({"a": entry([1], 0, 1)})[8:],
        "a list": payload_of([1]),
        "no JSON": payload_of(b"{nonsense}"),
        "no UTF-8": payload_of(b'{"\xff": 1}'),
        "nested": payload_of(b'{"a":' + b"[" * 99_999),
        "long integer": payload_of(b'{"a": ' + b"9" * 9_999 + b"}"),
        "metadata": payload_of({"__metadata__": {"a": "b"}}),
        "entry is no object": payload_of({"a": 1}),
        "no offsets": payload_of({"a": {"dtype": "U8", "shape": [0]}}),
        "unknown type": payload_of({"a": entry([1], 0, 1, "F8")}, b"x"),
        "type is no name": payload_of({"a": entry([1], 0, 1, ["U8"])}, b"x"),
        "bytes left over": payload_of({"a": entry([1], 0, 1)}, b"xy"),
        "too few bytes": payload_of({"a": entry([3], 0, 3)}, b"xy"),
        "range too short": payload_of({"a": entry([2], 0, 1)}, b"xy"),
        "overlap": payload_of({"a": entry([2], 0, 2), "b": entry([2], 0, 2)}, b"xy"),
        "hole": payload_of({"a": entry([1], 0, 1), "b": entry([1], 2, 3)}, b"xyz"),
        "name twice": payload_of(
            b'{"a":%b,"a":%b}'
            % (json.dumps(entry([1], 0, 1)).encode(), json.dumps(entry([1], 1, 2)).encode()),
            b"xy",
        ),
        "negative": payload_of({"a": entry([-1], 0, -1)}, b"x"),
        "two negatives": payload_of({"a": entry([-1, -2], 0, 2)}, b"xy"),
        "overflow": payload_of({"a": entry([2**32, 2**32], 0, 2**64)}),
        "overflow of nothing": payload_of({"a": entry([0, 2**62, 2**62], 0, 0)}),
        "beyond 64 bits": payload_of({"a": entry([2**99], 0, 2**99)}),
        "terabytes": payload_of({"a": entry([2**40], 0, 2**40)}),
        "no integer": payload_of({"a": entry([1.5], 0, 1)}, b"x"),
        "shape of text": payload_of({"a": entry("1", 0, 1)}, b"x"),
        "shape of nothing": payload_of({"a": entry(None, 0, 1)}, b"x"),
        "too many axes": payload_of({"a": entry([1] * 99, 0, 1)}, b"x"),
        "not aligned": payload_of({"a": entry([1], 0, 8, "F64")}, b"x" * 8, pad=8 + 1),
    }.items(),
    ids=lambda item: item[0].replace(" ", "-"),
)
def test_a_right_digest_over_anything_but_safetensors_is_damage(
    cache: Cache, payload: tuple[str, bytes]
) -> None:
    assert sealed(cache, payload[1]) is None
    assert told(cache) == [f"1 x {DAMAGED}, first at {path_of(cache)}"]


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
entry_like = st.builds(
    entry,
    st.lists(st.integers(-1, 3), max_size=3) | json_like,
    st.integers(-1, 4) | json_like,
    st.integers(-1, 9) | json_like,
    st.sampled_from(["U8", "F32", "I64"]) | json_like,
)
header_like = st.dictionaries(st.text(max_size=3), entry_like | json_like, max_size=3)


@settings(max_examples=50)
@given(st.binary(max_size=40) | st.builds(payload_of, header_like, st.binary(max_size=9)))
def test_any_bytes_with_a_right_digest_are_arrays_as_safetensors_sees_them_or_damage(
    payload: bytes,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = sealed(cache_in(Path(folder)), payload)
    if found is not None:
        assert same(found, load(payload))


def test_a_shard_of_another_schema_is_computed_again(cache: Cache) -> None:
    assert sealed(cache, payload_of({}), schema=1) == {}
    assert sealed(cache, payload_of({}), schema=2) is None


def test_what_is_no_file_is_no_shard_and_gives_way_to_one(cache: Cache, tmp_path: Path) -> None:
    """Nothing waits for a pipe, and nothing is written through a link."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = path_of(cache)
    path.parent.mkdir(parents=True)
    makers: list[Callable[[], object]] = [
        lambda: os.mkfifo(path),
        lambda: path.symlink_to(victim),
    ]
    for make in makers:
        make()
        assert cache.get(GROUP, name_of(0)) is None
        assert cache.put(GROUP, name_of(0), SMALL)
        assert path.is_file()
        assert not path.is_symlink()
        path.unlink()
    assert victim.read_text() == "precious"
    assert told(cache) == []


def test_a_file_larger_than_the_limit_is_not_read_into_memory(cache: Cache) -> None:
    path = path_of(cache)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(1 << 42)  # a hole: it takes no room on disk
    assert cache.get(GROUP, name_of(0)) is None
    assert told(cache) == []


@pytest.mark.parametrize(
    ("fault", "notices"),
    [(errno.ENOENT, 0), (errno.ESTALE, 1), (errno.EIO, 1), (errno.EACCES, 1)],
)
def test_a_shard_that_goes_away_or_cannot_be_read_counts_as_missing(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, fault: int, notices: int
) -> None:
    """One that another process removed is simply not there, and no reason to speak."""
    cache.put(GROUP, name_of(0), SMALL)

    def fail(path: Path) -> bytes:
        raise OSError(fault, os.strerror(fault), str(path))

    monkeypatch.setattr(Path, "read_bytes", fail)
    assert cache.get(GROUP, name_of(0)) is None
    assert (cache.hits, cache.misses, len(told(cache))) == (0, 1, notices)


def test_a_hit_counts_where_its_time_cannot_be_set(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(GROUP, name_of(0), SMALL)

    def fail(path: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", fail)
    assert same(cache.get(GROUP, name_of(0)), SMALL)


# A cache that cannot be written


def test_a_folder_that_is_a_file_is_noticed_once_and_done_without(tmp_path: Path) -> None:
    (tmp_path / "scores").write_text("mine")
    cache = cache_in(tmp_path / "scores")
    assert cache.get(GROUP, name_of(0)) is None
    assert [cache.put(GROUP, name_of(n), SMALL) for n in range(3)] == [False] * 3
    assert told(cache) == [f"1 x score cache not written: {tmp_path / 'scores'}: file exists"]
    assert contents(tmp_path) == {"scores": b"mine"}
    assert cache.saved == 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (errno.ENOSPC, r"no space left writing .*\.scores"),
        (errno.EDQUOT, r"no space left writing .*\.scores"),
        (errno.EROFS, r"writing .*\.scores failed: read-only file system"),
    ],
    ids=["full", "quota", "read-only"],
)
@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_fault_of_the_system_leaves_the_old_shard_and_is_not_tried_again(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str, fault: int, reason: str
) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    before = contents(cache.folder)
    calls = []

    def fail(*given: object) -> None:
        calls.append(given)
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(os, call, fail)
    arrays = {"other": np.zeros(9)}
    assert [cache.put(GROUP, name_of(n), arrays) for n in range(3)] == [False] * 3
    monkeypatch.undo()
    assert not cache.put(GROUP, name_of(0), arrays)
    assert len(calls) == 1
    assert contents(cache.folder) == before
    (line,) = told(cache)
    assert re.match(f"1 x score cache not written: {reason}", line)
    assert same(cache.get(GROUP, name_of(0)), SMALL)
    assert cache.saved == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_read_and_not_written(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    (cache.folder / GROUP).chmod(0o500)
    try:
        other = cache_in(cache.folder)
        assert same(other.get(GROUP, name_of(0)), SMALL)
        assert not other.put(GROUP, name_of(1), SMALL)
    finally:
        (cache.folder / GROUP).chmod(0o700)
    assert "permission denied" in told(other)[0]


# The limit


def size_of_small(folder: Path) -> int:
    cache = cache_in(folder)
    cache.put(GROUP, name_of(0), SMALL)
    return path_of(cache).stat().st_size


def kept(folder: Path) -> set[int]:
    return {int(path.stem, 16) for path in folder.rglob("*.scores")}


def aged(cache: Cache, number: int, seconds: float, group: str = GROUP) -> None:
    path = path_of(cache, number, group)
    os.utime(path, (time.time() - seconds,) * 2)


def test_the_shards_used_longest_ago_go_first_and_the_rest_fit(tmp_path: Path) -> None:
    size = size_of_small(tmp_path / "one")
    cache = cache_in(tmp_path / "scores", 5 * size)
    for number in range(5):
        cache.put((GROUP, OTHER)[number % 2], name_of(number), SMALL)
        aged(cache, number, 100 - number, (GROUP, OTHER)[number % 2])
    assert kept(cache.folder) == set(range(5))
    assert cache.get(GROUP, name_of(0)) is not None
    cache.put(GROUP, name_of(5), SMALL)
    assert kept(cache.folder) == {0, 3, 4, 5}  # nine tenths of five are four
    cache.put(GROUP, name_of(6), SMALL)
    assert kept(cache.folder) == {0, 3, 4, 5, 6}
    assert told(cache) == []


def test_the_cache_never_exceeds_its_limit_and_keeps_what_was_just_written(tmp_path: Path) -> None:
    cache = cache_in(tmp_path / "scores", 9_000)
    rng = np.random.default_rng(0)
    for number, words in enumerate(rng.integers(0, 1_000, 60)):
        assert cache.put(GROUP, name_of(number), {"scores": np.zeros(words)})
        aged(cache, number, -3_600 if number % 3 else 3_600)  # whatever the clock says
        assert number in kept(cache.folder)
        assert info(cache.folder).bytes <= 9_000
    assert cache.saved == 60


def test_shards_of_earlier_runs_count(tmp_path: Path) -> None:
    size = size_of_small(tmp_path / "scores")
    earlier = cache_in(tmp_path / "scores")
    for number in range(20):
        earlier.put(OTHER, name_of(number), SMALL)
        aged(earlier, number, 100, OTHER)
    cache = cache_in(tmp_path / "scores", 10 * size)
    cache.put(GROUP, name_of(99), SMALL)
    assert info(cache.folder).shards == 9
    assert path_of(cache, 99).exists()


def test_a_shard_written_again_counts_once(tmp_path: Path) -> None:
    size = size_of_small(tmp_path / "one")
    cache = cache_in(tmp_path / "scores", 2 * size)
    for _ in range(5):
        for number in range(2):
            assert cache.put(GROUP, name_of(number), SMALL)
    assert kept(cache.folder) == {0, 1}


def test_the_folder_is_read_only_when_the_limit_is_reached(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    monkeypatch.setattr(Cache, "_trim", None)
    for number in range(9):
        assert cache.put(GROUP, name_of(number), SMALL)


def test_arrays_larger_than_the_limit_are_noticed_and_smaller_ones_still_kept(
    tmp_path: Path,
) -> None:
    cache = cache_in(tmp_path / "scores", 5_000)
    for number in range(3):
        assert not cache.put(GROUP, name_of(number), {"scores": np.zeros(1_000)})
    assert not cache.folder.exists()
    assert cache.put(GROUP, name_of(3), SMALL)
    kind = "document with more scores than the cache may hold, not kept; raise RERANK_CACHE_GB"
    assert told(cache) == [f"3 x {kind}, first at {path_of(cache)}"]


def test_shards_that_vanish_while_they_are_counted_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = size_of_small(tmp_path / "scores")
    cache = cache_in(tmp_path / "scores", 3 * size)
    for number in range(3):
        cache.put(GROUP, name_of(number), SMALL)
        aged(cache, number, 100 - number)
    unlink = Path.unlink

    def remove_twice(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=True)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", remove_twice)
    cache.put(GROUP, name_of(3), SMALL)
    assert kept(cache.folder) == {2, 3}
    assert told(cache) == []


def test_what_a_dead_writer_left_aside_is_removed_in_the_end(cache: Cache) -> None:
    cache.put(GROUP, name_of(0), SMALL)
    old, young = (cache.folder / GROUP / f".{'a' * 50}.1.0123456{n}.tmp" for n in "78")
    for path, age in ((old, 7_200), (young, 60)):
        path.write_bytes(b"x")
        os.utime(path, (time.time() - age,) * 2)
    cache_in(cache.folder).put(GROUP, name_of(1), SMALL)
    assert not old.exists()
    assert young.exists()


# Several processes, and sudden death

WRITER = """
import sys
from pathlib import Path
import numpy as np
from rerank.cache import Cache
from rerank.notices import Notices
folder, own, rounds, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
notices = Notices()
cache = Cache(folder, notices, limit)
print("ready", flush=True)
sys.stdin.readline()
for n in range(rounds):
    for group in ("0123456789abcdef", "fedcba9876543210"):
        name = f"{n % 5:016x}"
        found = cache.get(group, name)
        if found is not None:
            value = int(found["writer"])
            assert found["scores"].shape == (2000 * value,), found["scores"].shape
            assert (found["scores"] == value).all()
            assert bytes(found["group"]).decode() == group
        assert cache.put(group, name, {
            "writer": np.array(own),
            "scores": np.full(2000 * own, own, np.float32),
            "group": np.frombuffer(group.encode(), np.uint8),
        })
print(notices.lines())
"""


def writer(folder: Path, own: int, rounds: int, limit: int = 10**9) -> "subprocess.Popen[str]":
    """A process that reads and writes five shards of two groups over and over, in its own size."""
    arguments = [str(folder), str(own), str(rounds), str(limit)]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("limit", [10**9, 100_000], ids=["roomy", "tight"])
def test_processes_that_write_the_same_shards_read_only_whole_ones(
    tmp_path: Path, limit: int
) -> None:
    processes = [writer(tmp_path / "scores", own, 40, limit) for own in range(1, 5)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all start at once
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "[]\n", "")
    assert all(path.suffix == ".scores" for path in (tmp_path / "scores").glob("*/*"))


def test_killed_writers_leave_only_whole_shards(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cache = cache_in(tmp_path / "scores")
    for own in range(1, 7):
        with writer(cache.folder, 100 * own, 10**9) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdout.readline()
            process.stdin.write("\n")
            process.stdin.flush()
            while not cache.folder.exists():
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.1))
            process.kill()
        for path in cache.folder.rglob("*.scores"):
            found = cache.get(path.parent.name, path.stem)
            assert found is not None
            assert (found["scores"] == found["writer"]).all()
    assert cache.hits > 0
    assert told(cache) == []
