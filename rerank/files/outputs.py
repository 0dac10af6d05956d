"""Atomic output files: the final name holds either the old content or the complete new content.

A file is written under a temporary name in the folder of its target, synced and renamed over the
target; then the folder is synced.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import io
import json
import lzma
import os
import re
import secrets
import shlex
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from rerank.errors import RerankError, UsageError
from rerank.files.lines import InputFiles
from rerank.files.paths import CONFIGURATION, FilePath, display, refuse_long
from rerank.files.terminal import harmless, results

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BUFFER_BYTES = 1 << 20
_STALE_SECONDS = 3600
_STARTED = time.time()  # no temporary file of this process is older
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_DESCRIPTORS = ("/dev", "/dev/fd", "/proc/self/fd")


@contextmanager
def atomic(path: FilePath) -> Iterator[BinaryIO]:
    """Binary file whose content replaces that of `path` when the block ends without an error.

    The suffixes `.gz`, `.xz` and `.bz2` compress; symbolic links are followed. `-` (standard
    output), pipes and devices are written directly. System errors are RerankErrors that name the
    output; a reader that has gone is a BrokenPipeError.
    """
    with atomic_all([path]) as (file,):
        yield file


@contextmanager
def atomic_all(paths: Sequence[FilePath]) -> Iterator[list[BinaryIO]]:
    """`atomic` for several outputs of a run: all are on disk before the first is renamed.

    If writing fails, all keep their old content. RerankError if the reader of a pipe has gone and
    files are therefore not written.
    """
    pending: list[_TemporaryFile] = []
    try:
        with ExitStack() as writing:
            yield [writing.enter_context(_writing(path, pending)) for path in paths]
        for file in pending:
            file.rename()
    except BaseException as fault:
        for file in pending:
            with suppress(OSError):
                os.unlink(file.temporary)
        if isinstance(fault, BrokenPipeError) and pending:
            names = ", ".join(display(file.path) for file in pending)
            raise RerankError(
                f"the reader of the output has gone; {names} is not written"
            ) from None
        raise


def to_json(content: object) -> bytes:
    """`content` as indented UTF-8 JSON; ValueError for NaN or infinity."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # a lone surrogate, from a file name that is not UTF-8, becomes the JSON escape \udcXX
    return text.encode("utf-8", "backslashreplace")


def check_outputs(
    outputs: Iterable[FilePath | None],
    inputs: Iterable[FilePath | None],
    folders_read: Iterable[FilePath] = (),
) -> InputFiles:
    """The inputs as they are now; UsageError for outputs that would overwrite one, or each other.

    Nor may an output stand in a folder that is read; a file of options is an input, too. None is
    for a file that is not given. UsageError for outputs that cannot be written, as well.
    """
    import click

    read: dict[object, str] = {}
    folders: list[str] = []
    context = click.get_current_context(silent=True)
    options = None if context is None else context.meta.get(CONFIGURATION)
    files = [path for path in inputs if path is not None]
    for path in [*files, *folders_read, *([options] if options else [])]:
        key = _identity(path)
        if key == "-" and key in read:
            raise UsageError("only one input can be - (standard input); name files for the others")
        read[key] = display(path)
        if os.path.isdir(path):
            folders.append(os.path.realpath(path))
            with suppress(OSError):  # files of a folder may be links to files elsewhere
                read |= {_identity(entry): display(entry.path) for entry in os.scandir(path)}
    written: dict[object, str] = {}
    for path in (path for path in outputs if path is not None):
        key, name = _identity(path), display(path)
        if key == "-" and key in written:
            raise UsageError("only one output can be - (standard output); name files for others")
        if key is not None and key in written:
            raise UsageError(f"outputs {written[key]} and {name} are the same file; name two")
        if key not in (None, "-") and key in read:
            raise UsageError(f"output {name} is also the input {read[key]}; name another file")
        if key != "-" and any(Path(os.path.realpath(path)).is_relative_to(f) for f in folders):
            raise UsageError(f"output {name} is in a folder that is an input; name another folder")
        written[key] = name
        if key != "-":
            _check_writable(path, name)
    return InputFiles(files)


