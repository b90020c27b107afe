"""Classes of the Python backend: tensors, requests, responses, senders, errors, logger and metrics.

Models import them through ``triton_python_backend_utils``; some import this module. All of it is Python: a model file can
be imported without a server, for its tests. Functions that need a server then raise RuntimeError.
"""

import enum as _enum
import json as _json
import operator as _operator
import sys as _sys
from typing import Any, Dict, List, Optional, Sequence, Set, Union

import numpy as _np

from nereid_python import bytestensor as _bytestensor
from nereid_python import datatypes as _datatypes
from nereid_python import runtime as _runtime

__all__ = [
    "InferenceRequest", "InferenceResponse", "InferenceResponseSender", "InferenceTrace", "Logger", "MemoryType",
    "Metric", "MetricFamily", "MetricKind", "PreferredMemory", "ResponseIterator", "Tensor", "TritonError",
    "TritonModelException", "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE", "is_model_ready", "load_model", "unload_model",
]

_MISSING: Any = object()
_ndarray = _np.ndarray
_number_of = _datatypes.NUMBERS.get
_DTYPES = _datatypes.DTYPES


class TritonModelException(Exception):
    """An error of a model, or of a call of this module. Its code is INTERNAL for clients."""


# Conversions of arguments: a wrong type is a TypeError.


def _text(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8")
    raise TypeError("%s: %s (expected: str)" % (name, type(value).__name__))


def _integer(value: Any, name: str) -> int:
    if isinstance(value, float):
        raise TypeError("%s: float (expected: int)" % name)
    try:
        return _operator.index(value)
    except TypeError:
        raise TypeError("%s: %s (expected: int)" % (name, type(value).__name__)) from None


def _unsigned(value: Any, name: str, bits: int = 64) -> int:
    number = _integer(value, name)
    if not 0 <= number < 1 << bits:
        raise TypeError("%s: %d (expected: 0 to 2^%d - 1)" % (name, number, bits))
    return number


def _signed(value: Any, name: str) -> int:
    number = _integer(value, name)
    if not -(1 << 63) <= number < 1 << 63:
        raise TypeError("%s: %d (expected: 64 bits)" % (name, number))
    return number


def _number(value: Any, name: str) -> float:
    if isinstance(value, (str, bytes)) or value is None:
        raise TypeError("%s: %s (expected: float)" % (name, type(value).__name__))
    try:
        return float(value)
    except TypeError:
        raise TypeError("%s: %s (expected: float)" % (name, type(value).__name__)) from None


def _boolean(value: Any, name: str) -> bool:
    if value is None or not hasattr(value, "__bool__"):
        raise TypeError("%s: %s (expected: bool)" % (name, type(value).__name__))
    return bool(value)


def _list(value: Any, name: str) -> list:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__getitem__") and hasattr(value, "__len__")):
        raise TypeError("%s: %s (expected: list)" % (name, type(value).__name__))
    if isinstance(value, dict):
        raise TypeError("%s: dict (expected: list)" % name)
    return list(value)


def _parameters_json(parameters: Any) -> str:
    if parameters is None:
        return "{}"
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect dict, got %s" % type(parameters))
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException("Expect parameters keys to have type str, found type %s" % type(key))
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )
    return _json.dumps(parameters)


class _Constant(_enum.Enum):
    """Base of the enumerations: their members are no integers, but convert to them."""

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __str__(self) -> str:
        return "%s.%s" % (type(self).__name__, self.name)


class MemoryType(_Constant):
    """Where a tensor lies."""

    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2


TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU

TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

_ErrorCode = _Constant(
    "__ErrorCode",
    {
        "UNKNOWN": 0, "INTERNAL": 1, "NOT_FOUND": 2, "INVALID_ARG": 3, "UNAVAILABLE": 4, "UNSUPPORTED": 5,
        "ALREADY_EXISTS": 6, "CANCELLED": 7,
    },
    module=__name__,
)
_ERROR_CODES = list(_ErrorCode)


