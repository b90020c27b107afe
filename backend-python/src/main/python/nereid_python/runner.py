"""Runs a model: import, completion, initialization, executions, the end."""

import contextvars
import faulthandler
import fcntl
import gc
import inspect
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Coroutine
from typing import Any, Dict, List, Optional, Set

from . import descendants, errors, imports, logs, protocol, runtime
from .calls import Calls
from .channel import HIGH_DESCRIPTOR, Channel, connect, out_of_reach
from .codec import Codec, check_length
from .forks import Forks
from .memory import Memory, MemoryRefused
from .protocol import HEADER, HEADER_SIZE, REQUEST, RESULT, SHAPES, TENSOR, U32, U64, Reader
from .requests import Flow, RequestState

from c_python_backend_utils import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
    InferenceResponse,
    InferenceTrace,
    Tensor,
)
from triton_python_backend_utils import ModelConfig

INLINE_LIMIT = 16384
LOG_LIMIT = 65536
_LONGEST_FILE = 1024
_IDS_LIMIT = 4096
_MEMORY_SCORE = 500
_MOST_CANCELLED = 65536
_COLLECT_SECONDS = 1.0
_LOOP_SECONDS = 2.0
_NONE = RESULT.pack(protocol.RESULT_NONE, 0, 0, 0, 0)
_RESCHEDULE = RESULT.pack(protocol.RESULT_RESCHEDULE, 0, 0, 0, 0)
_FINAL = RESULT.pack(protocol.RESULT_FINAL, protocol.FLAG_FINAL, 0, 0, 0)
_REQUEST_SIZE = REQUEST.size
_TENSOR_SIZE = TENSOR.size
_unpack_tensor = TENSOR.unpack_from
_UNPACK_SHAPE = tuple(shape.unpack_from for shape in SHAPES)
_new = InferenceRequest.__new__

#: The execution that a coroutine belongs to.
current_execution: "contextvars.ContextVar[int]" = contextvars.ContextVar("current_execution", default=0)


class _Failed(Exception):
    """A whole execution has failed with this text."""


class _Terminated(BaseException):
    """The process was asked to end while it was idle."""