# Where the bytes go


@contextmanager
def _writing(path: FilePath, pending: list[_TemporaryFile]) -> Iterator[BinaryIO]:
    """Buffered file of an output, compressing if its suffix says so."""
    with _destination(path, pending) as raw, ExitStack() as closing:
        sink = _Sink(raw, path)
        buffered = closing.enter_context(io.BufferedWriter(sink, _BUFFER_BYTES))
        packed = _packing(buffered, Path(path).suffix)
        try:
            yield closing.enter_context(packed) if packed else cast(BinaryIO, buffered)
        except BaseException:
            sink.dropping = True
            raise


def _destination(path: FilePath, pending: list[_TemporaryFile]) -> AbstractContextManager[BinaryIO]:
    """Unbuffered file of an output."""
    if str(path) in _STDOUT:
        stream = results()
        if stream is None:
            raise UsageError("standard output is closed; name a file instead of -")
        stream.flush()
        # unbuffered, because bytes left in the buffer after an error would raise again at exit
        return nullcontext(getattr(stream.buffer, "raw", stream.buffer))
    if _is_stream(path):
        return _open(str(path), "wb", path)
    file = _TemporaryFile(path)
    pending.append(file)
    return file.writing()


class _TemporaryFile:
    """A file under a temporary name beside the target that it will replace."""

    def __init__(self, path: FilePath) -> None:
        self.path, self.target = path, _resolved(path)
        self.folder = os.path.dirname(self.target)
        self.temporary = _aside(self.target)

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """The unbuffered file, synced to disk when the block ends without an error."""
        with _open(self.temporary, "xb", self.path) as raw:
            yield raw
            with _naming(self.path):
                os.fsync(raw.fileno())

    def rename(self) -> None:
        """Replace the target; after this a power failure does not undo it."""
        with _naming(self.path):
            os.replace(self.temporary, self.target)
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                with suppress(OSError):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def scratch_folder(target: FilePath, mode: int = 0o777) -> Iterator[Path]:
    """New folder under a temporary name beside a target, which it may be renamed to, or removed."""
    path = Path(_aside(os.path.realpath(target)))
    path.mkdir(mode)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _aside(target: str) -> str:
    """A temporary name beside a target, where no old ones of dead processes are left."""
    folder, name = os.path.split(target)
    prefix = f".{name[:50]}."
    _sweep(folder, prefix)
    return os.path.join(folder, f"{prefix}{os.getpid()}.{secrets.token_hex(4)}.tmp")


class _Sink(io.RawIOBase):
    """Unbuffered stream into `raw` whose errors name the output; `harmless` on a terminal.

    dropping: discard what is written, so that buffers can be closed quietly after an error.
    """

    def __init__(self, raw: BinaryIO, path: FilePath) -> None:
        self._raw, self._path, self._size = raw, path, 0
        self.dropping = False
        self._decoder: codecs.IncrementalDecoder | None = None
        if raw.isatty():
            # a character may be written in parts
            self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        if self.dropping:
            return size
        with _naming(self._path, self._size):
            if self._decoder is None:
                size = self._raw.write(data)
            else:
                left = memoryview(harmless(self._decoder.decode(bytes(data))).encode())
                while left:
                    left = left[self._raw.write(left) :]
        self._size += size
        return size


def _open(file: str, mode: str, path: FilePath) -> BinaryIO:
    with _naming(path):
        return cast(BinaryIO, open(file, mode, buffering=0))  # mode 0o666 less the umask


@contextmanager
def _naming(path: FilePath, size: int = 0) -> Iterator[None]:
    """System errors as RerankErrors that name the output, of which `size` bytes are written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as fault:
        name = "<stdout>" if str(path) in _STDOUT else display(path)
        message = f"writing {name} failed: {(fault.strerror or str(fault)).lower()}"
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"no space left writing {name} (it needs more than {size / 1e6:.1f} MB)"
        raise RerankError(message) from None


def _sweep(folder: str, prefix: str) -> None:
    """Remove what is temporary beside this target, an hour old, and of a process that is gone."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)\.[0-9a-f]{8}\.tmp")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = pattern.fullmatch(entry.name)
            if not name or time.time() - (written := entry.stat().st_mtime) < _STALE_SECONDS:
                continue
            try:
                os.kill(int(name[1]), 0)
                # in a container this process may have the number of a process that is gone
                gone = int(name[1]) == os.getpid() and written < _STARTED
            except ProcessLookupError:
                gone = True
            if gone and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif gone:
                os.unlink(entry.path)


