# Frames and streams: everything that leaves the kernel.
#
# In: text of Python's streams, bytes of descriptors 1 and 2, messages. Out: frames on a private
# descriptor, in the order in which their contents came. A frame is the length of its rest (4
# bytes, big endian), its kind (1 byte), the number of its cell (4 bytes, 0 for none), and its
# payload: bytes of a stream, a message in JSON, or a call. A call is a message in JSON, then the
# nodes of its arguments and their blobs, each part with its length (4 bytes, big endian).

import asyncio
import contextvars
import io
import json
import os
import select
import signal
import struct
import sys
import threading
import time

# The name of this program in tracebacks, where it is left out.
RUNNER = "<isolane>"
# The cell whose code runs, in the context of its task and of what that starts.
CELL = contextvars.ContextVar("isolane_cell", default=None)
STDOUT, STDERR, MESSAGE, CALL = b"o", b"e", b"j", b"c"
# Lines of Python's streams are sent at once, so many in that time; further ones at that size, or
# after that time.
TEXT_LINES, TEXT_SECONDS, TEXT_BYTES = 50, 0.03, 16 << 10
# The bytes of one frame of a stream, and those that are taken from a pipe at once.
PIECE_BYTES, PIPE_BYTES = 1 << 20, 1 << 20


class Channel:
    """The way to the host. While the main thread is inside of `with channel`, an interrupt waits: a
    frame is sent whole."""

    def __init__(self, descriptor, pipes, frame_bytes):
        self.descriptor = descriptor
        self.frame_bytes = frame_bytes
        self.kernel = None
        # The reading ends of the pipes behind descriptors 1 and 2, and their kinds.
        self.pipes = pipes
        self.ready = select.poll()
        for pipe in pipes:
            os.set_blocking(pipe, False)
            self.ready.register(pipe, select.POLLIN)
        self.lock = threading.RLock()
        self.main = threading.get_ident()
        self.depth = 0
        self.interrupted = False
        # Text that was not sent yet, all of one kind and cell.
        self.text, self.size, self.head = [], 0, (STDOUT, 0)
        self.lines, self.since = 0, 0.0
        self.wake = threading.Event()

    def __enter__(self):
        if threading.get_ident() == self.main:
            self.depth += 1
        self.lock.acquire()
        return self

    def __exit__(self, *_):
        self.lock.release()
        if threading.get_ident() == self.main:
            self.depth -= 1
            if self.interrupted and self.depth == 0:
                self.interrupted = False
                raise KeyboardInterrupt

    def write(self, kind, descriptor, data):
        """Takes text, or bytes, of one of Python's streams."""
        if self.descriptor is None:
            # A forked child writes as any process does: whole lines, among those of its parent.
            self.text.append(encoded(data))
            self.size += len(data)
            if self.size >= TEXT_BYTES or data[-1:] in ("\n", b"\n"):
                self.flush_child(descriptor)
            return
        with self:
            # The bytes in the pipes came after the text that waits.
            if data != "\n" and self.ready.poll(0):
                self.flush_text()
                self.drain()
            head = (kind, self.kernel.current_cell())
            if head != self.head:
                self.flush_text()
                self.head = head
            self.text.append(encoded(data))
            self.size += len(data)
            if self.size >= TEXT_BYTES or (data[-1:] in ("\n", b"\n") and self.is_early()):
                self.flush_text()
            elif not self.wake.is_set():
                self.wake.set()

    def is_early(self):
        """Whether few lines were sent one by one of late."""
        now = time.monotonic()
        if now - self.since > TEXT_SECONDS:
            self.lines, self.since = 0, now
        self.lines += 1
        return self.lines <= TEXT_LINES

    def flush(self):
        """Sends all text and all bytes that are here."""
        if self.descriptor is not None:
            with self:
                self.flush_text()
                self.drain()

    def flush_forever(self):
        """Sends text that waits, in a thread of its own."""
        while True:
            self.wake.wait()
            time.sleep(TEXT_SECONDS)
            with self:
                self.wake.clear()
                self.flush_text()

    def message(self, message, cell):
        """Sends a message behind all that came before. One that no frame can hold becomes text."""
        payload = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
        if len(payload) > self.frame_bytes:
            text = f"[a display of {len(payload):,} bytes left out]"
            payload = json.dumps({"type": "text", "text": text}).encode()
        with self:
            self.flush_text()
            self.drain()
            self.send(MESSAGE, cell, payload)

    def call(self, message, nodes, blobs):
        """Sends a call, whose arguments are these parts of a message; false if no frame can hold
        it."""
        parts = [json.dumps(message).encode(), nodes, *blobs]
        payload = b"".join(struct.pack(">I", len(part)) + part for part in parts)
        if len(payload) > self.frame_bytes:
            return False
        with self:
            self.flush_text()
            self.drain()
            self.send(CALL, self.kernel.current_cell(), payload)
        return True

    def flush_text(self):
        data, (kind, cell) = b"".join(self.text), self.head
        self.text, self.size = [], 0
        for start in range(0, len(data), PIECE_BYTES):
            self.send(kind, cell, data[start : start + PIECE_BYTES])

    def flush_child(self, descriptor):
        view, self.text, self.size = memoryview(b"".join(self.text)), [], 0
        while view:
            view = view[os.write(descriptor, view) :]

    def drain(self):
        """Sends what is in the pipes: at most what a full one holds, as others may write on."""
        cell = self.kernel.current_cell()
        for pipe, kind in list(self.pipes.items()):
            taken = 0
            while taken < PIPE_BYTES:
                try:
                    data = os.read(pipe, PIPE_BYTES)
                except BlockingIOError:
                    break
                except OSError:
                    data = b""
                if not data:
                    # All writers are gone.
                    self.ready.unregister(pipe)
                    del self.pipes[pipe]
                    break
                taken += len(data)
                self.send(kind, cell, data)

    def send(self, kind, cell, payload):
        view = memoryview(struct.pack(">IcI", len(payload) + 5, kind, cell) + payload)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def receive(self, length):
        """The next bytes from the host. Without a host this process and its group end."""
        data = bytearray()
        while len(data) < length:
            piece = os.read(self.descriptor, min(length - len(data), PIECE_BYTES))
            if not piece:
                os.killpg(0, signal.SIGKILL)
            data += piece
        return bytes(data)

    def before_fork(self):
        self.flush()

    def after_fork(self):
        """A child has the streams of any process, and no way to the host."""
        if self.descriptor is not None:
            # A child's own child had no way to begin with.
            os.close(self.descriptor)
        for pipe in self.pipes:
            os.close(pipe)
        self.descriptor, self.pipes, self.text, self.size = None, {}, [], 0
        self.lock = threading.RLock()
        self.depth = 0


