"""Measures the loop of the process against the smallest echo on the same kind of socket.

``python3 measure.py`` prints microseconds for each exchange, in turns, and of these the processor time of the process
that answers.
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

import peer
from nereid_python import protocol
from nereid_python.protocol import HEADER, HEADER_SIZE

ECHO = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.connect(sys.argv[1])
while True:
    data = s.recv(1 << 16)
    if not data:
        break
    s.sendall(data)
"""

MODELS = {
    "identity": """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "IN").as_numpy())])
                for r in requests]
""",
    "call": """
import time
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        n = int(pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy().reshape(-1)[0])
        tensor = pb_utils.Tensor("X", np.zeros(256, np.float32))
        start = time.perf_counter()
        for _ in range(n):
            pb_utils.InferenceRequest(model_name="m", requested_output_names=["Y"], inputs=[tensor]).exec()
        used = time.perf_counter() - start
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([used], np.float32))])]
""",
    "stream": """
import time
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            n = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0])
            sender = request.get_response_sender()
            for i in range(n):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([i], np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
""",
}


def start(name, inline=16384, decoupled=False, window=0):
    directory = tempfile.mkdtemp(prefix="nereid-python-measure-")
    os.makedirs(directory + "/1")
    with open(directory + "/1/model.py", "w") as file:
        file.write(MODELS[name])
    process = peer.Peer(directory, name=name, inputs=["IN"], outputs=["OUT"], inline=inline, decoupled=decoupled,
                        window=window)
    process.load()
    return process


def echo():
    directory = tempfile.mkdtemp(prefix="nereid-python-measure-")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(directory + "/s")
    listener.listen(1)
    child = subprocess.Popen([sys.executable, "-c", ECHO, directory + "/s"])
    connection, _ = listener.accept()
    return connection, child


def exchange(connection, data, expected):
    connection.sendall(data)
    have = 0
    while have < expected:
        have += len(connection.recv(1 << 16))
    return have


def cpu(process):
    """Returns the nanoseconds of processor time of a process."""
    total = 0
    for task in os.listdir("/proc/%d/task" % process.pid):
        with open("/proc/%d/task/%s/schedstat" % (process.pid, task)) as file:
            total += int(file.read().split()[0])
    return total