def _packing(file: BinaryIO, suffix: str) -> BinaryIO | None:
    """File that compresses into `file` if the suffix says so, which it leaves open when closed."""
    if suffix == ".gz":  # without name and time, so that equal content gives equal bytes
        return cast(BinaryIO, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0))
    packers = {".xz": lzma.LZMAFile, ".bz2": bz2.BZ2File}
    return cast(BinaryIO, packers[suffix](file, "wb")) if suffix in packers else None


# Kinds of paths


def _identity(path: FilePath) -> object:
    """Key that is equal for two paths of the same file; None for pipes and devices."""
    if str(path) in _STDOUT:
        return "-"
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _is_stream(path: FilePath) -> bool:
    """Whether an output is a pipe, a device or a file descriptor, which no rename can replace."""
    if os.path.dirname(path) in _DESCRIPTORS:
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _resolved(path: FilePath) -> str:
    """The path with symbolic links resolved."""
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise UsageError(f"output {display(path)} is a symbolic link to itself")
    if os.path.isdir(target):
        raise UsageError(f"output {display(path)} is a folder; name a file in it")
    return str(target)


def _check_writable(path: FilePath, name: str) -> None:
    """UsageError for an output that is not a file in a writable folder."""
    if _is_stream(path):
        if not os.access(path, os.W_OK):
            raise UsageError(f"output {name} cannot be written: permission denied")
        return
    target = _resolved(path)
    folder = os.path.dirname(target if os.path.islink(path) else path) or "."
    check_folder(folder, f"output {name}")
    if not os.path.isdir(folder):
        made = shlex.quote(display(folder))
        raise UsageError(
            f"output {name}: no folder {display(folder)}; make it with: mkdir -p {made}"
        )
    file = _TemporaryFile(path)
    for needed in (file.target, file.temporary):
        refuse_long(needed)


def check_matplotlib(option: str) -> None:
    """UsageError for an option that draws, without matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(
            f"{option} needs matplotlib: pip install 'rerank-mt[figures]', or leave {option} out"
        ) from None


def check_folder(folder: str | Path, name: str) -> None:
    """UsageError for a folder that neither can be written nor made; `name` is for the message."""
    near = str(folder)
    while not os.path.lexists(near):
        refuse_long(near)
        near = os.path.dirname(near) or "."
    if not os.path.isdir(near):
        raise UsageError(f"{name}: {display(near)} is not a folder; name another")
    if not os.access(near, os.W_OK | os.X_OK):
        raise UsageError(f"{name}: the folder {display(near)} cannot be written")


def check_new_folder(out: Path, fault: str = "not empty; name a new folder") -> None:
    """UsageError for a folder that cannot be written, or, with this fault, that is not empty."""
    check_folder(out, str(out))
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out}: {fault}")


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """A folder that no other run writes meanwhile; UsageError if one does.

    The lock is on a file beside the folder, and ends with the process, however it ends. Where files
    cannot be locked, or none can be made, there is no lock.
    """
    lock = Path(os.path.abspath(out))
    lock = lock.with_name(f".{lock.name}.lock")
    with ExitStack() as held:
        with suppress(OSError, ImportError):
            import fcntl

            os.makedirs(lock.parent, exist_ok=True)
            file = held.enter_context(open(lock, "ab"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                other = not os.fstat(file.fileno()).st_nlink  # its last writer has removed it
            except BlockingIOError:
                other = True
            if other:
                raise UsageError(f"{out}: another run writes this folder; name a new one, or wait")
            held.callback(lock.unlink, missing_ok=True)
        yield
