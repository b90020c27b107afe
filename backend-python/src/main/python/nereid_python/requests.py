"""The state of requests on this side: responses sent, the end, cancellation, flow control."""

import sys
import threading
from typing import Any, List, Optional, Set

from . import protocol
from .channel import Waiter
from .codec import check_length
from .memory import MemoryRefused
from .protocol import HEADER, HEADER_SIZE, RESULT

_MORE = "Unable to send response. Non-decoupled model cannot send more than one response."
_FINAL_FIRST = "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
_FORKED = "Unable to send response. A forked process cannot send responses."
_CLOSED = "Unable to send response. Response sender has been closed."

_FINAL_ALONE = RESULT.pack(protocol.RESULT_FINAL, protocol.FLAG_FINAL, 0, 0, 0)


_UNLIMITED = 1 << 62


class Flow:
    """Cancellation and credit of a request, set by frames of the server. The runner keeps it by the request's number."""

    # Defaults on the class: most requests never change them.
    cancelled = False
    credit = _UNLIMITED
    waiters: Optional[List[Waiter]] = None

    def grant(self, count: int) -> None:
        """Adds credit, and wakes the senders that wait for it."""
        with RequestState.lock:
            self.credit += count
        self.wake()

    def wake(self) -> None:
        """Lets the senders that wait for credit look again."""
        with RequestState.lock:
            waiters, self.waiters = self.waiters, None
        for waiter in waiters or ():
            waiter.done = True
            waiter.wake()

    def end(self) -> None:
        """Lets all senders go on: no credit comes any more, and the server ignores what they send."""
        self.credit = _UNLIMITED
        if self.waiters:
            self.wake()


def _in_event_loop() -> bool:
    """Returns whether an event loop runs on this thread."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


class RequestState:
    """One request that the model executes. The request and its sender share it; nothing else holds it.

    So its end without a final response is the end of all that could send one: the client then gets an error.
    """

    # Also guards the credit. Reentrant: a finalizer of the model may send in the middle of a send.
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
        self.flow.end()

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
            flow = self.flow
            granted = response is None or flow.credit > 0
            if granted and response is not None:
                flow.credit -= 1
        runner = self.runner
        if response is None:
            runner.channel.send(HEADER.pack(24, protocol.RESPONSE, 0, 0, self.handle) + _FINAL_ALONE)
        else:
            try:
                if not granted:
                    self._take_credit(flow)
                    granted = True
                self._write(runner, response, flags)
            except BaseException:
                with RequestState.lock:
                    if granted:
                        flow.credit += 1
                    else:
                        self.sent -= 1
                        if flags:
                            self.closed = False
                if flow.waiters:
                    flow.wake()
                raise
        if flags:
            self.close()
        return None

    def _write(self, runner: Any, response: Any, flags: int) -> None:
        parts: List[bytes] = [b""]
        held: List[Any] = []
        codec = runner.codec
        try:
            position = codec.put_response(
                parts, HEADER_SIZE, response, flags, self.wanted, runner.output_indexes, runner.unknown_output, held
            )
            check_length(position)
        except BaseException as error:
            codec.give_up(held)
            with RequestState.lock:
                if flags:
                    self.closed = False
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

    def _take_credit(self, flow: Flow) -> None:
        """Waits for credit, except on the thread of an event loop, where a wait would stop all other streams."""
        channel = self.runner.channel
        channel.drain()
        patient = not _in_event_loop()
        while True:
            with RequestState.lock:
                if flow.credit > 0 or flow.cancelled or not patient:
                    flow.credit -= 1
                    return
                waiter = Waiter()
                if flow.waiters is None:
                    flow.waiters = []
                flow.waiters.append(waiter)
            channel.wait(waiter)

    def __del__(self) -> None:
        if not self.closed:
            self.close()
            self.runner.abandoned(self)
