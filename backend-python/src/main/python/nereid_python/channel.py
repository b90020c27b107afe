"""The socket to the server: frames in both directions, and the choice of the thread that reads.

A thread that waits for a frame reads the socket, and passes the frames of other threads on. A thread that only reads
would cost a change of threads for each request. While the main thread executes the model and no other thread waits, the
watch thread reads, so that cancellations and readiness checks are seen.
"""

import collections
import errno
import fcntl
import os
import select
import socket
import sys
import threading
import time
import traceback
from typing import Callable, Deque, List, Optional

from . import protocol
from .protocol import HEADER, HEADER_SIZE

RECEIVE_SIZE = 1 << 16
WATCH_SECONDS = 0.02
TRIM_SECONDS = 5.0
HIGH_DESCRIPTOR = 900
QUIET_TICKS = 50
QUIET_SECONDS = 11.0

Handler = Callable[[bytes, int, int, int, int], None]


class Waiter:
    """A thread that waits for a frame."""

    __slots__ = ("done", "lock")

    def __init__(self) -> None:
        self.done = False
        self.lock = threading.Lock()
        self.lock.acquire()

    def wake(self) -> None:
        """Lets the thread look again. Extra calls do no harm."""
        try:
            self.lock.release()
        except RuntimeError:
            pass


