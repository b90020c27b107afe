"""The state of requests on this side: responses sent, the end, cancellation, flow control."""

import threading
from typing import Any, List, Optional, Set

from . import protocol
from .channel import Waiter
from .memory import MemoryRefused
from .protocol import HEADER, HEADER_SIZE, RESULT

_MORE = "Unable to send response. Non-decoupled model cannot send more than one response."
_FINAL_FIRST = "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
_FORKED = "Unable to send response. A forked process cannot send responses."
_CLOSED = "Unable to send response. Response sender has been closed."

_FINAL_ALONE = RESULT.pack(protocol.RESULT_FINAL, protocol.FLAG_FINAL, 0, 0, 0)


class Flow:
    """Cancellation and credit of a request, set by frames of the server. The runner keeps it by the request's number."""

    # Defaults on the class: most requests never change them.
    cancelled = False
    credit = 1 << 62
    waiters: Optional[List[Waiter]] = None

    def wake(self) -> None:
        """Wakes the senders that wait for credit."""
        waiters = self.waiters
        if waiters:
            self.waiters = None
            for waiter in waiters:
                waiter.done = True
                waiter.wake()


class RequestState:
    """One request that the model executes. The request and its sender share it; nothing else holds it.

    So its end without a final response is the end of all that could send one: the client then gets an error.
    """

    # Reentrant: a finalizer of the model may send in the middle of a send.
    lock = threading.RLock()
    #: Of the process; set before its first request.
    runner: Any = None
    decoupled = False

    # The runner sets these for each request; the others are defaults.
    handle: int
    flow: Flow
    wanted: Optional[Set[str]] = None
    sent = 0
    closed = False
    used = False

    def sender_made(self) -> None:
        """Notes that the model has asked for the sender."""
        self.used = True

    def close(self) -> None:
        """Ends the request on this side."""
        self.closed = True
        self.runner.flows.pop(self.handle, None)

    def is_cancelled(self) -> bool:
        """Returns whether the request is cancelled; reads the frames that have arrived first."""
        flow = self.flow
        if not flow.cancelled and not self.closed:
            self.runner.channel.drain()
        return flow.cancelled

    def send(self, response: Any, flags: int) -> Optional[str]:
        """Sends a response, the end, or both. Returns the reason where it may not."""
        if self.runner.channel.forked:
            return _FORKED
        with RequestState.lock:
            if not self.decoupled:
                if response is not None:
                    if self.sent:
                        return _MORE
                elif not self.sent:
                    return _FINAL_FIRST
            if self.closed:
                return _CLOSED
            if response is not None:
                self.sent += 1
            if flags:
                self.closed = True
        runner = self.runner
        if response is None:
            runner.channel.send(HEADER.pack(24, protocol.RESPONSE, 0, 0, self.handle) + _FINAL_ALONE)
        else:
            flow = self.flow
            if flow.credit <= 0:
                self._await_credit(flow)
            flow.credit -= 1
            self._write(runner, response, flags)
        if flags:
            runner.flows.pop(self.handle, None)
        return None

    def _write(self, runner: Any, response: Any, flags: int) -> None:
        parts: List[bytes] = [b""]
        held: List[Any] = []
        codec = runner.codec
        try:
            position = codec.put_response(
                parts, HEADER_SIZE, response, flags, self.wanted, runner.output_indexes, runner.unknown_output, held
            )
        except BaseException as error:
            codec.give_up(held)
            if flags:
                self.closed = False
            if response is not None:
                self.sent -= 1
            if isinstance(error, MemoryRefused):
                from c_python_backend_utils import TritonModelException

                raise TritonModelException(str(error)) from None
            raise
        padding = -position & 7
        if padding:
            parts.append(b"\0" * padding)
        parts[0] = HEADER.pack(position + padding, protocol.RESPONSE, 0, 0, self.handle)
        runner.channel.send(b"".join(parts))

    def _await_credit(self, flow: Flow) -> None:
        channel = self.runner.channel
        channel.drain()
        while flow.credit <= 0 and not flow.cancelled:
            waiter = Waiter()
            with RequestState.lock:
                if flow.waiters is None:
                    flow.waiters = []
                flow.waiters.append(waiter)
            if flow.credit > 0 or flow.cancelled:
                break
            channel.wait(waiter)

    def __del__(self) -> None:
        if not self.closed:
            self.close()
            self.runner.abandoned(self)