class Tensor:
    """A named tensor: an input, an output, or a tensor of a call of another model.

    ``Tensor(name, numpy_array)`` takes a NumPy array of a type that the server has; BYTES tensors are arrays of objects.
    """

    # An array of the model is in _array. An incoming tensor has its bytes in _data from _offset on, perhaps in shared
    # memory (_slot), and in _array the private copy for the model. BYTES of the model are in both.
    __slots__ = ("_name", "_dtype", "_shape", "_array", "_data", "_offset", "_size", "_slot", "__weakref__")

    def __init__(self, name: str, numpy_array: "_np.ndarray") -> None:
        if type(name) is not str:
            name = _text(name, "name")
        if not isinstance(numpy_array, _ndarray):
            raise TypeError("numpy_array: %s (expected: numpy.ndarray)" % type(numpy_array).__name__)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        dtype = _number_of(numpy_array.dtype)
        if dtype is None:
            dtype = _datatypes.number_of(numpy_array.dtype)
            if dtype is None:
                raise TritonModelException("NumPy dtype is not supported.")
        if not numpy_array.flags.c_contiguous:
            numpy_array = numpy_array.copy("C")
        self._name = name
        self._dtype = dtype
        self._shape = numpy_array.shape
        self._array = numpy_array
        self._slot = None
        if dtype == 13:
            self._data = data = _bytestensor.encode(numpy_array)
            self._offset = 0
            self._size = len(data)
        else:
            self._data = None

    def name(self) -> str:
        """Returns the name of the tensor."""
        return self._name

    def shape(self) -> List[int]:
        """Returns the dimensions, with that of the batch."""
        return list(self._shape)

    def triton_dtype(self) -> int:
        """Returns the number of the data type, as of ``numpy_to_triton_type``."""
        return self._dtype

    def is_cpu(self) -> bool:
        """Returns whether the tensor lies in memory of the host: always here."""
        return True

    def as_numpy(self) -> "_np.ndarray":
        """Returns the tensor as an array, the same one at each call.

        That of an incoming tensor is a private, writable copy. BYTES tensors are arrays of ``bytes``.
        """
        array = self._array
        if array is None:
            dtype = self._dtype
            if dtype == 13:
                array = _bytestensor.decode(self._data, self._offset, self._size, self._shape)
            elif dtype == 14:
                raise TritonModelException(
                    "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
                )
            else:
                array = _ndarray(self._shape, _DTYPES[dtype], self._data, self._offset)
                lent = _runtime.runner.memory.lend(self._size) if self._slot is not None and self._size else None
                if lent is None:
                    array = array.copy()
                else:
                    # The model may return this very array: then its memory goes to the server.
                    source = array
                    array = lent.array(self._shape, _DTYPES[dtype])
                    _np.copyto(array, source)
            self._array = array
        elif self._dtype == 14:
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
            )
        return array

    def to_dlpack(self, stream: Any = None) -> Any:
        """Returns a DLPack capsule of the tensor's memory, without a copy."""
        if self._dtype == 13:
            raise TritonModelException("DLPack does not have support for string tensors.")
        from nereid_python import dlpack  # with ctypes, which some builds of Python lack

        return dlpack.export(self)

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        return self.to_dlpack()

    def __dlpack_device__(self) -> tuple:
        return (1, 0)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> "Tensor":
        """Makes a tensor of a DLPack capsule, or of an object that has ``__dlpack__``, without a copy."""
        name = _text(name, "name")
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        from nereid_python import dlpack

        try:
            array, dtype = dlpack.load(tensor)
        except dlpack.Refused as refused:
            raise TritonModelException(str(refused)) from None
        result = Tensor.__new__(Tensor)
        result._name = name
        result._dtype = dtype
        result._shape = array.shape
        result._array = array
        result._data = None
        result._slot = None
        return result

    def __repr__(self) -> str:
        return "<Tensor %r %s %s>" % (self._name, _datatypes.NAMES[self._dtype], list(self._shape))


class InferenceTrace:
    """The trace of a request, to pass it on to the requests that a model makes."""

    __slots__ = ("_context",)

    def __init__(self) -> None:
        self._context: Optional[str] = None

    def get_context(self) -> Optional[str]:
        """Returns the context as JSON with ``traceparent``, or None without OpenTelemetry."""
        return self._context