class Channel:
    """Frames to and from the server. Thread-safe."""

    def __init__(self, connection: socket.socket, on_end: Callable[[], None]) -> None:
        self._socket = connection
        self._descriptor = connection.fileno()
        self._receive = connection.recv
        self._send = connection.send
        self._on_end = on_end
        # Reentrant: a finalizer or a signal handler may log in the middle of a write.
        self._write_lock = threading.RLock()
        self._writing = False  # with the lock held: a frame is partly written
        self._writer = 0
        self._read_lock = threading.Lock()
        self._rest = b""
        self._handlers: List[Optional[Handler]] = [None] * 256
        self._main: Deque[tuple] = collections.deque()
        self._main_types = frozenset(
            (protocol.OPEN, protocol.COMPLETE, protocol.INITIALIZE, protocol.EXECUTE, protocol.FINALIZE)
        )
        self._main_waiter = Waiter()
        self._waiters: Deque[Waiter] = collections.deque()
        self._released: Deque[tuple] = collections.deque()
        self._later: Deque[bytes] = collections.deque()
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN | select.POLLHUP | select.POLLERR)
        self._watch_signal = threading.Semaphore(0)
        self._watch_asleep = False
        self._watch_ticks = 0
        self._frames = 0
        self._reading_wanted = 0
        self._wanted_lock = threading.RLock()
        self._trim_at = 0.0
        self.busy = True
        self.interrupted = False  # a signal handler has raised while a thread waited, and nothing was lost
        self.written = 0
        self.forked = False
        self.closing = False
        self.on_quiet: Callable[[], None] = lambda: None
        self.on_idle: Callable[[], bool] = lambda: False  # whether to call it again

    def wake_watch(self) -> None:
        """Lets the watch thread look again for memory to give up; it may sleep since long."""
        if self._watch_asleep:
            self._watch_asleep = False
            self._watch_signal.release()

    def handle(self, kind: int, handler: Handler) -> None:
        """Sets the function for frames of a type; it runs on whichever thread reads."""
        self._handlers[kind] = handler

    # Writing

    def after_fork(self, connection: Optional[socket.socket]) -> None:
        """Goes on with the socket to the parent process, or with none. The channel of the parent is left alone."""
        self.forked = True
        self._socket.detach()
        try:
            os.close(self._descriptor)
        except OSError:
            pass
        self._released.clear()
        self._later.clear()
        self._waiters.clear()
        self._rest = b""
        self._write_lock = threading.RLock()
        self._read_lock = threading.Lock()
        self._wanted_lock = threading.RLock()
        self._writing = False
        self._writer = 0
        self._on_end = _parent_ended
        if connection is not None:
            self._socket = connection
            self._descriptor = connection.fileno()
            self._receive = connection.recv
            self._send = connection.send
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLIN | select.POLLHUP | select.POLLERR)
        else:
            self._send = len  # writes nothing: this process has no socket

    def send(self, data: bytes) -> None:
        """Writes whole frames, and the releases that have gathered."""
        with self._write_lock:
            if self._writing:
                # A signal handler or a finalizer of this thread: the frame goes behind the one that is being written.
                self._later.append(data)
                return
            if self._released or self._later:
                # After the data, which may name a slot that is among the released ones.
                data = b"".join([data] + self._gathered())
            self._write(data)
        if self._later or (self._released and not self.busy):
            self.flush()

    def send_later(self, data: bytes) -> None:
        """Writes frames soon; for finalizers, which may run on any thread while it holds any lock.

        Frames about objects of the parent are not for a forked process: see ``send_later_of_fork``.
        """
        if not (self.forked or self.closing):
            self._later.append(data)
            self.flush()

    def send_later_of_fork(self, data: bytes) -> None:
        """Writes frames soon, from a forked process to its parent."""
        self._later.append(data)
        try:
            self.flush()
        except OSError:  # the parent has ended
            pass

    def release(self, segment: int, offset: int) -> None:
        """Gives an incoming slot back, with the next frame or soon; for finalizers."""
        if self.forked or self.closing:
            return
        self._released.append((segment, offset))
        if not self.busy:
            self.flush()

    def flush(self) -> None:
        """Writes the gathered frames, unless another thread is about to."""
        while self._released or self._later:
            if not self._write_lock.acquire(False):
                return  # send() looks again, or the watch thread does
            try:
                if self._writing:
                    return
                data = b"".join(self._gathered())
                if data:
                    self._write(data)
            finally:
                self._write_lock.release()

    def _write(self, data: bytes) -> None:
        """Writes all of the data. What a signal handler of the model raises meanwhile is raised afterwards."""
        # extend() notes the number of bytes before a signal handler can run.
        counts: List[int] = []
        raised: Optional[BaseException] = None
        self._writer = threading.get_ident()
        self._writing = True
        try:
            try:
                counts.extend(map(self._send, (data,)))
            except OSError as error:
                if error.errno is not None and not counts:
                    self._on_end()
                    raise
                raised = error
            except BaseException as error:
                raised = error
            while sum(counts) < len(data):
                try:
                    counts.extend(map(self._send, (memoryview(data)[sum(counts):],)))
                except OSError as error:
                    if error.errno is not None:
                        self._on_end()
                        raise
                    raised = error
                except BaseException as error:
                    raised = error
        finally:
            self._writing = False
            self._writer = 0
        self.written += 1
        if raised is not None:
            raise raised

    def _gathered(self) -> List[bytes]:
        parts = []
        released = self._released
        if released:
            slots = []
            while len(slots) < 8000:
                try:
                    slots.append(released.popleft())
                except IndexError:
                    break
            body = b"".join([_SLOT.pack(segment, 0, offset) for segment, offset in slots])
            parts.append(protocol.frame(protocol.RELEASED, 0, len(slots), 0, body))
        later = self._later
        while later:
            try:
                parts.append(later.popleft())
            except IndexError:
                break
        return parts

    # Reading

    def next_main(self) -> tuple:
        """Waits for the next frame of the main thread: data, start, flags, count and id, type."""
        frames = self._main
        self.interrupted = False
        self.busy = False
        if self._released or self._later:
            self.flush()
        while not frames:
            if self._read_lock.acquire(False):
                try:
                    while not frames:
                        self._read()
                finally:
                    self._read_lock.release()
            else:
                self._sleep(self._main_waiter, lambda: bool(frames))
        self.busy = True
        if self._waiters:
            self._promote()
        self._frames += 1
        if self._watch_asleep:
            self._watch_asleep = False
            self._watch_signal.release()
        return frames.popleft()

    def _may_wait(self) -> None:
        if self._writer and self._writer == threading.get_ident():
            raise RuntimeError("a signal handler or finalizer cannot wait for the server while a frame is written")

    def wait(self, waiter: Waiter) -> None:
        """Waits until ``waiter.done``, and reads meanwhile if no other thread does."""
        self._may_wait()
        while not waiter.done:
            if self._read_lock.acquire(False):
                try:
                    while not waiter.done:
                        self._read()
                finally:
                    self._read_lock.release()
            else:
                self._sleep(waiter, lambda: waiter.done)
        if self._waiters:
            self._promote()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until frames have made the condition true; for rare cases."""
        self._may_wait()
        waiter = Waiter()
        while not condition():
            if self._read_lock.acquire(False):
                try:
                    while not condition():
                        self._read()
                finally:
                    self._read_lock.release()
            else:
                self._waiters.append(waiter)
                if not condition():
                    waiter.lock.acquire(True, WATCH_SECONDS)
                self._forget(waiter)
        if self._waiters:
            self._promote()

    def drain(self) -> None:
        """Reads the frames that have already arrived, if no other thread reads."""
        if self._read_lock.acquire(False):
            try:
                while self._poll.poll(0):
                    self._read()
            finally:
                self._read_lock.release()
                if self._waiters:
                    self._promote()

    def want_reading(self, wanted: bool) -> None:
        """Lets the watch thread read at once while the main thread is in the model."""
        with self._wanted_lock:
            self._reading_wanted += 1 if wanted else -1
        if wanted:
            self._watch_asleep = False
            self._watch_signal.release()

    def _sleep(self, waiter: Waiter, ready: Callable[[], bool]) -> None:
        self._waiters.append(waiter)
        if self._read_lock.acquire(False):
            # The reader left between the two attempts.
            self._read_lock.release()
        elif not ready():
            try:
                waiter.lock.acquire()
            except BaseException:
                self.interrupted = True
                self._forget(waiter)
                raise
        self._forget(waiter)

    def _forget(self, waiter: Waiter) -> None:
        try:
            self._waiters.remove(waiter)
        except ValueError:
            pass

    def _promote(self) -> None:
        """Wakes a waiting thread, which becomes the reader, unless there is one; the main thread goes first.

        Every thread that stops waiting calls this: the one that was woken last may have had its frame already.
        """
        waiters = self._waiters
        if self._read_lock.locked():
            return
        if self._main_waiter in waiters:
            self._main_waiter.wake()
            return
        try:
            waiters.popleft().wake()
        except IndexError:
            pass

    def _read(self) -> None:
        """Receives once and dispatches all whole frames. Only with the read lock."""
        # extend() keeps what was received before a signal handler can run.
        box: List[bytes] = []
        raised: Optional[BaseException] = None
        try:
            box.extend(map(self._receive, (RECEIVE_SIZE,)))
        except BaseException as error:
            raised = error
        if box:
            data = box[0]
        elif isinstance(raised, OSError) and raised.errno is not None:
            data = b""
            if raised.errno == errno.EBADF:
                sys.stderr.write("the descriptor of the channel to the server was closed in this process\n")
        elif raised is not None:  # by a signal handler, and nothing was received
            self.interrupted = True
            raise raised
        if not data:
            self._on_end()
            raise ConnectionError("the server has closed the channel")
        if self._rest:
            data = self._rest + data
            self._rest = b""
        position = 0
        end = len(data)
        handlers = self._handlers
        main_types = self._main_types
        while end - position >= HEADER_SIZE:
            length, kind, flags, count, ident = HEADER.unpack_from(data, position)
            if length > end - position:
                data, position, end = self._complete(data, position, length)
            if kind in main_types:
                self._main.append((data, position, flags, count, ident, kind))
                if self._main_waiter in self._waiters:
                    self._main_waiter.wake()
            else:
                handler = handlers[kind]
                if handler is not None:
                    try:
                        handler(data, position, flags, count, ident)
                    except Exception:
                        self._broken(kind)
            position += length
        if position < end:
            self._rest = bytes(data[position:end])
        if raised is not None:
            self.interrupted = True
            raise raised

    def _broken(self, kind: int) -> None:
        """Ends the process: a frame was lost, and something would wait for it without end."""
        sys.stderr.write("frame of type %d cannot be handled\n%s" % (kind, traceback.format_exc()))
        sys.stderr.flush()
        os._exit(4)

    def _complete(self, data: bytes, position: int, length: int) -> tuple:
        """Receives the rest of a long frame into a separate buffer."""
        if length < HEADER_SIZE or length > protocol.FRAME_LIMIT:
            self._on_end()
            raise ConnectionError("frame of %d bytes" % length)
        whole = bytearray(length)
        have = len(data) - position
        view = memoryview(whole)
        view[:have] = data[position:]
        while have < length:
            count = self._socket.recv_into(view[have:])
            if not count:
                self._on_end()
                raise ConnectionError("the server has closed the channel")
            have += count
        view.release()
        return whole, 0, length

    # The watch thread

    def watch(self) -> None:
        """Reads while the main thread executes the model. The loop of the watch thread."""
        while not self.forked:
            try:
                self._watch()
            except Exception:
                if not self.closing:
                    sys.stderr.write(traceback.format_exc())
                time.sleep(1)

    def _watch(self) -> None:
        while not self.forked:
            if self._watch_ticks > QUIET_TICKS and not self._reading_wanted:
                self._watch_ticks = 0
                self._watch_asleep = True
                if not self.busy:
                    self._quiet()
                    continue
                self._watch_asleep = False
            seen = self._frames
            now = time.monotonic()
            if now >= self._trim_at:
                self._trim_at = now + TRIM_SECONDS
                self.on_quiet()
            if not self._reading_wanted:
                self._watch_signal.acquire(True, WATCH_SECONDS)
            if self.busy:
                self._watch_ticks = 0
                if self._later or self._released:
                    self.flush()
                if seen == self._frames or self._reading_wanted:
                    self._watch_read(seen)
            elif seen == self._frames:
                self._watch_ticks += 1
                if self._reading_wanted:
                    time.sleep(WATCH_SECONDS)

    def _watch_read(self, seen: int) -> None:
        if not self._read_lock.acquire(False):
            if self._reading_wanted:
                time.sleep(WATCH_SECONDS / 4)
            return
        try:
            milliseconds = int(WATCH_SECONDS * 1000)
            while self.busy and not self._waiters:
                if self._poll.poll(milliseconds):
                    self._read()
                elif self._released or self._later:
                    self.flush()
        except ConnectionError:
            pass
        finally:
            self._read_lock.release()
            if self._waiters:
                self._promote()

    def _quiet(self) -> None:
        """Sleeps until the next frame of the main thread; gives up memory before, and again later.

        As long as requests are open, it looks again and again: a thread of the model may lose one at any time.
        """
        try:
            self.on_idle()
            while not self._watch_signal.acquire(True, QUIET_SECONDS) and not self.busy:
                if not self.on_idle():
                    self._watch_signal.acquire()
                    return
        finally:
            self._watch_asleep = False


_SLOT = protocol.Struct("<IIQ")


def _parent_ended() -> None:
    raise ConnectionError("the process of the model has ended")


def connect(address: str) -> socket.socket:
    """Connects to the server: ``fd:N`` is an inherited socket, all else the path of one, ``@`` for an abstract name."""
    if address.startswith("fd:"):
        connection = socket.socket(fileno=int(address[3:]))
        os.set_inheritable(connection.fileno(), False)
    else:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect("\0" + address[1:] if address.startswith("@") else address)
    return out_of_reach(connection)


def out_of_reach(connection: socket.socket) -> socket.socket:
    """Moves a socket to a high descriptor, away from code that closes all low ones."""
    try:
        descriptor = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
    except OSError:  # above the limit
        connection.set_inheritable(False)
        return connection
    connection.close()
    return socket.socket(fileno=descriptor)
