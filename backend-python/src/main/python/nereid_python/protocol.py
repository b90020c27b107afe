"""Constants and fixed layouts of the protocol; ``PROTOCOL.md`` describes them."""

from struct import Struct

VERSION_MAJOR = 1
VERSION_MINOR = 0

# Frames from the server to Python.
OPEN = 1
COMPLETE = 2
INITIALIZE = 3
EXECUTE = 4
CHECK_READY = 5
FINALIZE = 6
CANCEL = 7
CREDIT = 8
RELEASE = 9
SEGMENT = 10
SEGMENT_REFUSED = 11
SEGMENT_REMOVE = 12
CALL_RESPONSE = 13
REPLY = 14
LOG_LEVELS = 15

# Frames from Python to the server.
HELLO = 64
DONE = 65
COMPLETED = 66
EXECUTED = 67
RESPONSE = 68
FAILED = 69
READY = 70
RELEASED = 71
SEGMENT_WANTED = 72
SEGMENT_RETURNED = 73
CALL = 74
CALL_CREDIT = 75
CALL_CANCEL = 76
CALL_DROP = 77
CONTROL = 78
METRIC = 79
LOG = 80
NOTICE = 81

# length of the frame, type, flags, count, id
HEADER = Struct("<IBBHQ")
HEADER_SIZE = HEADER.size
FRAME_LIMIT = (1 << 31) - 8

# name (index or length), data type, dimensions, segment, offset, size
TENSOR = Struct("<HBBIQQ")
TENSOR_SIZE = TENSOR.size
INLINE = 0

# id, correlation id, timeout, window, flags, inputs, requested outputs,
# lengths of: request id, correlation text, parameters, trace context
REQUEST = Struct("<QQQIHHHHIIII")

# kind, flags, outputs, parameters, error code
RESULT = Struct("<BBHHH")

# id of the execution, correlation id, timeout, version, flags, window, preferred device,
# inputs, outputs, parameters, preferred memory, kind of correlation id,
# lengths of: model name, request id, correlation text, trace context
CALL_HEAD = Struct("<QQQqIIiHHHBBIIII")

# flags, code, outputs, reserved, lengths of: error text, parameters
CALL_RESULT = Struct("<BBHIII")

#: A tensor with its shape, by the number of dimensions.
TENSORS = tuple(Struct("<HBBIQQ%dq" % rank) for rank in range(256))

U32 = Struct("<I")
U64 = Struct("<Q")
I64 = Struct("<q")
F64 = Struct("<d")
SHAPES = tuple(Struct("<%dq" % rank) for rank in range(256))

# Results of one request in EXECUTED and RESPONSE.
RESULT_NONE = 0
RESULT_OUTPUTS = 1
RESULT_ERROR = 2
RESULT_RESCHEDULE = 3
RESULT_FINAL = 5

FLAG_FINAL = 1
# EXECUTED
FLAG_FAILED = 1
FLAG_ASYNC = 2
# CALL
CALL_DECOUPLED = 1
# CALL_RESPONSE
CALL_FINAL = 1
CALL_HAS_RESPONSE = 2
CALL_ERROR = 4
CALL_REFUSED = 8

# Values of parameters.
PARAMETER_BOOL = 1
PARAMETER_INT = 2
PARAMETER_STRING = 3

CONTROL_LOAD = 1
CONTROL_UNLOAD = 2
CONTROL_READY = 3

METRIC_FAMILY = 1
METRIC_FAMILY_DROP = 2
METRIC_CREATE = 3
METRIC_DROP = 4
METRIC_INCREMENT = 5
METRIC_SET = 6
METRIC_OBSERVE = 7
METRIC_VALUE = 8
METRIC_REPLIES = frozenset((METRIC_FAMILY, METRIC_CREATE, METRIC_VALUE))

NOTICE_UNKNOWN_OUTPUT = 1

_PADDING = (b"", b"\0" * 7, b"\0" * 6, b"\0" * 5, b"\0" * 4, b"\0" * 3, b"\0" * 2, b"\0")


def text(value: str) -> bytes:
    """Returns a string as it lies in frames: its length in bytes (u32), then UTF-8."""
    encoded = value.encode("utf-8", "replace")
    return U32.pack(len(encoded)) + encoded


def text_within(value: str, limit: int) -> bytes:
    """Returns a string as ``text`` does; of a longer one the start, at most so many bytes, and how much is left out."""
    encoded = value[:limit + 1].encode("utf-8", "replace")
    if len(encoded) > limit:
        start = encoded[:limit - 64].decode("utf-8", "ignore")
        encoded = ("%s … (%d more characters)" % (start, len(value) - len(start))).encode("utf-8", "replace")
    return U32.pack(len(encoded)) + encoded


def frame(kind: int, flags: int, count: int, ident: int, body: bytes = b"") -> bytes:
    """Returns a whole frame, padded to a multiple of eight bytes."""
    length = HEADER_SIZE + len(body)
    padding = _PADDING[length & 7]
    return HEADER.pack(length + len(padding), kind, flags, count, ident) + body + padding


def padding(length: int) -> bytes:
    """Returns the bytes that fill ``length`` up to a multiple of eight."""
    return _PADDING[length & 7]


class Reader:
    """Reads fields of a frame in order; for frames outside of the hot path."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def take(self, layout: Struct) -> tuple:
        values = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return values

    def u32(self) -> int:
        return self.take(U32)[0]

    def bytes(self) -> bytes:
        length = self.u32()
        start = self.position
        self.position = start + length
        return bytes(self.data[start:self.position])

    def text(self) -> str:
        return self.bytes().decode("utf-8", "replace")

    def texts(self) -> list:
        return [self.text() for _ in range(self.u32())]

    def map(self) -> dict:
        return {self.text(): self.text() for _ in range(self.u32())}
