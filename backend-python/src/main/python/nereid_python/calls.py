"""Calls of other models, control of models, and metrics."""

import collections
import os
import threading
from typing import Any, Callable, Deque, Dict, List, Optional

from c_python_backend_utils import (
    TRITONSERVER_MEMORY_GPU,
    InferenceRequest,
    InferenceResponse,
    ResponseIterator,
    TritonError,
    TritonModelException,
)

from . import protocol
from .channel import Waiter
from .codec import check_length, put_parameters
from .memory import MemoryRefused
from .protocol import CALL_HEAD, CALL_RESULT, F64, HEADER, HEADER_SIZE, U32, Reader

WINDOW = 32
METRIC_LIMIT = 65536
_CODES = [
    TritonError.UNKNOWN, TritonError.INTERNAL, TritonError.NOT_FOUND, TritonError.INVALID_ARG, TritonError.UNAVAILABLE,
    TritonError.UNSUPPORTED, TritonError.ALREADY_EXISTS, TritonError.CANCELLED,
]
_OPERATIONS = {
    "increment": protocol.METRIC_INCREMENT, "set": protocol.METRIC_SET, "observe": protocol.METRIC_OBSERVE,
}
_NOT_ALLOWED = "BLS is only supported during the 'execute' function."
_new_response = InferenceResponse.__new__


def error_response(code: int, text: str) -> InferenceResponse:
    """Returns a response with an error."""
    return InferenceResponse(error=TritonError(text, _CODES[code] if code < len(_CODES) else _CODES[0]))


class Stream:
    """The responses of one call. Filled by the thread that reads, emptied by the one that made the call."""

    __slots__ = ("calls", "ident", "model", "responses", "ended", "finished", "waiter", "callback", "consumed", "lock")

    def __init__(self, calls: "Calls", ident: int, model: str) -> None:
        self.calls = calls
        self.ident = ident
        self.model = model
        self.responses: Deque[InferenceResponse] = collections.deque()
        self.ended = False  # the last response has been taken
        self.finished = False  # the last response has arrived
        self.waiter: Optional[Waiter] = None
        self.callback: Optional[Callable[[], None]] = None
        self.consumed = 0
        self.lock = threading.Lock()

    def arrived(self, response: InferenceResponse, final: bool) -> None:
        """Adds a response."""
        self.responses.append(response)
        if final:
            self.finished = True
        waiter = self.waiter
        if waiter is not None:
            waiter.done = True
            waiter.wake()
        callback = self.callback
        if callback is not None and final:
            self.callback = None
            callback()

    def next(self) -> Optional[InferenceResponse]:
        """Waits for the next response, or returns None after the last."""
        responses = self.responses
        while not responses:
            if self.finished:
                self.ended = True
                return None
            with self.lock:
                self.waiter = waiter = Waiter()
                if not responses and not self.finished:
                    self.calls.wait(waiter)
                self.waiter = None
        response = responses.popleft()
        if not self.finished:
            self.consumed += 1
            if self.consumed >= WINDOW // 2:
                self.calls.credit(self.ident, self.consumed)
                self.consumed = 0
        elif not responses:
            self.ended = True
        return response

    def cancel(self) -> None:
        """Cancels the call."""
        if not self.finished:
            self.calls.cancel(self.ident)

    def drop(self) -> None:
        """Forgets the responses that are still to come."""
        if not self.finished:
            self.calls.drop(self.ident)


