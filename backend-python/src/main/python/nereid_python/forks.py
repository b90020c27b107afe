"""Calls from processes that a model forks, such as those of ``multiprocessing``.

A forked process has a socket pair to its parent. It sends frames of the protocol there, with all tensors in them, and
the parent passes them on. Numbers of calls contain the id of the process, so that they stay as they are.
"""

import os
import queue
import signal
import socket
import threading
from typing import Any, List, Optional

from . import protocol
from .memory import LentSlot, Privacy, live_slots
from .protocol import CALL_HEAD, CALL_RESULT, F64, HEADER, HEADER_SIZE, SHAPES, TENSOR, TENSOR_SIZE

_COPY_SECONDS = 10.0
_PASSED_ON = frozenset(
    (
        protocol.CALL, protocol.CALL_CREDIT, protocol.CALL_CANCEL, protocol.CALL_DROP, protocol.CONTROL,
        protocol.METRIC, protocol.LOG,
    )
)


class Forks:
    """Keeps forked processes off the channel, and gives them one of their own."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._pair: Optional[tuple] = None
        self._slots: List[Any] = []
        self._lent: List[Any] = []
        self._privacy: Any = None
        self._kept: List[Any] = []
        os.register_at_fork(
            before=self._before, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
        )

    def _before(self) -> None:
        runner = self._runner
        self._pair = None
        if runner.log_ready and not runner.channel.forked:
            # Shared memory stays shared after a fork. Slots that the process may still read are not used again.
            self._slots = slots = live_slots()
            # Arrays of the model are private: the process gets copies of them, and this one waits meanwhile.
            self._lent = [slot for slot in slots if type(slot) is LentSlot]
            try:
                if self._lent and self._privacy is None:
                    self._privacy = Privacy()
                self._pair = socket.socketpair()
            except (OSError, ImportError, AttributeError):
                pass

    def _after_in_parent(self) -> None:
        pair, self._pair = self._pair, None
        slots, self._slots = self._slots, []
        lent, self._lent = self._lent, []
        if pair is None:
            self._kept.extend(slots)  # nothing tells the end of the process
        else:
            pair[1].close()
            copied = _copied(pair[0]) if lent else b"\0"
            if copied == b"\1":
                slots = [slot for slot in slots if type(slot) is not LentSlot]
            child = _Child(self._runner, pair[0], slots, not copied)
            threading.Thread(target=child.serve, name="forked-process", daemon=True).start()

    def _after_in_child(self) -> None:
        pair, self._pair = self._pair, None
        runner = self._runner
        lent, self._lent = self._lent, []
        runner.after_fork(None if pair is None else pair[1])
        try:
            copied = bool(lent) and self._privacy is not None and self._privacy.take(lent)
            if pair is not None and lent:
                pair[1].sendall(b"\1" if copied else b"\0")
        except (OSError, MemoryError):  # the slots stay with the parent until this process ends
            pass
        if pair is not None:
            pair[0].close()
        self._slots = []
        self._kept = []
        if runner.owns_signal(signal.getsignal(signal.SIGTERM)):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _copied(connection: socket.socket) -> bytes:
    """Waits until a forked process has its copies of the arrays: 1, or 0 if it has none. Empty if it takes long."""
    connection.settimeout(_COPY_SECONDS)
    try:
        return connection.recv(1)
    except OSError:
        return b""
    finally:
        connection.settimeout(None)


class _Child:
    """A forked process, as its parent sees it."""

    def __init__(self, runner: Any, connection: socket.socket, slots: List[Any], late: bool) -> None:
        self._runner = runner
        self._slots = slots
        self._late = late
        self._connection = connection
        self._open: set = set()  # calls and operations that wait for an answer
        self._outgoing: "queue.SimpleQueue[Optional[bytes]]" = queue.SimpleQueue()
        self._writer: Optional[threading.Thread] = None

    def serve(self) -> None:
        """Passes frames on until the process ends. The loop of a thread for each process."""
        try:
            if self._late:
                self._receive(1)
            while True:
                head = self._receive(HEADER_SIZE)
                length, kind, flags, _, ident = HEADER.unpack(head)
                body = self._receive(length - HEADER_SIZE)
                if kind in _PASSED_ON:
                    self._pass_on(head, body, kind, flags, ident)
        except (ConnectionError, OSError):
            pass
        finally:
            calls = self._runner.calls
            for ident in list(self._open):
                calls.drop(ident)
                self.ended(ident)
            self._outgoing.put(None)
            self._connection.close()
            del self._slots[:]

    def _receive(self, size: int) -> bytes:
        parts: List[bytes] = []
        while size:
            data = self._connection.recv(min(size, 1 << 20))
            if not data:
                raise ConnectionError("the process has ended")
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _pass_on(self, head: bytes, body: bytes, kind: int, flags: int, ident: int) -> None:
        calls = self._runner.calls
        answered = True
        if kind == protocol.CALL:
            fields = CALL_HEAD.unpack_from(body)
            start = CALL_HEAD.size
            model = body[start:start + fields[-4]].decode("utf-8", "replace")
            relay = _Relay(self, ident, model)
            if not calls.allowed:
                relay.arrived(calls.not_allowed(), True)
                return
            body = bytes(8) + body[8:]
            self._open.add(ident)
            calls.relay_call(ident, relay)
        elif kind == protocol.CALL_DROP:
            if ident in self._open:
                calls.drop(ident)
                self.ended(ident)
            return
        elif kind == protocol.CONTROL or (kind == protocol.METRIC and flags in protocol.METRIC_REPLIES):
            self._open.add(ident)
            calls.relay_reply(ident, _Reply(self, ident).entry)
        else:
            answered = False
        channel = self._runner.channel
        channel.want_reading(True)
        try:
            channel.send(head + body)
        finally:
            if not answered:
                channel.want_reading(False)

    def send(self, data: bytes) -> None:
        """Sends a frame to the process, without waiting for it."""
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="forked-process", daemon=True)
            self._writer.start()
        self._outgoing.put(data)

    def _write(self) -> None:
        while True:
            data = self._outgoing.get()
            if data is None:
                return
            try:
                self._connection.sendall(data)
            except OSError:
                return

    def ended(self, ident: int) -> None:
        """Notes the end of a call or an operation, once: the process and the call may end at the same time."""
        try:
            self._open.remove(ident)  # one step: no other thread or signal handler comes in between
        except KeyError:
            return
        self._runner.channel.want_reading(False)


class _Relay:
    """Takes the responses of a call in place of a stream, and passes them on."""

    def __init__(self, child: _Child, ident: int, model: str) -> None:
        self._child = child
        self._ident = ident
        self.model = model

    def arrived(self, response: Any, final: bool) -> None:
        flags = protocol.CALL_FINAL if final else 0
        error = response._error
        text = b"" if error is None else error._message.encode("utf-8", "replace")
        if error is not None:
            flags |= protocol.CALL_ERROR
        parameters = response._parameters.encode("utf-8", "replace")
        outputs = response._outputs
        code = 0 if error is None else error._code.value
        parts = [b"", CALL_RESULT.pack(0, code, len(outputs), 0, len(text), len(parameters)), text, parameters]
        position = HEADER_SIZE + sum(map(len, parts))
        for tensor in outputs:
            shape = tensor._shape
            name = tensor._name.encode("utf-8", "replace")
            position += TENSOR_SIZE + 8 * len(shape)
            padding = -position & 7
            position += padding
            size = tensor._size
            parts.append(TENSOR.pack(len(name), tensor._dtype, len(shape), 0, position, size))
            parts.append(SHAPES[len(shape)].pack(*shape))
            parts.append(b"\0" * padding)
            parts.append(bytes(tensor._data[tensor._offset:tensor._offset + size]))
            parts.append(name)
            position += size + len(name)
        parts.append(b"\0" * (-position & 7))
        position += -position & 7
        parts[0] = HEADER.pack(position, protocol.CALL_RESPONSE, flags, 0, self._ident)
        self._child.send(b"".join(parts))
        if final:
            self._child.ended(self._ident)


class _Reply:
    """Takes the reply of an operation in place of a waiting thread, and passes it on."""

    def __init__(self, child: _Child, ident: int) -> None:
        self._child = child
        self._ident = ident
        self.done = False
        self.entry: List[Any] = [self, False, "", 0.0]

    def wake(self) -> None:
        _, failed, text, value = self.entry
        body = F64.pack(value) + protocol.text(text)
        self._child.send(protocol.frame(protocol.REPLY, 1 if failed else 0, 0, self._ident, body))
        self._child.ended(self._ident)