class PreferredMemory:
    """Where the outputs of a model that is called should lie."""

    __slots__ = ("_type", "_device")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        if not isinstance(preferred_memory_type, MemoryType):
            raise TypeError("preferred_memory_type: %s (expected: MemoryType)" % type(preferred_memory_type).__name__)
        self._type = preferred_memory_type
        self._device = _integer(preferred_device_id, "preferred_device_id")


class TritonError:
    """The error of one response: a text for the client, and a code."""

    __slots__ = ("_message", "_code")

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = _ERROR_CODES

    def __init__(self, message: str, code: Any = _ERROR_CODES[1]) -> None:
        self._message = _text(message, "message")
        if not isinstance(code, _ErrorCode):
            raise TypeError("code: %s (expected: a code of TritonError)" % type(code).__name__)
        self._code = code

    def message(self) -> str:
        """Returns the text."""
        return self._message

    def code(self) -> Any:
        """Returns the code, such as ``TritonError.INTERNAL``."""
        return self._code

    def __repr__(self) -> str:
        return "<TritonError %s %r>" % (self._code.name, self._message)


class InferenceResponse:
    """The response to one request: outputs, or an error."""

    __slots__ = ("_outputs", "_error", "_parameters", "_values")

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: Optional[TritonError] = None,
        parameters: Optional[Dict[str, Union[bool, int, str]]] = None,
    ) -> None:
        outputs = _list(output_tensors, "output_tensors") if type(output_tensors) is not list else output_tensors[:]
        for tensor in outputs:
            if type(tensor) is not Tensor and not isinstance(tensor, Tensor):
                if tensor is None:
                    raise TritonModelException("Output tensor for inference response should not be empty.")
                raise TypeError("output_tensors: %s (expected: Tensor)" % type(tensor).__name__)
        if error is not None and not isinstance(error, TritonError):
            raise TypeError("error: %s (expected: TritonError)" % type(error).__name__)
        self._outputs = outputs
        self._error = error
        if parameters is None:
            self._values = None
            self._parameters = "{}"
        else:
            self._parameters = _parameters_json(parameters)
            self._values = dict(parameters)

    def output_tensors(self) -> List[Tensor]:
        """Returns the outputs."""
        return list(self._outputs)

    def has_error(self) -> bool:
        """Returns whether this response is an error."""
        return self._error is not None

    def error(self) -> Optional[TritonError]:
        """Returns the error, or None."""
        return self._error

    def parameters(self) -> str:
        """Returns the parameters of the response as JSON."""
        return self._parameters


class InferenceResponseSender:
    """Sends the responses to one request, from any thread."""

    __slots__ = ("_state", "__weakref__")

    def __init__(self) -> None:
        raise TypeError("c_python_backend_utils.InferenceResponseSender: No constructor defined!")

    def send(self, response: Optional[InferenceResponse] = None, flags: int = 0) -> None:
        """Sends a response, or with ``TRITONSERVER_RESPONSE_COMPLETE_FINAL`` also the end, or the end alone."""
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError("response: %s (expected: InferenceResponse)" % type(response).__name__)
        if type(flags) is not int:
            flags = _unsigned(flags, "flags", 32)
        if flags != 0 and flags != 1:
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if response is None and flags == 0:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        state = self._state
        if state is None:
            raise TritonModelException(
                "Unable to send response. Response sender has no reference to the decoupled state of the model."
            )
        refusal = state.send(response, flags)
        if refusal is not None:
            raise TritonModelException(refusal)

    def is_cancelled(self) -> bool:
        """Returns whether the client has cancelled the request, or has gone."""
        state = self._state
        return state is not None and state.is_cancelled()


