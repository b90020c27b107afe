"""The server's side of the protocol, in Python, for tests and measurements."""

import atexit
import json
import mmap
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MAIN = os.path.abspath(os.path.join(HERE, "..", "..", "main", "python"))
if MAIN not in sys.path:
    sys.path.insert(0, MAIN)

from nereid_python import bytestensor, datatypes, protocol  # noqa: E402
from nereid_python.protocol import (  # noqa: E402
    CALL_HEAD, CALL_RESULT, F64, HEADER, HEADER_SIZE, I64, REQUEST, RESULT, SHAPES, TENSOR, U32, U64, Reader,
)

SLOT = struct.Struct("<IIQ")
PYTHON = os.environ.get("NEREID_TEST_PYTHON", sys.executable)


class Response:
    """One response to a request, or its end."""

    def __init__(self, outputs=None, error=None, code=None, final=False, parameters=None, order=(), trace=""):
        self.outputs = outputs
        self.error = error
        self.code = code
        self.final = final
        self.parameters = parameters or {}
        self.order = list(order)
        self.trace = trace

    def __repr__(self):
        return "Response(%r, %r, %r, final=%r)" % (self.outputs, self.error, self.code, self.final)


class Memory:
    """A segment of shared memory."""

    def __init__(self, ident, size):
        self.ident = ident
        self.size = size
        self.descriptor = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, size)
        self.mapping = mmap.mmap(self.descriptor, size)
        self.path = "/proc/%d/fd/%d" % (os.getpid(), self.descriptor)

    def close(self):
        os.close(self.descriptor)


class ProcessEnded(Exception):
    pass


class LoadError(Exception):
    def __init__(self, text, trace, hint=""):
        super().__init__(text)
        self.trace = trace
        self.hint = hint