class Calls:
    """Calls to the server, from any thread."""

    def __init__(self, runner: Any) -> None:
        self.allowed = False
        self._runner = runner
        self._channel = runner.channel
        self._streams: Dict[int, Stream] = {}
        self._replies: Dict[int, List[Any]] = {}
        self._lock = threading.RLock()
        self._last = 0
        runner.channel.handle(protocol.CALL_RESPONSE, self._on_response)
        runner.channel.handle(protocol.REPLY, self._on_reply)

    # Inference

    def exec(self, request: InferenceRequest, decoupled: bool) -> Any:
        """Calls a model and waits for its response; with ``decoupled`` returns the iterator over its responses."""
        stream = self._call(request, decoupled)
        if decoupled:
            return _iterator(stream)
        return stream.next()

    def async_exec(self, request: InferenceRequest, decoupled: bool) -> Any:
        """Calls a model; returns a future of the running event loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._channel.forked:
            # No thread reads unless a thread waits.
            return loop.run_in_executor(None, self.exec, request, decoupled)
        future = loop.create_future()
        if decoupled:
            future.set_result(_iterator(self._call(request, True)))
            return future
        channel = self._channel

        def deliver(response: Optional[InferenceResponse]) -> None:
            if not future.done():
                future.set_result(response)

        def finished(stream: Stream) -> None:
            channel.want_reading(False)
            try:
                loop.call_soon_threadsafe(deliver, stream.next())
            except RuntimeError:  # the loop is closed
                pass

        channel.want_reading(True)
        try:
            self._call(request, False, finished)
        except BaseException:
            channel.want_reading(False)
            raise
        return future

    def _call(
        self, request: InferenceRequest, decoupled: bool, finished: Optional[Callable[[Stream], None]] = None
    ) -> Stream:
        if not self.allowed:
            raise TritonModelException(_NOT_ALLOWED)
        runner = self._runner
        model = request._model_name
        stream = Stream(self, self.next_id(), model)
        if finished is not None:
            stream.callback = lambda: finished(stream)
        execution = runner.execution if threading.get_ident() == runner.main_thread else runner.coroutine_execution()
        correlation = request._correlation_id
        text = b"" if isinstance(correlation, int) else correlation.encode("utf-8", "replace")
        name = model.encode("utf-8", "replace")
        ident = request._request_id.encode("utf-8", "replace")
        trace = request._trace
        context = (trace._context or "").encode("utf-8") if trace is not None else b""
        memory = request._preferred_memory
        gpu = memory is not None and memory._type is TRITONSERVER_MEMORY_GPU
        names = request._names
        values = request._values
        head = CALL_HEAD.pack(
            execution, correlation if isinstance(correlation, int) else 0, request._timeout, request._model_version,
            request._flags, WINDOW if decoupled else 1, memory._device if gpu else 0, len(request._inputs), len(names),
            len(values) if values else 0, 1 if gpu else 0, 1 if text else 0, len(name), len(ident), len(text),
            len(context),
        )
        parts: List[bytes] = [b"", head, name, ident, text, context]
        position = HEADER_SIZE + sum(map(len, parts))
        for output in names:
            encoded = protocol.text(output)
            parts.append(encoded)
            position += len(encoded)
        if values:
            position = put_parameters(parts, position, values)
        held: List[Any] = []
        codec = runner.codec
        try:
            for tensor in request._inputs:
                position = codec.put_named_tensor(parts, position, tensor, held)
            check_length(position)
        except MemoryRefused as refused:
            codec.give_up(held)
            stream.arrived(error_response(1, str(refused)), True)
            return stream
        except BaseException:
            codec.give_up(held)
            raise
        padding = -position & 7
        parts.append(b"\0" * padding)
        parts[0] = HEADER.pack(position + padding, protocol.CALL, 1 if decoupled else 0, 0, stream.ident)
        self._streams[stream.ident] = stream
        self._channel.send(b"".join(parts))
        return stream

    def _on_response(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        position = base + HEADER_SIZE
        _, code, outputs, _, text_size, parameters_size = CALL_RESULT.unpack_from(data, position)
        position += CALL_RESULT.size
        text = str(data[position:position + text_size], "utf-8", "replace")
        position += text_size
        parameters = str(data[position:position + parameters_size], "utf-8", "replace")
        position += parameters_size
        # Tensors of dropped calls are read too: their slots are released.
        tensors = []
        unmapped = 0
        take = self._runner.codec.take_tensor
        for _ in range(outputs):
            tensor, position = take(data, base, position, "", None)
            tensors.append(tensor)
            if tensor._data is None:
                unmapped = tensor._size
        final = flags & protocol.CALL_FINAL
        stream = self._streams.pop(ident, None) if final else self._streams.get(ident)
        if stream is None:
            return
        if flags & protocol.CALL_ERROR:
            if flags & protocol.CALL_REFUSED:
                text = "Model %s - Error when running inference: %s" % (stream.model, text)
            response = error_response(code, text)
        elif unmapped:
            response = error_response(1, str(MemoryRefused(unmapped)))
        else:
            response = _new_response(InferenceResponse)
            response._outputs = tensors
            response._error = None
            response._parameters = parameters
            response._values = None
        stream.arrived(response, bool(final))

    def wait(self, waiter: Waiter) -> None:
        self._channel.wait(waiter)

    def credit(self, ident: int, count: int) -> None:
        self._channel.send(protocol.frame(protocol.CALL_CREDIT, 0, count, ident))

    def cancel(self, ident: int) -> None:
        self._channel.send(protocol.frame(protocol.CALL_CANCEL, 0, 0, ident))

    def drop(self, ident: int) -> None:
        if self._streams.pop(ident, None) is not None:
            channel = self._channel
            send_later = channel.send_later_of_fork if channel.forked else channel.send_later
            send_later(protocol.frame(protocol.CALL_DROP, 0, 0, ident))

    def next_id(self) -> int:
        """Returns a number for a call, a control operation or a metric."""
        with self._lock:
            self._last += 1
            return self._last

    # Forked processes

    def not_allowed(self) -> InferenceResponse:
        """Returns the response to a call before the end of ``initialize`` or in ``finalize``."""
        return error_response(1, _NOT_ALLOWED)

    def relay_call(self, ident: int, relay: Any) -> None:
        """Gives the responses of a call to an object with ``arrived`` and ``model``."""
        self._streams[ident] = relay

    def relay_reply(self, ident: int, entry: List[Any]) -> None:
        """Gives a reply to an entry; the first object of the entry is woken."""
        self._replies[ident] = entry

    def after_fork(self, allowed: bool) -> None:
        """Forgets the calls of the parent."""
        self.allowed = allowed
        self._streams = {}
        self._replies = {}
        self._lock = threading.RLock()
        self._last = os.getpid() << 32

    # Operations with one reply

    def _ask(self, kind: int, operation: int, body: bytes, ident: Optional[int] = None) -> List[Any]:
        """Sends an operation, and returns whether it failed, the text and the number of its reply."""
        check_length(HEADER_SIZE + len(body))
        if kind == protocol.METRIC and len(body) > METRIC_LIMIT:
            raise TritonModelException(
                "Name, description, labels and buckets of a metric have %d bytes: more than %d." % (len(body), METRIC_LIMIT)
            )
        if ident is None:
            ident = self.next_id()
        waiter = Waiter()
        reply: List[Any] = [waiter, False, "", 0.0]
        self._replies[ident] = reply
        self._channel.send(protocol.frame(kind, operation, 0, ident, body))
        self._channel.wait(waiter)
        return reply

    def _on_reply(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        reply = self._replies.pop(ident, None)
        if reply is None:
            return
        reader = Reader(data, base + HEADER_SIZE)
        reply[3] = reader.take(F64)[0]
        reply[2] = reader.text()
        reply[1] = bool(flags & 1)
        reply[0].done = True
        reply[0].wake()

    def _checked(self, reply: List[Any], prefix: str) -> List[Any]:
        if reply[1]:
            raise TritonModelException(prefix + self._runner.request_prefix() + reply[2])
        return reply

    # Control of models

    def load_model(self, name: str, config: str, files: Any) -> None:
        """Loads a model."""
        if files is None:
            files = {}
        if not isinstance(files, dict):
            raise TritonModelException(
                "failed to load model '%s', files should be a dictionary of file paths and file contents" % name
            )
        body = protocol.text(name) + protocol.text(config) + U32.pack(len(files))
        for path, content in files.items():
            if not isinstance(path, (str, bytes)) or not isinstance(content, (str, bytes, bytearray)):
                raise TypeError("files: %s to %s (expected: str to bytes)" % (type(path).__name__, type(content).__name__))
            path = path.decode("utf-8") if isinstance(path, bytes) else path
            content = content.encode("utf-8") if isinstance(content, str) else bytes(content)
            check_length(HEADER_SIZE + len(body) + len(content))
            body += protocol.text(path) + U32.pack(len(content)) + content
        self._checked(self._ask(protocol.CONTROL, protocol.CONTROL_LOAD, body), "Failed to load model: ")

    def unload_model(self, name: str, dependents: bool) -> None:
        """Unloads a model."""
        body = protocol.text(name) + U32.pack(1 if dependents else 0)
        self._checked(self._ask(protocol.CONTROL, protocol.CONTROL_UNLOAD, body), "Failed to unload model: ")

    def is_model_ready(self, name: str, version: str) -> bool:
        """Returns whether a model is ready."""
        body = protocol.text(name) + protocol.text(version)
        reply = self._checked(
            self._ask(protocol.CONTROL, protocol.CONTROL_READY, body), "Failed to check model readiness: "
        )
        return reply[3] != 0.0

    # Metrics

    def metric_family(self, name: str, description: str, kind: int) -> int:
        """Creates a family, and returns its number."""
        ident = self.next_id()
        body = U32.pack(kind) + protocol.text(name) + protocol.text(description)
        reply = self._ask(protocol.METRIC, protocol.METRIC_FAMILY, body, ident)
        self._checked(reply, "Error when creating MetricFamily: ")
        return ident

    def metric_create(self, family: int, labels: Dict[str, str], buckets: List[float]) -> int:
        """Creates a metric, and returns its number."""
        ident = self.next_id()
        body = protocol.U64.pack(family) + U32.pack(len(labels))
        for key, value in labels.items():
            body += protocol.text(key) + protocol.text(value)
        body += U32.pack(len(buckets)) + b"".join([F64.pack(limit) for limit in buckets])
        reply = self._ask(protocol.METRIC, protocol.METRIC_CREATE, body, ident)
        self._checked(reply, "Error when creating Metric: ")
        return ident

    def metric_change(self, ident: int, operation: str, value: float) -> None:
        """Increments, sets or observes; there is no reply."""
        self._channel.send(protocol.frame(protocol.METRIC, _OPERATIONS[operation], 0, ident, F64.pack(value)))

    def metric_value(self, ident: int) -> float:
        """Returns the value of a metric."""
        reply = self._ask(protocol.METRIC, protocol.METRIC_VALUE, protocol.U64.pack(ident))
        return self._checked(reply, "Failed to get metric value: ")[3]

    def metric_drop(self, ident: int, family: bool) -> None:
        """Removes a metric or a family; called by finalizers."""
        operation = protocol.METRIC_FAMILY_DROP if family else protocol.METRIC_DROP
        self._channel.send_later(protocol.frame(protocol.METRIC, operation, 0, ident))


def _iterator(stream: Stream) -> ResponseIterator:
    iterator = ResponseIterator.__new__(ResponseIterator)
    iterator._stream = stream
    iterator._seen = []
    iterator._next = 0
    return iterator
