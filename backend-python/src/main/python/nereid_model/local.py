"""Executes a model in this process: the runner of a server, with a channel that ends here."""

import json
import os
import sys
import threading
from typing import Any, Dict, List, Optional

import numpy as np

from nereid_python import bytestensor, datatypes, protocol, runtime
from nereid_python.channel import Waiter
from nereid_python.protocol import (
    CALL_RESULT, F64, HEADER, HEADER_SIZE, I64, REQUEST, RESULT, SHAPES, TENSOR, TENSORS, U32, U64, Reader,
)
from nereid_python.runner import Runner

_LEVELS = ("INFO", "WARNING", "ERROR", "VERBOSE")
_NO_SERVER = "calls need a server"


class ModelFailed(Exception):
    """The model could not be loaded."""

    def __init__(self, text: str, trace: str) -> None:
        super().__init__(text)
        self.trace = trace


class LocalChannel:
    """Takes the frames of the runner, and replies to calls, control operations and metrics."""

    def __init__(self) -> None:
        self.busy = True
        self.forked = False
        self.written = 0
        self.on_quiet = lambda: None
        self._handlers: Dict[int, Any] = {}
        self._changed = threading.Condition()
        self._values: Dict[int, float] = {}
        self.frames: List[tuple] = []

    def handle(self, kind: int, handler: Any) -> None:
        self._handlers[kind] = handler

    def send(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            length, kind, flags, count, ident = HEADER.unpack_from(data, position)
            self._arrived(data[position:position + length], kind, flags, count, ident)
            position += length

    send_later = send

    def release(self, segment: int, offset: int) -> None:
        pass

    def drain(self) -> None:
        pass

    def want_reading(self, wanted: bool) -> None:
        pass

    def wait(self, waiter: Waiter) -> None:
        while not waiter.done:
            waiter.lock.acquire()

    def wait_until(self, condition: Any) -> None:
        while not condition():
            pass

    def wait_for(self, condition: Any) -> None:
        """Waits until a frame has made the condition true."""
        with self._changed:
            self._changed.wait_for(condition)

    def take(self, kind: int) -> List[tuple]:
        """Removes and returns the frames of a type: data, flags, count, id."""
        with self._changed:
            found = [frame[1:] for frame in self.frames if frame[0] == kind]
            self.frames = [frame for frame in self.frames if frame[0] != kind]
            return found

    def _arrived(self, data: bytes, kind: int, flags: int, count: int, ident: int) -> None:
        reader = Reader(data, HEADER_SIZE)
        if kind == protocol.LOG:
            file, message = reader.text(), reader.text()
            sys.stderr.write("%s %s:%d: %s\n" % (_LEVELS[flags], os.path.basename(file), ident, message))
        elif kind == protocol.NOTICE:
            sys.stderr.write("WARNING output '%s' is not in the configuration\n" % reader.text())
        elif kind == protocol.CALL:
            text = _NO_SERVER.encode()
            answer = CALL_RESULT.pack(0, 1, 0, 0, len(text), 0) + text
            flag = protocol.CALL_FINAL | protocol.CALL_ERROR | protocol.CALL_REFUSED
            self._handlers[protocol.CALL_RESPONSE](
                protocol.frame(protocol.CALL_RESPONSE, flag, 0, ident, answer), 0, flag, 0, ident
            )
        elif kind == protocol.CONTROL:
            self._reply(ident, 0.0, _NO_SERVER)
        elif kind == protocol.METRIC:
            self._metric(reader, flags, ident)
        else:
            with self._changed:
                self.frames.append((kind, data, flags, count, ident))
                self._changed.notify_all()

    def _reply(self, ident: int, value: float, error: str = "") -> None:
        body = F64.pack(value) + protocol.text(error)
        flags = 1 if error else 0
        frame = protocol.frame(protocol.REPLY, flags, 0, ident, body)
        self._handlers[protocol.REPLY](frame, 0, flags, 0, ident)

    def _metric(self, reader: Reader, operation: int, ident: int) -> None:
        if operation == protocol.METRIC_INCREMENT:
            self._values[ident] = self._values.get(ident, 0.0) + reader.take(F64)[0]
        elif operation == protocol.METRIC_SET:
            self._values[ident] = reader.take(F64)[0]
        elif operation == protocol.METRIC_VALUE:
            self._reply(ident, self._values.get(reader.take(U64)[0], 0.0))
        elif operation in protocol.METRIC_REPLIES:
            self._reply(ident, 0.0)


class LocalModel:
    """A model that runs in this process, without a server."""

    def __init__(self, directory: str, config: Dict[str, Any], version: str = "1") -> None:
        directory = os.path.abspath(directory)
        self.config = config
        self._version = version
        self._directory = directory
        self._channel = LocalChannel()
        self._runner = Runner(self._channel)  # type: ignore[arg-type]
        self._runner.codec.inline_limit = protocol.FRAME_LIMIT
        self._name = config["name"]
        self._handles = 0
        self._inputs: List[str] = []
        self._outputs: List[str] = []
        runtime.runner = self._runner

    def load(self) -> None:
        """Imports the model, completes its configuration and initializes it."""
        versions = os.path.join(self._directory, self._version)
        file = self.config["default_model_filename"] or "model.py"
        settings = {
            "model_file": os.path.join(versions, file), "version_directory": versions, "model_name": self._name,
            "model_version": self._version, "instance_name": self._name + "_0",
            "module_name": self._version + "." + os.path.splitext(file)[0],
            "search_path": versions + "\n" + self._directory, "inline_limit": str(protocol.FRAME_LIMIT),
        }
        self._runner.open(_map(settings), 1)
        if self._done() & 1:
            self._runner.complete(Reader(protocol.text(json.dumps(self.config)), 0), 2)
            self._done()
            for data, _, _, _ in self._channel.take(protocol.COMPLETED):
                self.config = _completed(data)
        decoupled = bool((self.config.get("model_transaction_policy") or {}).get("decoupled"))
        self._inputs = [tensor["name"] for tensor in self.config["input"]]
        self._outputs = [tensor["name"] for tensor in self.config["output"]]
        arguments = {
            "model_config": json.dumps(self.config), "model_instance_kind": "CPU", "model_instance_name": self._name + "_0",
            "model_instance_device_id": "0", "model_repository": self._directory, "model_version": self._version,
            "model_name": self._name,
        }
        body = U32.pack(1 if decoupled else 0) + _encoded(arguments)
        for names in (self._inputs, self._outputs):
            body += U32.pack(len(names)) + b"".join([protocol.text(name) for name in names])
        self._runner.initialize(Reader(body, 0), 3)
        self._done()

    def _done(self) -> int:
        for data, flags, count, _ in self._channel.take(protocol.DONE):
            if flags:
                reader = Reader(data, HEADER_SIZE)
                raise ModelFailed(reader.text(), reader.text())
            return count
        return 0

    def execute(self, requests: List[Dict[str, Any]]) -> List[List[Dict[str, Any]]]:
        """Executes requests in JSON as one batch, and returns the responses to each, until the last final one."""
        first = self._handles + 1
        handles = list(range(first, first + len(requests)))
        self._handles += len(requests)
        frame = self._encode(requests, handles)
        self._runner.execute(frame, 0, len(requests), first)
        responses: Dict[int, List[Dict[str, Any]]] = {handle: [] for handle in handles}
        open_handles = set(handles)
        for data, flags, _, _ in self._channel.take(protocol.EXECUTED):
            reader = Reader(data, HEADER_SIZE)
            if flags & protocol.FLAG_FAILED:
                reader.u32()
                text, trace = reader.text(), reader.text()
                self._take(responses, open_handles)
                for handle in sorted(open_handles):
                    responses[handle].append({"error": text})
                open_handles.clear()
                sys.stderr.write(trace + "\n" if trace else "")
                continue
            for handle in handles:
                final, response = self._result(reader)
                if response is not None:
                    responses[handle].append(response)
                if final:
                    open_handles.discard(handle)
        self._take(responses, open_handles)
        while open_handles:
            self._channel.wait_for(
                lambda: any(frame[0] in (protocol.RESPONSE, protocol.FAILED) for frame in self._channel.frames)
            )
            self._take(responses, open_handles)
        return [responses[handle] for handle in handles]

    def _take(self, responses: Dict[int, List[Dict[str, Any]]], open_handles: set) -> None:
        for data, _, _, handle in self._channel.take(protocol.RESPONSE):
            final, response = self._result(Reader(data, HEADER_SIZE))
            if response is not None and handle in open_handles:
                responses[handle].append(response)
            if final:
                open_handles.discard(handle)
        for data, _, count, _ in self._channel.take(protocol.FAILED):
            reader = Reader(data, HEADER_SIZE)
            failed = [reader.take(U64)[0] for _ in range(count)]
            reader.u32()
            text, trace = reader.text(), reader.text()
            sys.stderr.write(trace + "\n" if trace else "")
            for handle in failed:
                if handle in open_handles:
                    responses[handle].append({"error": text})
                    open_handles.discard(handle)

    def finalize(self) -> None:
        """Finalizes the model."""
        self._runner.finalize()

    def _encode(self, requests: List[Dict[str, Any]], handles: List[int]) -> bytes:
        parts = [b""]
        position = HEADER_SIZE
        for request, handle in zip(requests, handles):
            parameters = dict(request.get("parameters") or {})
            flags = (1 if parameters.pop("sequence_start", False) else 0) | (
                2 if parameters.pop("sequence_end", False) else 0
            )
            correlation = parameters.pop("sequence_id", 0)
            timeout = parameters.pop("timeout", 0)
            texts = [
                str(request.get("id", "")).encode(), correlation.encode() if isinstance(correlation, str) else b"",
                json.dumps(parameters, separators=(",", ":")).encode() if parameters else b"", b"",
            ]
            wanted = [self._index(self._outputs, output["name"], "output") for output in request.get("outputs") or ()]
            inputs = request.get("inputs") or []
            head = REQUEST.pack(
                handle, correlation if isinstance(correlation, int) else 0, timeout, 0, flags, len(inputs), len(wanted), 0,
                *map(len, texts),
            )
            head += b"".join([index.to_bytes(2, "little") for index in wanted]) + b"".join(texts)
            parts.append(head)
            position += len(head)
            for given in inputs:
                array, number = _array(given)
                data = bytestensor.encode(array) if number == datatypes.BYTES else array.tobytes()
                shape = [int(size) for size in given["shape"]]
                position += TENSOR.size + 8 * len(shape)
                padding = -position & 7
                position += padding + len(data)
                index = self._index(self._inputs, given["name"], "input")
                parts.append(TENSORS[len(shape)].pack(index, number, len(shape), 0, position - len(data), len(data), *shape))
                parts.append(b"\0" * padding + data)
        parts.append(b"\0" * (-position & 7))
        position += -position & 7
        parts[0] = HEADER.pack(position, protocol.EXECUTE, 0, len(requests), 1)
        return b"".join(parts)

    def _index(self, names: List[str], name: str, kind: str) -> int:
        if name not in names:
            raise ValueError("%s '%s' is not in the configuration (expected: one of %s)" % (kind, name, names))
        return names.index(name)

    def _result(self, reader: Reader) -> tuple:
        """Returns whether a result is the last of its request, and the response as JSON, or None."""
        kind, flags, outputs, parameters, code = reader.take(RESULT)
        final = bool(flags & 1)
        if kind == protocol.RESULT_ERROR:
            return final, {"error": reader.text(), "code": code}
        if kind == protocol.RESULT_RESCHEDULE:
            return True, {"rescheduled": True}
        if kind != protocol.RESULT_OUTPUTS:
            return final, None
        response: Dict[str, Any] = {"model_name": self._name, "model_version": self._version, "outputs": []}
        for _ in range(outputs):
            index, number, rank, _, offset, size = reader.take(TENSOR)
            shape = reader.take(SHAPES[rank])
            reader.position = offset + size
            response["outputs"].append(
                {
                    "name": self._outputs[index], "datatype": datatypes.NAMES[number], "shape": list(shape),
                    "data": _elements(reader.data, offset, size, number),
                }
            )
        values = {}
        for _ in range(parameters):
            name = reader.text()
            kind = reader.data[reader.position]
            reader.position += 1
            if kind == protocol.PARAMETER_BOOL:
                values[name] = bool(reader.data[reader.position])
                reader.position += 1
            else:
                values[name] = reader.take(I64)[0] if kind == protocol.PARAMETER_INT else reader.text()
        if values:
            response["parameters"] = values
        return final, response


def _encoded(values: Dict[str, str]) -> bytes:
    return U32.pack(len(values)) + b"".join([protocol.text(key) + protocol.text(value) for key, value in values.items()])


def _map(values: Dict[str, str]) -> Reader:
    return Reader(_encoded(values), 0)


def _array(given: Dict[str, Any]) -> tuple:
    """Returns the array of an input in JSON, and the number of its type."""
    names = list(datatypes.NAMES)
    datatype = given.get("datatype")
    if datatype not in names or datatypes.DTYPES[names.index(datatype)] is None:
        raise ValueError("datatype of input '%s': %r (expected: one of %s)" % (given.get("name"), datatype, names[1:14]))
    number = names.index(datatype)
    if number == datatypes.BYTES:
        flat = np.array(given["data"], dtype=np.object_).reshape(-1).tolist()
        array = np.empty(len(flat), np.object_)
        array[:] = [str(text).encode() for text in flat]
    else:
        array = np.array(given["data"], dtype=datatypes.DTYPES[number])
    return array.reshape(given["shape"]), number


def _elements(data: bytes, offset: int, size: int, number: int) -> list:
    if number == datatypes.BYTES:
        return [text.decode("utf-8", "replace") for text in bytestensor.decode(data, offset, size, (-1,) if size else (0,))]
    dtype: Optional[np.dtype] = datatypes.DTYPES[number] or np.dtype(np.uint16)
    return np.frombuffer(data, dtype, size // dtype.itemsize, offset).tolist()


def _completed(data: bytes) -> Dict[str, Any]:
    """Returns the whole configuration of COMPLETED."""
    reader = Reader(data, HEADER_SIZE)
    reader.take(I64)
    reader.u32()
    reader.text()
    for _ in range(2):
        for _ in range(reader.u32()):
            reader.text()
            reader.text()
            reader.u32()
            for _ in range(reader.u32()):
                reader.take(I64)
    return json.loads(reader.text())


__all__ = ["LocalModel", "ModelFailed"]