class Peer:
    """Starts the process of one instance, and plays the server."""

    def __init__(self, directory=None, file=None, name=None, version="1", config=None, inputs=(), outputs=(), decoupled=False,
                 inline=4096, settings=None, environment=None, memory_limit=1 << 30, module="%s.model", on_call=None,
                 window=0, arguments=(), python=PYTHON):
        self.directory = directory
        self.name = name or os.path.basename(directory or "model")
        self.instance = self.name + "_0"
        self.version = version
        self.config = config if config is not None else {}
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.decoupled = decoupled
        self.inline = inline
        self.window = window
        self.on_call = on_call
        self.memory_limit = memory_limit
        self.memory_used = 0
        self.segments = {}
        self.incoming_free = []
        self.held = {}
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.done = {}
        self.executed = {}
        self.responses = {}
        self.ready = {}
        self.logs = []
        self.notices = []
        self.calls = []
        self.cancelled_calls = []
        self.dropped_calls = []
        self.call_credits = []
        self.controls = []
        self.control_results = {}
        self.metrics = {}
        self.families = {}
        self.released = []
        self.places = []
        self.segments_returned = []
        self.ids = 0
        self.handles = 0
        self.ended = False
        self.hello = None
        self.auto_release = True
        self.stop_reading = False
        self.temporary = tempfile.mkdtemp(prefix="nereid-python-test-")
        atexit.register(shutil.rmtree, self.temporary, True)
        path = os.path.join(self.temporary, "s")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(2)
        self.stdout = open(os.path.join(self.temporary, "out"), "w+b")
        self.stderr = open(os.path.join(self.temporary, "err"), "w+b")
        command = [python, os.path.join(MAIN, "nereid_python", "__main__.py"),
                   "--channel=" + path, "--life=" + path, "--token=t", "triton_python_backend_stub", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.stdout, stderr=self.stderr,
                                        env=environment, cwd=self.temporary)
        listener.settimeout(20)
        self.socket, _ = listener.accept()
        self.first = self.receive_exactly(HEADER_SIZE)
        length = HEADER.unpack(self.first)[0]
        self.on_hello(self.receive_exactly(length - HEADER_SIZE))
        self.life = None
        if not self.hello["problem"]:
            self.life, _ = listener.accept()
        listener.close()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        version_directory = os.path.join(directory or self.temporary, version)
        self.settings = {
            "model_file": file or os.path.join(version_directory, "model.py"),
            "version_directory": version_directory,
            "model_name": self.name,
            "model_version": version,
            "instance_name": self.instance,
            "module_name": module % version if "%s" in module else module,
            "search_path": "\n".join([version_directory, os.path.dirname(version_directory)]),
            "inline_limit": str(inline),
            "pycache_prefix": os.path.join(self.temporary, "pycache"),
        }
        self.settings.update(settings or {})

    # Frames

    def receive_exactly(self, size):
        data = bytearray(size)
        view = memoryview(data)
        have = 0
        while have < size:
            count = self.socket.recv_into(view[have:])
            if not count:
                raise ProcessEnded()
            have += count
        return bytes(data)

    def send(self, data):
        assert len(data) % 8 == 0
        self.socket.sendall(data)

    def read(self):
        try:
            while not self.stop_reading:
                head = self.receive_exactly(HEADER_SIZE)
                length, kind, flags, count, ident = HEADER.unpack(head)
                assert length % 8 == 0
                body = self.receive_exactly(length - HEADER_SIZE)
                with self.lock:
                    self.dispatch(head + body, kind, flags, count, ident)
                    self.changed.notify_all()
        except (ProcessEnded, OSError):
            with self.lock:
                self.ended = True
                self.changed.notify_all()

    def wait(self, condition, timeout=20):
        with self.lock:
            if not self.changed.wait_for(lambda: condition() or self.ended, timeout):
                raise TimeoutError()
            if not condition():
                raise ProcessEnded(self.process.wait(10))

    def on_hello(self, body):
        reader = Reader(body, 0)
        major, minor, _, pid = reader.take(struct.Struct("<HHIQ"))
        self.hello = {"major": major, "minor": minor, "pid": pid}
        for key in ("python", "executable", "prefix", "numpy", "problem", "token"):
            self.hello[key] = reader.text()

    def dispatch(self, data, kind, flags, count, ident):
        reader = Reader(data, HEADER_SIZE)
        if kind == protocol.DONE:
            self.done[ident] = (count, None) if not flags else (0, (reader.text(), reader.text(), reader.text()))
        elif kind == protocol.COMPLETED:
            self.done[ident] = (0, None, self.completed(reader))
        elif kind == protocol.EXECUTED:
            self.on_executed(reader, flags, count, ident)
        elif kind == protocol.RESPONSE:
            self.responses.setdefault(ident, []).append(self.result(reader))
        elif kind == protocol.FAILED:
            handles = [reader.take(U64)[0] for _ in range(count)]
            code, text, trace = reader.u32(), reader.text(), reader.text()
            for handle in handles:
                self.responses.setdefault(handle, []).append(Response(error=text, code=code, final=True, trace=trace))
        elif kind == protocol.READY:
            self.ready[ident] = (flags, reader.text())
        elif kind == protocol.RELEASED:
            for _ in range(count):
                segment, _, offset = reader.take(SLOT)
                self.released.append((segment, offset))
                if self.held.pop((segment, offset), None) is not None:
                    self.incoming_free.append(segment)
        elif kind == protocol.SEGMENT_WANTED:
            self.on_segment_wanted(ident)
        elif kind == protocol.SEGMENT_RETURNED:
            segment = self.segments.pop(ident)
            self.memory_used -= segment.size
            segment.close()
            self.segments_returned.append(ident)
        elif kind == protocol.CALL:
            call = self.call(reader, flags, ident)
            self.calls.append(call)
            if self.on_call is not None:
                threading.Thread(target=self.on_call, args=(self, call), daemon=True).start()
        elif kind == protocol.CALL_CREDIT:
            self.call_credits.append((ident, count))
        elif kind == protocol.CALL_CANCEL:
            self.cancelled_calls.append(ident)
        elif kind == protocol.CALL_DROP:
            self.dropped_calls.append(ident)
        elif kind == protocol.CONTROL:
            self.on_control(reader, flags, ident)
        elif kind == protocol.METRIC:
            self.on_metric(reader, flags, ident)
        elif kind == protocol.LOG:
            self.logs.append((flags, reader.text(), ident, reader.text()))
        elif kind == protocol.NOTICE:
            self.notices.append((ident, reader.text()))
        else:
            raise AssertionError("frame %d" % kind)

    # Tensors

    def tensor(self, reader, named, table=None):
        index, number, rank, segment, offset, size = reader.take(TENSOR)
        shape = reader.take(SHAPES[rank])
        if segment == 0:
            assert offset % 8 == 0 and offset >= reader.position
            data = reader.data[offset:offset + size]
            reader.position = offset + size
        else:
            memory = self.segments[segment]
            self.places.append((segment, offset, size))
            data = memory.mapping[offset:offset + size]
            if memory.outgoing and self.auto_release:
                self.send(protocol.frame(protocol.RELEASE, 0, 1, 0, SLOT.pack(segment, 0, offset)))
        if named:
            name = reader.data[reader.position:reader.position + index].decode()
            reader.position += index
        else:
            name = table[index]
        if number == 13:
            array = bytestensor.decode(data, 0, size, shape)
        elif number == 14:
            array = np.frombuffer(data, np.uint16).reshape(shape)
        else:
            array = np.frombuffer(data, datatypes.DTYPES[number]).reshape(shape)
        return name, array

    def parameters(self, reader, count):
        values = {}
        for _ in range(count):
            name = reader.text()
            kind = reader.data[reader.position]
            reader.position += 1
            if kind == 1:
                values[name] = bool(reader.data[reader.position])
                reader.position += 1
            elif kind == 2:
                values[name] = reader.take(I64)[0]
            else:
                values[name] = reader.text()
        return values

    def result(self, reader):
        kind, flags, outputs, parameters, code = reader.take(RESULT)
        final = bool(flags & 1)
        if kind == protocol.RESULT_NONE:
            return None
        if kind == protocol.RESULT_RESCHEDULE:
            return "rescheduled"
        if kind == protocol.RESULT_FINAL:
            return Response(final=True)
        if kind == protocol.RESULT_ERROR:
            return Response(error=reader.text(), code=code, final=final)
        tensors = [self.tensor(reader, False, self.outputs) for _ in range(outputs)]
        return Response(dict(tensors), final=final, parameters=self.parameters(reader, parameters),
                        order=[name for name, _ in tensors])

    def on_executed(self, reader, flags, count, ident):
        handles = self.executed[ident][0]
        assert len(handles) == count
        if flags & protocol.FLAG_FAILED:
            code, text, trace = reader.u32(), reader.text(), reader.text()
            for handle in handles:
                if not any(r.final for r in self.responses.get(handle, ())):
                    self.responses.setdefault(handle, []).append(
                        Response(error=text, code=code, final=True, trace=trace))
        else:
            for handle in handles:
                result = self.result(reader)
                if result == "rescheduled":
                    self.responses.setdefault(handle, []).append(result)
                elif result is not None:
                    self.responses.setdefault(handle, []).append(result)
        self.executed[ident] = (handles, True, flags)

    def encode(self, parts, position, index, array, name=None, number=None):
        shape = array.shape
        number = number or datatypes.number_of(array.dtype)
        data = bytestensor.encode(array) if number == 13 else np.ascontiguousarray(array).tobytes()
        size = len(data)
        encoded = b"" if name is None else name.encode()
        if name is not None:
            index = len(encoded)
        if size > self.inline:
            segment = self.incoming(size)
            segment.mapping[:size] = data
            part = TENSOR.pack(index, number, len(shape), segment.ident, 0, size) + SHAPES[len(shape)].pack(*shape)
            parts.append(part + encoded)
            return position + len(part) + len(encoded)
        position += TENSOR.size + 8 * len(shape)
        padding = -position & 7
        position += padding
        parts.append(TENSOR.pack(index, number, len(shape), 0, position, size) + SHAPES[len(shape)].pack(*shape))
        parts.append(b"\0" * padding)
        parts.append(data)
        parts.append(encoded)
        return position + size + len(encoded)

    def incoming(self, size):
        """Returns a segment for one incoming tensor; the tests use one slot at offset 0 of each."""
        with self.lock:
            for ident in self.incoming_free:
                segment = self.segments[ident]
                if segment.size >= size:
                    self.incoming_free.remove(ident)
                    self.held[ident, 0] = True
                    return segment
            segment = self.add_segment(max(size, 1 << 20), False, 0)
            self.held[segment.ident, 0] = True
            return segment

    def add_segment(self, size, outgoing, slot):
        segment = Memory(len(self.segments) + 1000 * (1 + outgoing) + len(self.segments_returned), size)
        segment.outgoing = outgoing
        self.memory_used += size
        self.segments[segment.ident] = segment
        body = struct.pack("<QQ", size, slot) + protocol.text(segment.path)
        self.send(protocol.frame(protocol.SEGMENT, 1 if outgoing else 0, 0, segment.ident, body))
        return segment

    def on_segment_wanted(self, slot):
        size = max(slot, 1 << 20)
        if self.memory_used + size > self.memory_limit:
            self.send(protocol.frame(protocol.SEGMENT_REFUSED, 0, 0, slot))
        else:
            self.add_segment(size, True, slot)

    # Life cycle

    def next_id(self):
        self.ids += 1
        return self.ids

    def ask(self, kind, body=b"", timeout=20):
        ident = self.next_id()
        self.send(protocol.frame(kind, 0, 0, ident, body))
        self.wait(lambda: ident in self.done, timeout)
        result = self.done.pop(ident)
        if result[1] is not None:
            raise LoadError(*result[1])
        return result[2] if len(result) > 2 else result[0]

    def open(self):
        body = U32.pack(len(self.settings))
        for key, value in self.settings.items():
            body += protocol.text(key) + protocol.text(value)
        return self.ask(protocol.OPEN, body)

    def complete(self, config=None):
        return self.ask(protocol.COMPLETE, protocol.text(json.dumps(config if config is not None else self.config)))

    def completed(self, reader):
        result = {"max_batch_size": reader.take(I64)[0], "decoupled": reader.u32(), "scheduling": reader.text()}
        for kind in ("input", "output"):
            tensors = []
            for _ in range(reader.u32()):
                tensor = {"name": reader.text(), "data_type": reader.text(), "optional": bool(reader.u32())}
                tensor["dims"] = [reader.take(I64)[0] for _ in range(reader.u32())]
                tensors.append(tensor)
            result[kind] = tensors
        result["json"] = json.loads(reader.text())
        return result

    def arguments(self):
        return {
            "model_config": json.dumps(self.config), "model_instance_kind": "CPU", "model_instance_name": self.instance,
            "model_instance_device_id": "0", "model_repository": os.path.dirname(self.settings["version_directory"]),
            "model_version": self.version, "model_name": self.name,
        }

    def initialize(self, timeout=20):
        arguments = self.arguments()
        body = U32.pack(1 if self.decoupled else 0) + U32.pack(len(arguments))
        for key, value in arguments.items():
            body += protocol.text(key) + protocol.text(value)
        for names in (self.inputs, self.outputs):
            body += U32.pack(len(names)) + b"".join(map(protocol.text, names))
        return self.ask(protocol.INITIALIZE, body, timeout)

    def load(self):
        self.open()
        return self.initialize()

    def finalize(self):
        self.ask(protocol.FINALIZE)
        return self.process.wait(10)

    def close(self):
        if self.process.poll() is None:
            try:
                self.finalize()
            except Exception:
                self.process.kill()
                self.process.wait()
        self.socket.close()
        if self.life is not None:
            self.life.close()
        for segment in self.segments.values():
            segment.close()
        self.stdout.close()
        self.stderr.close()
        shutil.rmtree(self.temporary, True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def output(self, stream="stdout"):
        file = getattr(self, stream)
        file.flush()
        with open(file.name, "rb") as copy:
            return copy.read().decode("utf-8", "replace")

    # Executions

    def encode_execute(self, execution, requests, handles):
        parts = [b""]
        position = HEADER_SIZE
        for request, handle in zip(requests, handles):
            inputs = request["inputs"]
            wanted = [self.outputs.index(name) for name in request.get("outputs", ())]
            ident = request.get("id", "").encode()
            correlation = request.get("correlation", 0)
            text = correlation.encode() if isinstance(correlation, str) else b""
            parameters = request.get("parameters", "").encode()
            trace = request.get("trace", "").encode()
            head = REQUEST.pack(
                handle, 0 if text else correlation, request.get("timeout", 0), request.get("window", self.window),
                request.get("flags", 0), len(inputs), len(wanted), 0, len(ident), len(text), len(parameters), len(trace))
            head += b"".join(struct.pack("<H", index) for index in wanted) + ident + text + parameters + trace
            parts.append(head)
            position += len(head)
            for name, array in inputs.items():
                number = None
                if isinstance(array, tuple):
                    array, number = array
                position = self.encode(parts, position, self.inputs.index(name), array, number=number)
        parts.append(b"\0" * (-position & 7))
        position += -position & 7
        parts[0] = HEADER.pack(position, protocol.EXECUTE, 0, len(requests), execution)
        return b"".join(parts)

    def start(self, requests):
        """Sends an execution, and returns its number and those of the requests."""
        with self.lock:
            execution = self.next_id()
            handles = []
            for _ in requests:
                self.handles += 1
                handles.append(self.handles)
            self.executed[execution] = (handles, False, 0)
            data = self.encode_execute(execution, requests, handles)
        self.send(data)
        return execution, handles

    def execute(self, requests, timeout=20):
        """Executes, waits for the final response of each request, and returns the responses of each."""
        if isinstance(requests, dict):
            requests = [requests]
        requests = [request if "inputs" in request else {"inputs": request} for request in requests]
        execution, handles = self.start(requests)
        self.wait(lambda: self.executed[execution][1], timeout)
        self.wait_final(handles, timeout)
        return [self.responses.pop(handle) for handle in handles]

    def wait_final(self, handles, timeout=20):
        self.wait(lambda: all(any(r == "rescheduled" or r.final for r in self.responses.get(handle, ()))
                              for handle in handles), timeout)

    def one(self, inputs, **more):
        """Executes one request, and returns its only response."""
        responses = self.execute([dict(inputs=inputs, **more)])[0]
        assert len(responses) == 1, responses
        return responses[0]

    def check_ready(self):
        ident = self.next_id()
        self.send(protocol.frame(protocol.CHECK_READY, 0, 0, ident))
        self.wait(lambda: ident in self.ready)
        return self.ready.pop(ident)

    def cancel(self, handle):
        self.send(protocol.frame(protocol.CANCEL, 0, 0, handle))

    def grant(self, handle, count):
        self.send(protocol.frame(protocol.CREDIT, 0, count, handle))

    # Calls

    def call(self, reader, flags, ident):
        (execution, correlation, timeout, version, sequence, window, device, inputs, outputs, parameters, memory, textual,
         name, id_size, text_size, trace) = reader.take(CALL_HEAD)

        def take(size):
            start = reader.position
            reader.position += size
            return reader.data[start:start + size].decode()

        call = {"id": ident, "decoupled": bool(flags & 1), "execution": execution, "timeout": timeout, "version": version,
                "flags": sequence, "window": window, "memory": memory, "model": take(name), "request_id": take(id_size)}
        text = take(text_size)
        call["correlation"] = text if textual else correlation
        call["trace"] = take(trace)
        call["outputs"] = [reader.text() for _ in range(outputs)]
        call["parameters"] = self.parameters(reader, parameters)
        call["inputs"] = dict(self.tensor(reader, True) for _ in range(inputs))
        return call

    def respond(self, call, outputs=None, error=None, code=1, final=True, refused=False, parameters=""):
        flags = (protocol.CALL_FINAL if final else 0) | (protocol.CALL_HAS_RESPONSE if outputs is not None else 0)
        if error is not None:
            flags |= protocol.CALL_ERROR | (protocol.CALL_REFUSED if refused else 0)
        text = (error or "").encode()
        encoded = parameters.encode()
        with self.lock:
            parts = [b"", CALL_RESULT.pack(0, code, len(outputs or ()), 0, len(text), len(encoded)), text, encoded]
            position = HEADER_SIZE + sum(map(len, parts))
            for name, array in (outputs or {}).items():
                position = self.encode(parts, position, 0, array, name)
            parts.append(b"\0" * (-position & 7))
            position += -position & 7
            parts[0] = HEADER.pack(position, protocol.CALL_RESPONSE, flags, 0, call["id"])
            self.send(b"".join(parts))

    def reply(self, ident, number=0.0, error=None):
        self.send(protocol.frame(protocol.REPLY, 0 if error is None else 1, 0, ident,
                                 F64.pack(number) + protocol.text(error or "")))

    def on_control(self, reader, operation, ident):
        name = reader.text()
        if operation == protocol.CONTROL_LOAD:
            config = reader.text()
            files = {reader.text(): reader.bytes() for _ in range(reader.u32())}
            self.controls.append(("load", name, config, files))
        elif operation == protocol.CONTROL_UNLOAD:
            self.controls.append(("unload", name, bool(reader.u32())))
        else:
            self.controls.append(("ready", name, reader.text()))
        result = self.control_results.get(name, 1.0)
        if isinstance(result, str):
            self.reply(ident, error=result)
        else:
            self.reply(ident, result)

    def on_metric(self, reader, operation, ident):
        if operation == protocol.METRIC_FAMILY:
            kind, name, description = reader.u32(), reader.text(), reader.text()
            if any(f["name"] == name and f["kind"] != kind for f in self.families.values()):
                self.reply(ident, error="Family name already exists with different type")
                return
            self.families[ident] = {"name": name, "description": description, "kind": kind}
            self.reply(ident)
        elif operation == protocol.METRIC_FAMILY_DROP:
            self.families.pop(ident)
        elif operation == protocol.METRIC_CREATE:
            family = reader.take(U64)[0]
            labels = reader.map()
            buckets = [reader.take(F64)[0] for _ in range(reader.u32())]
            if buckets != sorted(set(buckets)):
                self.reply(ident, error="Bucket boundaries must be strictly ascending.")
                return
            self.metrics[ident] = {"family": family, "labels": labels, "buckets": buckets, "value": 0.0, "seen": []}
            self.reply(ident)
        elif operation == protocol.METRIC_DROP:
            self.metrics.pop(ident)
        elif operation == protocol.METRIC_VALUE:
            metric = self.metrics[reader.take(U64)[0]]
            same = [m["value"] for m in self.metrics.values()
                    if m["family"] == metric["family"] and m["labels"] == metric["labels"]]
            self.reply(ident, sum(same))
        else:
            value = reader.take(F64)[0]
            metric = self.metrics[ident]
            if operation == protocol.METRIC_INCREMENT:
                metric["value"] += value
            elif operation == protocol.METRIC_SET:
                metric["value"] = value
            else:
                metric["seen"].append(value)


def texts(*values):
    """Returns a BYTES tensor."""
    return np.array([v if isinstance(v, bytes) else v.encode() for v in values], dtype=np.object_)