def encoded(data):
    """Text as bytes. Lone surrogates become bytes that are no UTF-8."""
    if not isinstance(data, str):
        return bytes(data)
    try:
        return data.encode()
    except UnicodeEncodeError:
        return data.encode("utf-8", "surrogatepass")


class Bytes(io.BufferedIOBase):
    """The `buffer` of a stream."""

    def __init__(self, stream):
        self.stream = stream

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self.stream.channel.write(self.stream.kind, self.stream.fileno(), data)
        return len(data)

    def flush(self):
        self.stream.flush()

    def fileno(self):
        return self.stream.fileno()


class Stream(io.TextIOBase):
    """`sys.stdout` and `sys.stderr`."""

    encoding = "utf-8"
    errors = "replace"
    mode = "w"
    line_buffering = True

    def __init__(self, channel, kind, descriptor, name):
        self.channel, self.kind, self.descriptor, self.name = channel, kind, descriptor, name
        self.buffer = Bytes(self)

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self.channel.write(self.kind, self.descriptor, text)
        return len(text)

    def flush(self):
        self.channel.flush()

    def fileno(self):
        return self.descriptor

    def isatty(self):
        return False

    def reconfigure(self, **_):
        pass

    def close(self):
        pass


def no_input(*_, **__):
    raise RuntimeError("Kernel requested stdin; interactive input is not supported.")


class Stdin(io.TextIOBase):
    """`sys.stdin`: nobody types."""

    encoding = "utf-8"
    name = "<stdin>"
    read = readline = readlines = __next__ = no_input

    def readable(self):
        return True

    def fileno(self):
        return 0

    def isatty(self):
        return False

    def close(self):
        pass