def loop(function, process, seconds=1.0):
    """Returns microseconds of one call, and those of the process that answers it."""
    count = 0
    before = cpu(process)
    started = time.perf_counter()
    while True:
        for _ in range(20):
            function()
        count += 20
        used = time.perf_counter() - started
        if used > seconds:
            return "%7.1f (%5.1f)" % (used / count * 1e6, (cpu(process) - before) / count / 1e3)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    connection, child = echo()
    identity = start("identity")

    def frame(batch, size):
        requests = [{"inputs": {"IN": np.zeros((1, size // 4), np.float32)}} for _ in range(batch)]
        execution, handles = identity.next_id(), list(range(10 ** 6, 10 ** 6 + batch))
        return identity.encode_execute(execution, requests, handles), execution, handles

    pause(identity)
    one, *_ = frame(1, 1024)
    eight, *_ = frame(8, 1024)
    small = identity.socket
    lengths = {}
    for name, data in (("one", one), ("eight", eight)):
        small.sendall(data)
        first = small.recv(1 << 20)
        lengths[name] = HEADER.unpack_from(first)[0]
    results = {"echo 1 KB": [], "identity 1 KB": [], "identity 1 KB, batch of 8": []}
    for _ in range(rounds):
        results["echo 1 KB"].append(loop(lambda: exchange(connection, one, len(one)), child))
        results["identity 1 KB"].append(loop(lambda: exchange(small, one, lengths["one"]), identity.process))
        results["identity 1 KB, batch of 8"].append(loop(lambda: exchange(small, eight, lengths["eight"]), identity.process))
    for name, values in results.items():
        print("%-28s %s" % (name, " ".join(values)))
    child.kill()
    identity.process.kill()
    large(rounds)
    sizes(rounds)
    calls(rounds)
    stream(rounds)


def pause(process):
    """Ends the thread of the peer that reads: it stops at a frame of which it asks nothing more."""
    process.stop_reading = True
    process.send(protocol.frame(protocol.CHECK_READY, 0, 0, 1))
    process.reader.join(10)


def large(rounds):
    """1 MB through shared memory: one incoming and one outgoing slot."""
    process = start("identity")
    size = 1 << 20
    pause(process)
    segment = peer.Memory(1, size)
    process.send(protocol.frame(protocol.SEGMENT, 0, 0, 1, struct.pack("<QQ", size, 0) + protocol.text(segment.path)))
    outgoing = peer.Memory(2, size)
    process.send(protocol.frame(protocol.SEGMENT, 1, 0, 2, struct.pack("<QQ", size, size) + protocol.text(outgoing.path)))
    head = peer.REQUEST.pack(5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    head += peer.TENSOR.pack(0, 11, 2, 1, 0, size) + struct.pack("<qq", 1, size // 4)
    data = protocol.frame(protocol.EXECUTE, 0, 1, 7, head)
    release = protocol.frame(protocol.RELEASE, 0, 1, 0, peer.SLOT.pack(2, 0, 0))
    connection = process.socket
    zero = b"\1" * size
    sink = np.empty(size, np.uint8)

    def once():
        segment.mapping[:] = zero
        connection.sendall(data)
        have = connection.recv(1 << 16)
        np.copyto(sink, np.frombuffer(outgoing.mapping, np.uint8))
        connection.sendall(release)
        return have

    echoed, child = echo()

    def smallest():
        segment.mapping[:] = zero
        exchange(echoed, data, len(data))
        np.copyto(sink, np.frombuffer(segment.mapping, np.uint8))

    for name, function, answering in (
        ("echo, 1 MB in shared memory", smallest, child), ("identity 1 MB", once, process.process)
    ):
        print("%-28s %s" % (name, " ".join(loop(function, answering) for _ in range(rounds))))
    child.kill()
    process.process.kill()


def sizes(rounds):
    """Tensors inside of frames and in shared memory, by size."""
    for size in (4096, 16384, 65536, 262144):
        for inline in (True, False):
            process = start("identity", inline=1 << 30 if inline else 0)
            pause(process)
            connection = process.socket
            segment, outgoing = peer.Memory(1, size), peer.Memory(2, size)
            describe = struct.pack("<QQ", size, size)
            for flag, memory in ((0, segment), (1, outgoing)):
                process.send(protocol.frame(protocol.SEGMENT, flag, 0, memory.ident, describe + protocol.text(memory.path)))
            content = b"\1" * size
            head = peer.REQUEST.pack(5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
            shape = struct.pack("<qq", 1, size // 4)
            place = HEADER_SIZE + len(head) + peer.TENSOR.size + len(shape)
            place += -place & 7
            release = protocol.frame(protocol.RELEASE, 0, 1, 0, peer.SLOT.pack(2, 0, 0))
            shared = protocol.frame(protocol.EXECUTE, 0, 1, 7, head + peer.TENSOR.pack(0, 11, 2, 1, 0, size) + shape)
            sink = np.empty(size, np.uint8)

            def once():
                if inline:
                    body = head + peer.TENSOR.pack(0, 11, 2, 0, place, size) + shape
                    body += b"\0" * (place - HEADER_SIZE - len(body)) + content
                    connection.sendall(protocol.frame(protocol.EXECUTE, 0, 1, 7, body))
                    have = 0
                    while have < size:
                        have += len(connection.recv(1 << 18))
                else:
                    segment.mapping[:] = content
                    connection.sendall(shared)
                    connection.recv(1 << 16)
                    np.copyto(sink, np.frombuffer(outgoing.mapping, np.uint8))
                    connection.sendall(release)

            name = "%d bytes, %s" % (size, "in the frame" if inline else "shared")
            print("%-28s %s" % (name, " ".join(loop(once, process.process, 0.5) for _ in range(rounds))))
            process.process.kill()


def calls(rounds):
    """Calls of a model that the peer answers at once."""
    process = start("call")
    pause(process)
    connection = process.socket
    body = peer.CALL_RESULT.pack(0, 0, 1, 0, 0, 0)
    position = HEADER_SIZE + len(body) + peer.TENSOR.size + 8
    body += peer.TENSOR.pack(1, 11, 1, 0, position + (-position & 7), 1024) + struct.pack("<q", 256)
    body += b"\0" * (-position & 7) + b"\0" * 1024 + b"Y"
    values = []
    for _ in range(rounds):
        count = 5000
        data = process.encode_execute(1, [{"inputs": {"IN": np.array([[count]], np.float32)}}], [1])
        connection.sendall(data)
        for _ in range(count):
            ident = HEADER.unpack_from(connection.recv(1 << 16))[4]
            connection.sendall(protocol.frame(protocol.CALL_RESPONSE, 3, 0, ident, body))
        result = connection.recv(1 << 16)
        values.append(struct.unpack_from("<f", result, len(result) - 8 if len(result) % 8 == 0 else 0)[0] / count * 1e6)
        values[-1] = max(values[-1], struct.unpack_from("<f", result, len(result) - 4)[0] / count * 1e6)
    print("%-28s %s" % ("call, 1 KB both ways", " ".join("%7.1f" % value for value in values)))
    process.process.kill()


def stream(rounds):
    """Streamed responses; the peer grants credit for each half of the window."""
    process = start("stream", decoupled=True, window=64)
    pause(process)
    connection = process.socket
    values = []
    for _ in range(rounds):
        count = 50000
        data = process.encode_execute(1, [{"inputs": {"IN": np.array([[count]], np.float32)}, "window": 64}], [1])
        started = time.perf_counter()
        connection.sendall(data)
        seen = granted = 0
        ended = False
        rest = b""
        while not ended:
            rest += connection.recv(1 << 16)
            position = 0
            while len(rest) - position >= HEADER_SIZE:
                length, kind = HEADER.unpack_from(rest, position)[:2]
                if len(rest) - position < length:
                    break
                position += length
                if kind == protocol.RESPONSE:
                    seen += 1
                elif kind == protocol.EXECUTED:
                    ended = True
            rest = rest[position:]
            if seen - granted >= 32:
                connection.sendall(protocol.frame(protocol.CREDIT, 0, seen - granted, 1))
                granted = seen
        values.append(count / (time.perf_counter() - started))
    print("%-28s %s" % ("streamed responses a second", " ".join("%7.0f" % value for value in values)))
    process.process.kill()


if __name__ == "__main__":
    main()