class Runner:
    """The model of this process. ``run`` is the main thread."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.memory = Memory(self._want_segment, channel.wait_until, self._give_back)
        self.codec = Codec(self.memory, channel.release, INLINE_LIMIT)
        self.calls = Calls(self)
        self.forks = Forks(self)
        self.flows: Dict[int, Flow] = {}
        # Handles only grow. Larger ones that are cancelled belong to an execution that waits for the main thread.
        self._last_handle = 0
        self._cancelled: Set[int] = set()
        self.log_mask = 7
        self.log_ready = False
        self.model_dir = ""
        self.model_file = ""
        self.model_name = ""
        self.model_version = 1
        self.instance = ""
        self.decoupled = False
        self.output_indexes: Dict[str, int] = {}
        self.own_directory = ""
        self.execution = 0
        self.main_thread = threading.get_ident()
        self.terminating = False
        self._input_names: List[str] = []
        self._output_names: List[str] = []
        self._all_outputs: Set[str] = set()
        self._unknown_outputs: Set[str] = set()
        self._module: Any = None
        self._model: Any = None
        self._initialized = False
        self._loop: Any = None
        self._loop_thread: Optional[threading.Thread] = None
        self._loop_lock = threading.Lock()
        self._tasks: Set[Any] = set()
        self._ready_queue: "queue.SimpleQueue[int]" = queue.SimpleQueue()
        self._ready_thread: Optional[threading.Thread] = None
        self._collected = 0.0
        handle = channel.handle
        handle(protocol.CHECK_READY, self._on_check_ready)
        handle(protocol.CANCEL, self._on_cancel)
        handle(protocol.CREDIT, self._on_credit)
        handle(protocol.RELEASE, self._on_release)
        handle(protocol.SEGMENT, self._on_segment)
        handle(protocol.SEGMENT_REFUSED, self._on_segment_refused)
        handle(protocol.SEGMENT_REMOVE, self._on_segment_remove)
        handle(protocol.LOG_LEVELS, self._on_log_levels)
        channel.on_quiet = self._on_quiet
        channel.on_idle = self._on_idle

    # The main thread

    def run(self) -> int:
        """Serves the frames of the main thread until the end, and returns the exit status."""
        next_main = self.channel.next_main
        execute = self.execute
        while True:
            try:
                data, base, flags, count, ident, kind = next_main()
            except _Terminated:
                self.finalize()
                return 0
            except ConnectionError:
                return 1
            except Exception:
                if not self.channel.interrupted:
                    raise
                self.channel.interrupted = False
                _report_handler()
                continue
            if kind == protocol.EXECUTE:
                execute(data, base, count, ident)
            elif kind == protocol.OPEN:
                self.open(Reader(data, base + HEADER_SIZE), ident)
            elif kind == protocol.COMPLETE:
                self.complete(Reader(data, base + HEADER_SIZE), ident)
            elif kind == protocol.INITIALIZE:
                self.initialize(Reader(data, base + HEADER_SIZE), ident)
            elif kind == protocol.FINALIZE:
                self.finalize()
                self._done(ident)
                return 0
            data = None
            if self.terminating:
                self.finalize()
                return 0

    def on_signal(self, number: int, frame: Any) -> None:
        """Ends the process in order: at once while it is idle, else after the execution."""
        self.terminating = True
        if not self.channel.busy:
            self.channel.busy = True
            raise _Terminated()

    def owns_signal(self, handler: Any) -> bool:
        """Returns whether a handler of a signal is that of the runner."""
        return handler == self.on_signal or handler is _ignore_signal

    def _done(self, ident: int, error: Optional[BaseException] = None, text: Optional[str] = None, flags: int = 0) -> None:
        """Answers a frame of the life cycle: with the flags, or with an error."""
        if error is None and text is None:
            self.channel.send(protocol.frame(protocol.DONE, 0, flags, ident))
            return
        if text is None:
            text = errors.short_text(error)  # type: ignore[arg-type]
        trace = "" if error is None else errors.long_text(error)
        hint = "" if error is None else errors.import_hint(error)
        body = protocol.text(text) + protocol.text(trace) + protocol.text(hint)
        self.channel.send(protocol.frame(protocol.DONE, 1, 0, ident, body))

    # Life cycle

    def open(self, reader: Reader, ident: int) -> None:
        """Imports the model as the settings of OPEN say, and answers."""
        settings = reader.map()
        self.model_file = settings["model_file"]
        self.model_dir = settings.get("version_directory", os.path.dirname(self.model_file))
        self.model_name = settings.get("model_name", "")
        self.model_version = int(settings.get("model_version", "1"))
        self.instance = settings.get("instance_name", "")
        self.codec.inline_limit = int(settings.get("inline_limit", str(INLINE_LIMIT)))
        self.log_mask = int(settings.get("log_levels", "7"))
        try:
            _set_limits(settings)
        except (ValueError, OSError) as error:
            self._done(ident, text="Failed to set the limits of the process: %s" % error)
            return
        search_path = [path for path in settings.get("search_path", "").split("\n") if path]
        prefix = settings.get("pycache_prefix")
        if prefix is not None:
            imports.keep_byte_code(prefix, search_path)
        sys.path.extend(search_path)
        if self.own_directory:
            sys.path.append(self.own_directory)
        if not self.model_file.endswith(".py"):
            self._done(
                ident,
                text="Model name must end with '.py'. Model name is \"%s\"." % os.path.basename(self.model_file),
            )
            return
        if not os.path.isfile(self.model_file):
            self._done(
                ident,
                text="Failed to preinitialize Python stub: Python model file not found in '%s'"
                % os.path.abspath(self.model_file),
            )
            return
        try:
            if "debug_port" in settings:
                _wait_for_debugger(int(settings["debug_port"]))
            self._module = imports.import_file(settings.get("module_name", "model"), self.model_file, prefix)
            if not hasattr(self._module, "TritonPythonModel"):
                raise AttributeError("module '%s' has no attribute 'TritonPythonModel'" % self._module.__name__)
        except BaseException as error:
            self._done(ident, error)
            return
        self._done(ident, flags=1 if hasattr(self._module.TritonPythonModel, "auto_complete_config") else 0)

    def complete(self, reader: Reader, ident: int) -> None:
        """Lets the model complete the configuration in the frame, and answers."""
        configuration = reader.text()
        try:
            result = self._module.TritonPythonModel.auto_complete_config(ModelConfig(configuration))
            if not isinstance(result, ModelConfig):
                self._done(
                    ident,
                    text="auto_complete_config function in model '%s' must return a valid pb.ModelConfig object."
                    % self.model_name,
                )
                return
            body = _completed(result.as_dict())
        except BaseException as error:
            self._done(ident, error)
            return
        self.channel.send(protocol.frame(protocol.COMPLETED, 0, 0, ident, body))

    def initialize(self, reader: Reader, ident: int) -> None:
        """Constructs the model, initializes it with the arguments of the frame, and answers."""
        flags = reader.u32()
        self.decoupled = bool(flags & 1)
        arguments = reader.map()
        self._input_names = [sys.intern(name) for name in reader.texts()]
        self._output_names = [sys.intern(name) for name in reader.texts()]
        self._all_outputs = set(self._output_names)
        RequestState.runner = self
        RequestState.decoupled = self.decoupled
        InferenceRequest._served_model(self.model_name, self.model_version)
        self.output_indexes = {name: index for index, name in enumerate(self._output_names)}
        self.instance = arguments.get("model_instance_name", self.instance)
        self.log_ready = True
        try:
            self._model = model = self._module.TritonPythonModel()
            if hasattr(model, "initialize"):
                model.initialize(arguments)
        except BaseException as error:
            self._done(ident, error)
            return
        self._initialized = True
        self.calls.allowed = True
        execute = getattr(model, "execute", None)
        self._done(
            ident,
            flags=(1 if execute is not None else 0) | (2 if hasattr(model, "is_ready") else 0)
            | (4 if inspect.iscoroutinefunction(execute) else 0),
        )

    def finalize(self) -> None:
        """Stops the event loop, finalizes the model and flushes the standard streams."""
        self.calls.allowed = False
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            if self._loop_thread is not None:
                self._loop_thread.join(_LOOP_SECONDS)
        model = self._model
        if model is not None and self._initialized and hasattr(model, "finalize"):
            self._initialized = False
            try:
                model.finalize()
            except BaseException as error:
                texts = (errors.short_text(error), errors.long_text(error))
                self.log(logs.INFO, self.model_file, 0, "finalize failed: %s\n%s" % texts)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # the model may have put anything there
                pass

    # Executions

    def execute(self, data: Any, base: int, count: int, execution: int) -> None:
        """Executes the requests of a frame, and answers."""
        requests: List[InferenceRequest] = []
        states: List[RequestState] = []
        take = self.codec.take_tensor
        new_tensor = Tensor.__new__
        unpack_tensor = _unpack_tensor
        unpack_shape = _UNPACK_SHAPE
        input_names = self._input_names
        all_outputs = self._all_outputs
        flows = self.flows
        unmapped = 0
        handle = self._last_handle
        position = base + HEADER_SIZE
        for _ in range(count):
            (
                handle, correlation, timeout, window, flags, inputs, wanted, _, id_size, text_size, parameters_size,
                trace_size,
            ) = REQUEST.unpack_from(data, position)
            position += _REQUEST_SIZE
            request = _new(InferenceRequest)
            state = RequestState()
            if wanted:
                names = self._output_names
                end = position + 2 * wanted
                state.wanted = request._names = {
                    names[index] for index in memoryview(data)[position:end].cast("H")
                }
                position = end
            else:
                request._names = all_outputs
            if id_size:
                request._request_id = str(data[position:position + id_size], "utf-8", "replace")
                position += id_size
            if text_size:
                request._correlation_id = str(data[position:position + text_size], "utf-8", "replace")
                position += text_size
            elif correlation:
                request._correlation_id = correlation
            if parameters_size:
                request._parameters = str(data[position:position + parameters_size], "utf-8", "replace")
                position += parameters_size
            if trace_size:
                request._trace = trace = InferenceTrace()
                trace._context = str(data[position:position + trace_size], "utf-8", "replace")
                position += trace_size
            tensors = []
            for _ in range(inputs):
                index, dtype, rank, segment, offset, size = unpack_tensor(data, position)
                if segment:
                    tensor, position = take(data, base, position, None, input_names)
                    if tensor._data is None:
                        unmapped = tensor._size
                else:
                    # As take_tensor() does, without a call.
                    tensor = new_tensor(Tensor)
                    tensor._name = input_names[index]
                    tensor._dtype = dtype
                    tensor._shape = unpack_shape[rank](data, position + _TENSOR_SIZE)
                    tensor._array = None
                    tensor._slot = None
                    tensor._data = data
                    tensor._offset = position = base + offset
                    tensor._size = size
                    position += size
                tensors.append(tensor)
            request._inputs = tensors
            if flags:
                request._flags = flags
            if timeout:
                request._timeout = timeout
            flow = Flow()
            if window:
                flow.credit = window
            flows[handle] = flow
            state.handle = handle
            state.flow = flow
            request._state = state
            states.append(state)
            requests.append(request)
        # Only now that the flows can be found: see _on_cancel().
        self._last_handle = handle
        if self._cancelled:
            self._cancel_early()
        data = None
        tensors = tensor = request = flow = state = None  # type: ignore[assignment]
        self.execution = execution
        held: List[Any] = []
        moves: List[Any] = []
        try:
            if unmapped:
                raise MemoryRefused(unmapped)
            model_execute = getattr(self._model, "execute", None)
            if model_execute is None:
                raise _Failed("Python model %s does not implement `execute` method." % self.model_file)
            result = model_execute(requests[:])
            if type(result) is not list and result is not None and isinstance(result, Coroutine):
                if self.decoupled:
                    self._start(result, states, requests, execution)
                    result = None
                    requests = []
                    body = _NONE * count
                    self._send_executed(execution, count, protocol.FLAG_ASYNC, body)
                    return
                result = self._await(result, execution)
            parts = self._executed(result, requests, states, count, execution, held, moves)
        except BaseException as error:
            self.execution = 0
            _stay(moves, 0)
            self.codec.give_up(held)
            self._fail_execution(error, states, requests, count, execution)
            return
        self.execution = 0
        # The objects of the execution are dropped before the frame is sent, so that their slots are released with it.
        unanswered = result is None and not self.decoupled
        result = None
        requests = []
        states = []
        if moves:
            try:
                self.codec.finish_moves(parts, moves, held)
            except MemoryRefused as error:
                self.codec.undo_moves(moves)
                self.codec.give_up(held)
                self._send_executed(
                    execution, count, protocol.FLAG_FAILED, U32.pack(1) + protocol.text(str(error)) + protocol.text("")
                )
                return
        self._send_result(b"".join(parts))
        if unanswered and self.flows:
            self._collect()

    def _executed(
        self, result: Any, requests: List[InferenceRequest], states: List[RequestState], count: int, execution: int,
        held: List[Any], moves: List[Any],
    ) -> List[bytes]:
        """Returns the parts of the frame for the result of ``execute``."""
        if result is None or self.decoupled:
            if result is not None:
                raise _Failed(
                    "Python model '%s' is using the decoupled mode and the execute function must return None."
                    % self.instance
                )
            results: Any = (None,) * count
        else:
            if type(result) is not list and not isinstance(result, list):
                raise _Failed("Expected a list in the execute return, found type '%s'." % type(result))
            if len(result) != count:
                raise _Failed(
                    "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                    "InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n" % (count, len(result))
                )
            results = result
            for index, response in enumerate(result):
                if response is None:
                    continue
                if requests[index]._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                    raise _Failed(
                        "Expected a None object in the execute function return list for reschduled request, found type "
                        "'%s'." % type(response)
                    )
                if type(response) is not InferenceResponse and not isinstance(response, InferenceResponse):
                    raise _Failed(
                        "Expected an 'InferenceResponse' object in the execute function return list, found type '%s'."
                        % type(response)
                    )
        parts: List[bytes] = [b""]
        position = HEADER_SIZE
        put = self.codec.put_response
        lock = RequestState.lock
        for index, response in enumerate(results):
            state = states[index]
            if response is None:
                if result is None and not self.decoupled and self._unanswered(state, requests[index]):
                    text = self._no_response()
                    ident = requests[index]._request_id
                    self.log(
                        logs.ERROR, self.model_file, 0,
                        text + " (expected: a list with an InferenceResponse for each request; is a return missing?)"
                        + (" request id: " + ident[:_IDS_LIMIT] if ident else ""),
                    )
                    encoded = protocol.text(text)
                    parts.append(RESULT.pack(protocol.RESULT_ERROR, 1, 0, 0, 1) + encoded)
                    position += RESULT.size + len(encoded)
                    continue
                if not state.closed and requests[index]._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                    state.close()
                    parts.append(_RESCHEDULE)
                else:
                    parts.append(_NONE)
                position += 8
                continue
            with lock:  # a thread of the model may send just now
                ended = _NONE if state.closed else _FINAL if state.sent else None
                state.sent += 1
                state.close()
            if ended is not None:
                parts.append(ended)
                position += 8
                continue
            mark = len(parts)
            before = len(held)
            try:
                position = put(
                    parts, position, response, 1, state.wanted, self.output_indexes, self.unknown_output, held, moves
                )
                if position > protocol.FRAME_LIMIT - 65536:
                    check_length(position)
            except BaseException as error:
                _stay(moves, mark)
                given_up = held[before:]
                self.codec.give_up(given_up)
                del held[before:]
                del parts[mark:]
                position = HEADER_SIZE + sum(map(len, parts[1:]))
                text = str(error) if isinstance(error, MemoryRefused) else self.failure_prefix() + errors.short_text(error)
                encoded = protocol.text(text)
                parts.append(RESULT.pack(protocol.RESULT_ERROR, 1, 0, 0, 1) + encoded)
                position += RESULT.size + len(encoded)
        padding = -position & 7
        if padding:
            parts.append(b"\0" * padding)
        parts[0] = HEADER.pack(position + padding, protocol.EXECUTED, 0, count, execution)
        return parts

    def _unanswered(self, state: RequestState, request: InferenceRequest) -> bool:
        """Ends a request for which ``execute`` returned None without its sender, even if the model still holds it."""
        with RequestState.lock:
            if state.closed or state.used or request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                return False
            state.close()
        return True

    def _no_response(self) -> str:
        return "Python model '%s' returned no response and did not use the response sender." % self.instance

    def _send_executed(self, execution: int, count: int, flags: int, body: bytes) -> None:
        self._send_result(protocol.frame(protocol.EXECUTED, flags, count, execution, body))

    def _send_result(self, frame: bytes) -> None:
        """Sends a result. A signal handler of the model that raises meanwhile is notified, and changes nothing."""
        before = self.channel.written
        try:
            self.channel.send(frame)
        except Exception:
            if self.channel.written == before:
                raise
            _report_handler()

    def _fail_execution(
        self, error: BaseException, states: List[RequestState], requests: List[InferenceRequest], count: int,
        execution: int,
    ) -> None:
        """Fails all requests of an execution that have not got their final response."""
        text, trace = self._texts(error, requests)
        del requests[:]
        for state in states:
            state.close()
        self._send_executed(
            execution, count, protocol.FLAG_FAILED, U32.pack(1) + protocol.text(text) + protocol.text(trace)
        )
        _forget_frames(error)

    def _texts(self, error: BaseException, requests: List[InferenceRequest]) -> tuple:
        """Returns the text for the client, and that for the log with the ids of the requests."""
        if isinstance(error, MemoryRefused):
            return str(error), ""
        if isinstance(error, _Failed):
            return self.failure_prefix() + str(error), ""
        ids = [request._request_id for request in requests if request._request_id]
        return self.failure_prefix() + errors.short_text(error), _trace(error, ids)

    def failure_prefix(self) -> str:
        """Returns the start of the text of an execution that failed."""
        return "Failed to process the request(s) for model '%s', message: " % self.instance

    def request_prefix(self) -> str:
        """Returns the start of the text of an operation that the server refused."""
        return "Failed to process the request for model '%s', message: " % self.instance

    # Coroutines

    def loop(self) -> Any:
        """Returns the event loop, which runs in a daemon thread."""
        with self._loop_lock:
            if self._loop is None:
                import asyncio  # with ssl, five megabytes that most models do not need

                self._loop = loop = asyncio.new_event_loop()

                def run() -> None:
                    asyncio.set_event_loop(loop)
                    loop.run_forever()

                self._loop_thread = threading.Thread(target=run, name="event-loop", daemon=True)
                self._loop_thread.start()
            return self._loop

    def _submit(self, coroutine: Any) -> Any:
        """Starts a coroutine on the event loop, and returns its future."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self.loop())

    def _await(self, coroutine: Any, execution: int) -> Any:
        """Runs a coroutine to its end; the watch thread reads meanwhile."""
        future = self._submit(_within(coroutine, execution))
        error = future.exception()
        if error is not None:
            raise error
        return future.result()

    def _start(
        self, coroutine: Any, states: List[RequestState], requests: List[InferenceRequest], execution: int
    ) -> None:
        """Starts the coroutine of a decoupled model, and answers for it if it fails."""
        ids = [request._request_id for request in requests if request._request_id]
        held = list(states)

        from concurrent.futures import CancelledError

        def ended(future: Any) -> None:
            self._tasks.discard(future)
            error = CancelledError() if future.cancelled() else future.exception()
            if error is not None:
                text = self.failure_prefix() + errors.short_text(error)
                trace = _trace(error, ids)
                open_handles = [state.handle for state in held if not state.closed]
                for state in held:
                    state.close()
                self._fail(open_handles, text, trace)
                _forget_frames(error)
            del held[:]

        future = self._submit(_within(coroutine, execution))
        self._tasks.add(future)
        future.add_done_callback(ended)

    def _fail(self, handles: List[int], text: str, trace: str) -> None:
        body = b"".join([U64.pack(handle) for handle in handles])
        body += U32.pack(1) + protocol.text(text) + protocol.text(trace)
        self.channel.send(protocol.frame(protocol.FAILED, 0, len(handles), 0, body))

    def abandoned(self, state: RequestState) -> None:
        """Ends a request that nothing can answer any more. Called by a finalizer."""
        if state.used:
            text = "Python model '%s' released the response sender without the final response." % self.instance
        else:
            text = self._no_response()
        body = U64.pack(state.handle) + U32.pack(1) + protocol.text(text) + protocol.text("")
        self.channel.send_later(protocol.frame(protocol.FAILED, 0, 1, 0, body))

    def coroutine_execution(self) -> int:
        """Returns the execution that the running coroutine belongs to, or 0."""
        return current_execution.get()

    def _collect(self) -> None:
        """Collects cycles that may hold requests without a response, at most once a second."""
        now = time.monotonic()
        if now - self._collected >= _COLLECT_SECONDS:
            self._collected = now
            gc.collect()

    def unknown_output(self, name: str) -> None:
        """Tells the server once of an output that the configuration does not have."""
        if name not in self._unknown_outputs and len(self._unknown_outputs) < 1000:
            self._unknown_outputs.add(name)
            self.channel.send_later(
                protocol.frame(protocol.NOTICE, 0, 0, protocol.NOTICE_UNKNOWN_OUTPUT, protocol.text(name))
            )

    def after_fork(self, connection: Any) -> None:
        """Makes this a forked process: it calls models through its parent, and does nothing else."""
        self.channel.after_fork(connection)
        self.calls.after_fork(connection is not None)
        self.memory.after_fork()
        self.codec.forked = True
        self.execution = 0
        self.main_thread = 0
        self._loop = None
        self._loop_lock = threading.Lock()
        RequestState.lock = threading.RLock()

    # Frames that any thread handles

    def _on_check_ready(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        if self._ready_thread is None:
            self._ready_thread = threading.Thread(target=self._check_ready, name="is-ready", daemon=True)
            self._ready_thread.start()
        self._ready_queue.put(ident)

    def _check_ready(self) -> None:
        while True:
            ident = self._ready_queue.get()
            text = trace = ""
            try:
                result = self._model.is_ready()
                if isinstance(result, Coroutine):
                    future = self._submit(result)
                    error = future.exception()
                    if error is not None:
                        raise error
                    result = future.result()
                if not isinstance(result, bool):
                    status, text = 2, "is_ready() must return a boolean value"
                else:
                    status = 1 if result else 0
            except BaseException as error:
                status, text, trace = 2, errors.short_text(error), errors.long_text(error)
            self.channel.send(
                protocol.frame(protocol.READY, status, 0, ident, protocol.text(text) + protocol.text(trace))
            )

    def _on_cancel(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        flow = self.flows.get(ident)
        if flow is None:
            if ident > self._last_handle and len(self._cancelled) < _MOST_CANCELLED:
                self._cancelled.add(ident)
            # The main thread may be in the middle of execute(): it makes the flow first, and looks at the set then.
            flow = self.flows.get(ident)
            if flow is None:
                return
        flow.cancelled = True
        flow.wake()

    def _cancel_early(self) -> None:
        """Cancels the requests whose CANCEL was read before the main thread took their EXECUTE."""
        for handle in list(self._cancelled):
            if handle <= self._last_handle:
                self._cancelled.discard(handle)
                flow = self.flows.get(handle)
                if flow is not None:
                    flow.cancelled = True

    def _on_credit(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        flow = self.flows.get(ident)
        if flow is not None:
            flow.grant(count)

    def _on_release(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        position = base + HEADER_SIZE
        for _ in range(count):
            segment, _, offset = _SLOT.unpack_from(data, position)
            self.memory.release(segment, offset)
            position += _SLOT.size
        self.channel.wake_watch()

    def _on_segment(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        reader = Reader(data, base + HEADER_SIZE)
        size, slot_size = reader.take(_SEGMENT)
        self.memory.add(ident, reader.text(), size, bool(flags & 1), slot_size)

    def _on_segment_refused(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        self.memory.refuse(ident)

    def _on_segment_remove(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        self.memory.remove(ident)

    def _on_log_levels(self, data: Any, base: int, flags: int, count: int, ident: int) -> None:
        self.log_mask = ident

    def _want_segment(self, slot_size: int) -> None:
        self.channel.send(protocol.frame(protocol.SEGMENT_WANTED, 0, 0, slot_size))

    def _on_idle(self) -> bool:
        if self.flows:
            # Perhaps a cycle holds a request or its sender; while the model is idle the collector does not run.
            self._collect()
        self._on_quiet()
        return bool(self.flows)

    def _on_quiet(self) -> None:
        self._give_back(self.memory.idle())

    def _give_back(self, idents: List[int]) -> None:
        for ident in idents:
            self.channel.send(protocol.frame(protocol.SEGMENT_RETURNED, 0, 0, ident))

    def log(self, level: int, file: str, line: int, message: str) -> None:
        """Sends a line of the log."""
        body = protocol.text(file[:_LONGEST_FILE]) + protocol.text_within(message, LOG_LIMIT)
        self.channel.send(protocol.frame(protocol.LOG, level, 0, max(line, 0), body))


_SLOT = protocol.Struct("<IIQ")
_SEGMENT = protocol.Struct("<QQ")


def _stay(moves: List[Any], mark: int) -> None:
    """Leaves the lent slots that are named behind a part with the model."""
    while moves and moves[-1][2] >= mark:
        lent = moves.pop()[1]()
        if lent is not None:
            lent.move = None


def _report_handler() -> None:
    """Reports a signal handler that has raised where no code of the model runs."""
    sys.stderr.write("a signal handler of the model has raised outside of the model\n" + traceback.format_exc())


async def _within(coroutine: Any, execution: int) -> Any:
    current_execution.set(execution)
    return await coroutine


def _trace(error: BaseException, ids: List[str]) -> str:
    """Returns the text of an exception for the log, with the ids of requests."""
    trace = errors.long_text(error)
    if ids:
        trace = "request ids: %s\n%s" % (errors.cut(", ".join(ids[:64]), _IDS_LIMIT), trace)
    return trace


def _forget_frames(error: BaseException) -> None:
    """Drops the frames of an exception and its causes, which hold objects such as requests."""
    seen: Set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        error.__traceback__ = None
        del trace
        cause = error.__cause__
        error = error.__context__ if cause is None else cause  # type: ignore[assignment]


def _completed(result: Dict[str, Any]) -> bytes:
    """Returns the body of COMPLETED, with the fields of a completed configuration that the server takes."""
    policy = result.get("model_transaction_policy")
    scheduling = [
        name for name in ("dynamic_batching", "sequence_batching", "ensemble_scheduling") if result.get(name) is not None
    ]
    body = protocol.I64.pack(int(result.get("max_batch_size", 0)))
    body += U32.pack(0 if policy is None else 2 if policy.get("decoupled") else 1)
    body += protocol.text(scheduling[0] if scheduling else "")
    for kind in ("input", "output"):
        tensors = result.get(kind) or []
        body += U32.pack(len(tensors))
        for tensor in tensors:
            dims = [int(size) for size in tensor.get("dims") or []]
            body += protocol.text(str(tensor.get("name", ""))) + protocol.text(str(tensor.get("data_type", "")))
            body += U32.pack(1 if tensor.get("optional") else 0)
            body += U32.pack(len(dims)) + b"".join([protocol.I64.pack(size) for size in dims])
    return body + protocol.text(json.dumps(result))


def _set_limits(settings: Dict[str, str]) -> None:
    """Sets the limits of this process that the settings of OPEN have; hard limits are never raised."""
    import resource

    for name, number, grace in _LIMITS:
        if name in settings:
            value = int(settings[name])
            if value <= 0:
                raise ValueError("%s is %d" % (name, value))
            kind = getattr(resource, number)
            hard = resource.getrlimit(kind)[1]
            if hard == resource.RLIM_INFINITY or hard >= value + grace:
                hard = value + grace
            resource.setrlimit(kind, (min(value, hard), hard))


#: Settings of OPEN, limits, and how much later the kernel ends the process that has not ended by the signal of the limit.
_LIMITS = (
    ("limit_memory", "RLIMIT_AS", 0), ("limit_processor_seconds", "RLIMIT_CPU", 5), ("limit_open_files", "RLIMIT_NOFILE", 0),
)


def _wait_for_debugger(port: int) -> None:
    """Waits until a debugger has connected to a port of this machine."""
    try:
        import debugpy
    except ImportError as error:
        raise ImportError("a debugger needs the package debugpy in this environment (%s)" % error) from None
    debugpy.listen(("127.0.0.1", port))
    sys.stderr.write("waiting for a debugger at port %d\n" % port)
    debugpy.wait_for_client()


def _ignore_signal(number: int, frame: Any) -> None:
    """Does nothing."""


def _watch_life(address: str) -> None:
    """Lets the kernel kill this process group when the server's end of a socket closes, even in native code."""
    descriptor = connect(address).detach()
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(descriptor, getattr(fcntl, "F_SETSIG", 10), signal.SIGKILL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | getattr(fcntl, "FASYNC", 0o20000))


def _end_with_parent(parent: int) -> None:
    """Asks for a signal at the end of the thread that started this process, unless a wrapper is in between."""
    if os.getppid() != parent:
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def _remove(address: str) -> None:
    """Removes the path of the server's socket, and its directory if nothing else is there."""
    if address.startswith(("fd:", "@")):
        return
    try:
        os.unlink(address)
        os.rmdir(os.path.dirname(os.path.abspath(address)))
    except OSError:
        pass


def _be_chosen_before_the_server() -> None:
    """Lets the kernel kill this process, and not the server, when memory runs out. Processes of the model inherit that."""
    path = "/proc/self/oom_score_adj"
    try:
        with open(path) as file:
            score = int(file.read())
        with open(path, "w") as file:
            file.write(str(min(1000, score + _MEMORY_SCORE)))
    except (OSError, ValueError):  # another kernel, or not allowed
        pass


def main(
    connection: Any, address: str, life: Optional[str], hello: bytes, on_term: str, parent: Optional[str]
) -> int:
    """Runs the process of a model instance, and returns its exit status."""
    logs.configure_streams()
    try:
        # The model may close its standard error, or put something else there.
        stacks = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
    except OSError:
        stacks = 2
    faulthandler.enable(stacks, all_threads=True)
    faulthandler.register(signal.SIGQUIT, stacks, all_threads=True)
    # Not SIG_IGN, which programs that the model starts would inherit.
    signal.signal(signal.SIGINT, _ignore_signal)
    signal.signal(signal.SIGTERM, _ignore_signal)
    try:
        os.setpgid(0, 0)
    except OSError:
        pass
    if parent:
        _end_with_parent(int(parent))
    _be_chosen_before_the_server()
    try:
        connection.sendall(hello)
        if life:
            _watch_life(life)
    except OSError as error:
        sys.stderr.write("the server has gone: %s\n" % error)
        return 2
    finally:
        # Also if the server was killed meanwhile: nothing is left then.
        _remove(address)
        if life:
            _remove(life)

    def on_end() -> None:
        # The server is gone: there are no more requests, and no response can be sent.
        os._exit(1)

    descendants.end_at_exit()
    channel = Channel(out_of_reach(connection), on_end)
    runner = Runner(channel)
    runtime.runner = runner
    logs.configure_logging(runner)
    runner.own_directory = sys.path[0]
    sys.path[0] = ""
    sys.argv[:] = [""]
    if on_term == "finalize":
        signal.signal(signal.SIGTERM, runner.on_signal)
    threading.Thread(target=channel.watch, name="watch", daemon=True).start()
    status = runner.run()
    channel.closing = True
    return status