class InferenceRequest:
    """A request: one that the model executes, or one that it makes to call another model."""

    # Defaults on the class, which the runner leaves where they are.
    _request_id = ""
    _correlation_id: Union[int, str] = 0
    _flags = 0
    _timeout = 0
    _parameters = "{}"
    _values: Optional[Dict[str, Any]] = None
    _model_name = ""
    _model_version = -1
    _preferred_memory: Optional[PreferredMemory] = None
    _trace: Optional[InferenceTrace] = None
    _state: Any = None
    _sender: Optional[InferenceResponseSender] = None
    _release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
    _inputs: List[Tensor]
    _names: Set[str]

    def __init__(
        self,
        request_id: str = "",
        correlation_id: Union[int, str] = 0,
        inputs: Sequence[Tensor] = _MISSING,
        requested_output_names: Sequence[str] = _MISSING,
        model_name: str = _MISSING,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory = _MISSING,
        trace: InferenceTrace = _MISSING,
        parameters: Optional[Dict[str, Union[bool, int, str]]] = None,
    ) -> None:
        for name, value in (
            ("inputs", inputs), ("requested_output_names", requested_output_names), ("model_name", model_name)
        ):
            if value is _MISSING:
                raise TypeError("InferenceRequest: missing argument '%s'" % name)
        self._request_id = _text(request_id, "request_id")
        self._inputs = tensors = _list(inputs, "inputs")
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError("inputs: %s (expected: Tensor)" % type(tensor).__name__)
        names = [_text(name, "requested_output_names") for name in _list(requested_output_names, "requested_output_names")]
        self._model_name = _text(model_name, "model_name")
        self._model_version = _signed(model_version, "model_version")
        self._flags = _unsigned(flags, "flags", 32)
        self._timeout = _unsigned(timeout, "timeout")
        if preferred_memory is not _MISSING:
            if not isinstance(preferred_memory, PreferredMemory):
                raise TypeError("preferred_memory: %s (expected: PreferredMemory)" % type(preferred_memory).__name__)
            self._preferred_memory = preferred_memory
        if trace is not _MISSING:
            if not isinstance(trace, InferenceTrace):
                raise TypeError("trace: %s (expected: InferenceTrace)" % type(trace).__name__)
            self._trace = trace
        if correlation_id is None:
            raise TypeError("correlation_id: None (expected: int or str)")
        if isinstance(correlation_id, str):
            self._correlation_id = correlation_id
        elif isinstance(correlation_id, (int, _np.integer)) and 0 <= int(correlation_id) < 1 << 64:
            self._correlation_id = int(correlation_id)
        else:
            raise TritonModelException("Correlation ID must be integer or string")
        for tensor in tensors:
            if tensor is None:
                raise TritonModelException(
                    "Input tensor for request with id '%s' and model name '%s' should not be empty."
                    % (self._request_id, self._model_name)
                )
        for name in names:
            if not name:
                raise TritonModelException(
                    "Requested output name for request with id '%s' and model name '%s' should not be empty."
                    % (self._request_id, self._model_name)
                )
        self._names = set(names)
        self._parameters = _parameters_json(parameters)
        self._values = dict(parameters) if parameters else None

    @classmethod
    def _served_model(cls, name: str, version: int) -> None:
        """Sets the model of the requests that the process executes."""
        cls._model_name = name
        cls._model_version = version

    def inputs(self) -> List[Tensor]:
        """Returns the input tensors; their order is not specified."""
        return list(self._inputs)

    def request_id(self) -> str:
        """Returns the id that the client gave, or an empty text."""
        return self._request_id

    def correlation_id(self) -> Union[int, str]:
        """Returns the id of the sequence: an int, or a str if the client's is one."""
        return self._correlation_id

    def flags(self) -> int:
        """Returns the flags of sequences, ``TRITONSERVER_REQUEST_FLAG_SEQUENCE_START`` and ``_END``."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """Sets the flags of sequences."""
        self._flags = _unsigned(flags, "flags", 32)

    def timeout(self) -> int:
        """Returns the timeout in microseconds, 0 for none."""
        return self._timeout

    def parameters(self) -> str:
        """Returns the parameters of the request as JSON."""
        return self._parameters

    def requested_output_names(self) -> Set[str]:
        """Returns the names of the outputs that the client wants."""
        return set(self._names)

    def trace(self) -> InferenceTrace:
        """Returns the trace of the request."""
        if self._trace is None:
            self._trace = InferenceTrace()
        return self._trace

    def preferred_memory(self) -> PreferredMemory:
        """Returns where the outputs of the called model should lie."""
        if self._preferred_memory is None:
            self._preferred_memory = PreferredMemory(TRITONSERVER_MEMORY_CPU)
        return self._preferred_memory

    def model_name(self) -> str:
        """Returns the name of the model that executes the request."""
        return self._model_name

    def model_version(self) -> int:
        """Returns the version of the model, -1 for the one that the server chooses."""
        return self._model_version

    def get_response_sender(self) -> InferenceResponseSender:
        """Returns the sender of responses to this request, the same one at each call."""
        sender = self._sender
        if sender is None:
            self._sender = sender = _new_sender(InferenceResponseSender)
            sender._state = state = self._state
            if state is not None:
                state.sender_made()
        return sender

    def is_cancelled(self) -> bool:
        """Returns whether the client has cancelled the request, or has gone."""
        state = self._state
        return state is not None and state.is_cancelled()

    def set_release_flags(self, flags: int) -> None:
        """Sets ``TRITONSERVER_REQUEST_RELEASE_RESCHEDULE``, so that the request is executed again."""
        self._release_flags = _unsigned(flags, "flags", 32)

    def exec(self, decoupled: bool = False) -> Any:
        """Executes the request on its model, and waits for the response.

        A failure is a response with an error. With ``decoupled`` the result is an iterator over responses.
        """
        return _runtime.required().calls.exec(self, _boolean(decoupled, "decoupled"))

    def async_exec(self, decoupled: bool = False) -> Any:
        """Executes the request on its model, and returns an awaitable of the result of ``exec``."""
        return _runtime.required().calls.async_exec(self, _boolean(decoupled, "decoupled"))


_new_sender = InferenceResponseSender.__new__


class ResponseIterator:
    """The responses to a request that was executed with ``decoupled=True``.

    A loop resumes at the next response; after the end, a new loop starts with the first response again.
    """

    __slots__ = ("_stream", "_seen", "_next", "__weakref__")

    def __init__(self) -> None:
        raise TypeError("c_python_backend_utils.ResponseIterator: No constructor defined!")

    def __iter__(self) -> "ResponseIterator":
        if self._stream.ended and self._next >= len(self._seen):
            self._next = 0
        return self

    def __next__(self) -> InferenceResponse:
        if self._next >= len(self._seen):
            response = self._stream.next()
            if response is None:
                raise StopIteration
            self._seen.append(response)
        self._next += 1
        return self._seen[self._next - 1]

    def cancel(self) -> None:
        """Cancels the request."""
        self._stream.cancel()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None:
            stream.drop()


def load_model(model_name: str, config: str = "", files: Optional[Dict[str, bytes]] = None) -> None:
    """Loads a model, with the configuration (JSON) and the files that are given, or else those of the repository."""
    _runtime.required().calls.load_model(_text(model_name, "model_name"), _text(config, "config"), files)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unloads a model, and returns before it is gone."""
    _runtime.required().calls.unload_model(_text(model_name, "model_name"), _boolean(unload_dependents, "unload_dependents"))


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Returns whether a model is ready."""
    return _runtime.required().calls.is_model_ready(
        _text(model_name, "model_name"), _text(model_version, "model_version")
    )


class _LogLevel(_Constant):
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


_LogLevel.__name__ = _LogLevel.__qualname__ = "LogLevel"
LogLevel = _LogLevel


class Logger:
    """Writes to the log of the server. File and line are those of the caller."""

    INFO, WARNING, ERROR, VERBOSE = list(_LogLevel)

    @staticmethod
    def log(message: str, level: Any = _LogLevel.INFO) -> None:
        """Writes a message."""
        if not isinstance(level, _LogLevel):
            raise TypeError("level: %s (expected: a level of Logger)" % type(level).__name__)
        _log(message, level.value)

    @staticmethod
    def log_info(message: str) -> None:
        """Writes a message of level INFO."""
        _log(message, 0)

    @staticmethod
    def log_warn(message: str) -> None:
        """Writes a message of level WARNING."""
        _log(message, 1)

    @staticmethod
    def log_error(message: str) -> None:
        """Writes a message of level ERROR."""
        _log(message, 2)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Writes a message of level VERBOSE."""
        _log(message, 3)


def _log(message: str, level: int) -> None:
    message = _text(message, "message")
    frame = _sys._getframe(2)
    runner = _runtime.runner
    if runner is None or not runner.log_ready:
        _sys.stderr.write(message + "\n")
    elif runner.log_mask & 1 << level:
        runner.log(level, frame.f_code.co_filename, frame.f_lineno, message)


class MetricKind(_Constant):
    """Kinds of metrics."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


_DELETED_FAMILY = (
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should be "
    "deleted AFTER its corresponding 'Metric' objects have been deleted."
)


class Metric:
    """One metric of a family, made by ``MetricFamily.Metric``."""

    __slots__ = ("_family", "_kind", "_ident", "__weakref__")

    def __init__(self) -> None:
        raise TypeError("c_python_backend_utils.Metric: No constructor defined!")

    def increment(self, value: float) -> None:
        """Adds to a counter or a gauge."""
        value = _number(value, "value")
        self._check("increment", "Increment", self._kind is not MetricKind.HISTOGRAM)
        if self._kind is MetricKind.COUNTER and value < 0:
            raise TritonModelException(
                "Failed to increment metric value: " + _runtime.required().request_prefix()
                + "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
            )
        _runtime.required().calls.metric_change(self._ident, "increment", value)

    def set(self, value: float) -> None:
        """Sets a gauge."""
        value = _number(value, "value")
        self._check("set", "Set", self._kind is MetricKind.GAUGE)
        _runtime.required().calls.metric_change(self._ident, "set", value)

    def observe(self, value: float) -> None:
        """Adds an observation to a histogram."""
        value = _number(value, "value")
        self._check("observe", "Observe", self._kind is MetricKind.HISTOGRAM)
        _runtime.required().calls.metric_change(self._ident, "observe", value)

    def value(self) -> float:
        """Returns the value of a counter or gauge: the sum of all that use the same family and labels."""
        self._check("get", "Value", self._kind is not MetricKind.HISTOGRAM)
        return _runtime.required().calls.metric_value(self._ident)

    def _check(self, verb: str, operation: str, supported: bool) -> None:
        if not self._family.alive:
            raise TritonModelException(_DELETED_FAMILY)
        if not supported:
            raise TritonModelException(
                "Failed to %s metric value: %sTRITONSERVER_METRIC_KIND_%s does not support %s"
                % (verb, _runtime.required().request_prefix(), self._kind.name, operation)
            )

    def __del__(self) -> None:
        runner = _runtime.runner
        ident = getattr(self, "_ident", 0)
        if ident and runner is not None:
            runner.calls.metric_drop(ident, False)


class _Family:
    __slots__ = ("ident", "alive")

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.alive = True


class MetricFamily:
    """Metrics of one name, kind and description, in the registry of the server."""

    __slots__ = ("_handle", "_kind", "__weakref__")

    COUNTER, GAUGE, HISTOGRAM = list(MetricKind)

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        name = _text(name, "name")
        description = _text(description, "description")
        if not isinstance(kind, MetricKind):
            raise TypeError("kind: %s (expected: a kind of MetricFamily)" % type(kind).__name__)
        self._kind = kind
        self._handle = _Family(_runtime.required().calls.metric_family(name, description, kind.value))

    def Metric(self, labels: Optional[Dict[str, str]] = None, buckets: Optional[Sequence[float]] = None) -> Metric:
        """Returns the metric with these labels; a histogram needs buckets."""
        if labels is None:
            labels = {}
        elif not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        for key, value in labels.items():
            if not isinstance(key, (str, bytes)) or not isinstance(value, (str, bytes)):
                raise TypeError("labels: %s to %s (expected: str to str)" % (type(key).__name__, type(value).__name__))
        texts = {_text(key, "labels"): _text(value, "labels") for key, value in labels.items()}
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if self._kind is MetricKind.HISTOGRAM:
            if buckets is None:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
            limits = [_number(limit, "buckets") for limit in buckets]
        elif buckets is not None:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        else:
            limits = []
        result = Metric.__new__(Metric)
        result._ident = 0
        result._kind = self._kind
        result._family = self._handle
        result._ident = _runtime.required().calls.metric_create(self._handle.ident, texts, limits)
        return result

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        runner = _runtime.runner
        if handle is not None:
            handle.alive = False
            if runner is not None:
                runner.calls.metric_drop(handle.ident, True)
