"""The process of a model, through its channel."""

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import numpy as np

import peer
from c_python_backend_utils import InferenceResponse
from nereid_python import forks, protocol
from peer import LoadError, Peer, ProcessEnded, Response, texts

HEAD = """
import json, os, sys, threading, time, gc, asyncio, logging
import numpy as np
import triton_python_backend_utils as pb_utils

def text(value):
    return pb_utils.Tensor("OUT", np.array([value if isinstance(value, bytes) else str(value).encode()], dtype=np.object_))

def answer(value):
    return pb_utils.InferenceResponse([text(value)])

def mode(request):
    return pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy().reshape(-1)[0].decode()

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

"""


class ProcessTest(unittest.TestCase):
    """A test with models of its own."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="nereid-python-models-")
        self.addCleanup(shutil.rmtree, self.directory, True)

    def peer(self, code, files=None, head=HEAD, **more):
        directory = os.path.join(self.directory, more.pop("directory_name", "m"))
        os.makedirs(os.path.join(directory, "1"), exist_ok=True)
        for name, content in dict(files or {}, **{"1/model.py": head + code}).items():
            os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
            with open(os.path.join(directory, name), "w") as file:
                file.write(content)
        more.setdefault("inputs", ["MODE", "IN"])
        more.setdefault("outputs", ["OUT", "OTHER"])
        process = Peer(directory, **more)
        self.addCleanup(process.close)
        return process

    def loaded(self, code, **more):
        process = self.peer(code, **more)
        process.load()
        return process

    def out(self, process, value, **more):
        response = process.one({"MODE": texts(value)}, **more)
        self.assertIsNone(response.error)
        return response.outputs["OUT"].reshape(-1)[0].decode()

    def eventually(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "condition")
            time.sleep(0.01)


class LifeCycleTest(ProcessTest):
    def test_hello_names_the_python(self):
        process = self.loaded("class TritonPythonModel:\n    pass\n")
        self.assertEqual("%d.%d.%d" % sys.version_info[:3], process.hello["python"])
        self.assertEqual((1, process.process.pid), (process.hello["major"], process.hello["pid"]))
        self.assertEqual("t", process.hello["token"])
        self.assertTrue(process.hello["numpy"])

    def test_the_kernel_chooses_it_before_the_server(self):
        def score(process):
            with open("/proc/%s/oom_score_adj" % process) as file:
                return int(file.read())
        process = self.loaded("class TritonPythonModel:\n    pass\n")
        self.assertEqual(min(1000, score("self") + 500), score(process.process.pid))

    def wrapper(self, command):
        path = os.path.join(self.directory, "python")
        with open(path, "w") as file:
            file.write("#!/bin/sh\nexec %s \"$@\"\n" % command)
        os.chmod(path, 0o755)
        return path

    def test_hello_says_that_numpy_is_missing(self):
        process = self.peer("", python=self.wrapper(sys.executable + " -S -E"))
        self.assertIn("cannot import NumPy, which the Python backend needs", process.hello["problem"])
        self.assertIn(sys.prefix, process.hello["problem"])
        self.assertEqual(3, process.process.wait(10))

    def test_hello_says_that_numpy_cannot_be_used(self):
        path = os.path.join(self.directory, "numpy")
        os.mkdir(path)
        with open(os.path.join(path, "__init__.py"), "w") as file:
            file.write("raise RuntimeError('NumPy was built with baseline optimizations')\n")
        process = self.peer("", environment=dict(os.environ, PYTHONPATH=self.directory))
        self.assertIn("NumPy was built with baseline optimizations", process.hello["problem"])
        self.assertEqual(3, process.process.wait(10))

    def test_python_without_ctypes(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        return [answer(sys.modules["ctypes"]) for _ in requests]
""", head="import sys\nassert 'nereid_python.dlpack' not in sys.modules\n" + HEAD,
            environment=dict(os.environ, PYTHONPATH=self.without("_ctypes")))
        self.assertEqual("None", self.out(process, ""))

    def without(self, module):
        with open(os.path.join(self.directory, "sitecustomize.py"), "w") as file:
            file.write("import sys\nsys.modules[%r] = sys.modules['ctypes'] = None\n" % module)
        return self.directory

    def test_no_server_to_connect_to(self):
        command = [sys.executable, os.path.join(peer.MAIN, "nereid_python", "__main__.py"), "--channel=/nowhere/socket"]
        ended = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        self.assertEqual(2, ended.returncode)
        self.assertIn(b"cannot connect to the server at /nowhere/socket", ended.stderr)

    def test_inherited_socket_and_abstract_name(self):
        main = os.path.join(peer.MAIN, "nereid_python", "__main__.py")
        ours, theirs = socket.socketpair()
        process = subprocess.Popen([sys.executable, main, "--channel=fd:%d" % theirs.fileno()], pass_fds=[theirs.fileno()])
        theirs.close()
        self.assertEqual(protocol.HELLO, ours.recv(4096)[4])
        ours.close()
        self.assertEqual(1, process.wait(10))
        name = "nereid-python-test-%d" % os.getpid()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind("\0" + name)
            listener.listen(1)
            process = subprocess.Popen([sys.executable, main, "--channel=@" + name])
            listener.settimeout(20)
            connection, _ = listener.accept()
        self.assertEqual(protocol.HELLO, connection.recv(4096)[4])
        connection.close()
        self.assertEqual(1, process.wait(10))

    def test_ends_with_the_parent_that_has_asked_for_it(self):
        main = os.path.join(peer.MAIN, "nereid_python", "__main__.py")
        ours, theirs = socket.socketpair()
        code = ("import os, subprocess, sys, time\n"
                "subprocess.Popen([sys.executable, %r, '--channel=fd:%d', '--parent-death-signal=%%d' %% os.getpid()], pass_fds=[%d])\n"
                "time.sleep(60)" % (main, theirs.fileno(), theirs.fileno()))
        parent = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()])
        theirs.close()
        hello = ours.recv(4096)
        pid = peer.Reader(hello, 24).take(peer.U64)[0]
        os.kill(pid, 0)
        time.sleep(0.2)
        parent.kill()
        parent.wait()

        def gone():
            try:
                with open("/proc/%d/stat" % pid) as file:
                    return file.read().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                return True

        self.eventually(gone)
        ours.close()

    def test_interpreter_as_models_expect_it(self):
        process = self.loaded("""
import unittest
class Case(unittest.TestCase):
    def test(self):
        pass
class TritonPythonModel:
    def execute(self, requests):
        import model
        result = unittest.main("model", exit=False)
        seen = [sys.argv, sys.path[0], __name__, __package__, result.result.wasSuccessful(), result.result.testsRun,
                os.path.basename(pb_utils.get_model_dir()), sys.path[-1] == os.path.dirname(pb_utils.__file__),
                sys.path[-3].endswith("/1"), os.path.basename(__file__), threading.current_thread() is threading.main_thread()]
        return [answer(json.dumps(seen)) for _ in requests]
""")
        seen = json.loads(self.out(process, ""))
        self.assertEqual([[""], "", "1.model", "1", True, 1, "1", True, True, "model.py", True], seen)

    def test_imports_siblings_in_all_ways(self):
        process = self.peer("""
import sibling
import shared
from . import sibling as relative
from package.member import NAME
class TritonPythonModel:
    def execute(self, requests):
        return [answer([sibling.NAME, shared.NAME, relative.NAME, NAME]) for _ in requests]
""", files={"1/sibling.py": "NAME = 1\n", "shared.py": "NAME = 2\n", "1/package/member.py": "NAME = 3\n"},
            environment={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"})
        # Byte code of files that may still be edited is not kept.
        settled, future = time.time() - 60, time.time() + 60
        os.utime(os.path.join(self.directory, "m", "1", "sibling.py"), (settled, settled))
        os.utime(os.path.join(self.directory, "m", "shared.py"), (future, future))
        process.load()
        self.assertEqual("[1, 2, 1, 3]", self.out(process, ""))
        left = [name for _, directories, files in os.walk(self.directory) for name in directories + files
                if "pycache" in name or name.endswith(".pyc")]
        self.assertEqual([], left)
        kept = [name for _, _, files in os.walk(process.settings["pycache_prefix"]) for name in files]
        self.assertTrue(any(name.startswith("sibling.") for name in kept), kept)
        self.assertFalse(any(name.startswith("shared.") for name in kept), kept)

    def test_interpreters_that_the_model_starts_leave_the_repository_alone(self):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
        process = self.loaded("""
import helper, multiprocessing, subprocess
class TritonPythonModel:
    def initialize(self, args):
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe()
        child = context.Process(target=helper.work, args=(other,))
        child.start()
        self.seen = pipe.recv()
        child.join()
        subprocess.run([sys.executable, "-c", "import other"], cwd=pb_utils.get_model_dir(), check=True)
    def execute(self, requests):
        return [answer([self.seen, sys.pycache_prefix]) for _ in requests]
""", files={"1/helper.py": "def work(pipe):\n    pipe.send(7)\n", "1/other.py": "NAME = 1\n"}, environment=environment)
        self.assertEqual("[7, None]", self.out(process, ""))
        self.assertEqual(["helper.py", "model.py", "other.py"], sorted(
            name for _, directories, files in os.walk(self.directory) for name in directories + files
            if name not in ("m", "1")))
        kept = [name for _, _, files in os.walk(process.settings["pycache_prefix"]) for name in files]
        self.assertTrue({"helper", "other"} <= {name.split(".")[0] for name in kept}, kept)

    def test_backend_written_in_python(self):
        process = self.peer("""
class TritonPythonModel:
    def execute(self, requests):
        return [answer([__name__, os.path.basename(pb_utils.get_model_dir())]) for _ in requests]
""", module="model")
        process.load()
        self.assertEqual("['model', '1']", self.out(process, ""))

    def test_annotations_of_the_module_at_import(self):
        process = self.loaded("""
def helper(tensor: pb_utils.Tensor, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
    return None
import c_python_backend_utils
class TritonPythonModel:
    kind: c_python_backend_utils.InferenceRequest = None
    def execute(self, requests):
        return [answer("ok") for _ in requests]
""")
        self.assertEqual("ok", self.out(process, ""))

    def test_missing_file(self):
        process = Peer(os.path.join(self.directory, "none"))
        self.addCleanup(process.close)
        with self.assertRaisesRegex(LoadError, "^Failed to preinitialize Python stub: Python model file not found in '/"):
            process.open()

    def test_errors_at_import_name_the_python(self):
        with self.assertRaises(LoadError) as caught:
            self.peer("import no_such_module\n").open()
        self.assertTrue(str(caught.exception).startswith("ModuleNotFoundError: No module named 'no_such_module'\n\nAt:\n  "))
        self.assertNotIn("importlib", str(caught.exception))
        self.assertIn("Traceback", caught.exception.trace)
        self.assertIn(sys.prefix, caught.exception.hint)

        with self.assertRaises(LoadError) as caught:
            self.peer("try:\n    import no_such_module\nexcept ImportError as e:\n    raise RuntimeError('x') from e\n").open()
        self.assertIn(sys.prefix, caught.exception.hint)

    def test_syntax_error_names_file_and_line(self):
        with self.assertRaisesRegex(LoadError, r"^SyntaxError: .*\(model.py, line \d+\)"):
            self.peer("class X\n    pass\n").open()

    def test_exit_at_import_is_an_error(self):
        with self.assertRaisesRegex(LoadError, "^SystemExit: 3"):
            self.peer("sys.exit(3)\n").open()

    def test_end_of_the_process_at_import(self):
        process = self.peer("os._exit(7)\n")
        with self.assertRaises(ProcessEnded):
            process.open()
        self.assertEqual(7, process.process.wait(10))

    def test_initialize_gets_seven_arguments(self):
        process = self.loaded("""
class TritonPythonModel:
    def initialize(self, args):
        self.args = args
    def execute(self, requests):
        return [answer(json.dumps(self.args)) for _ in requests]
""", config={"name": "m"})
        arguments = json.loads(self.out(process, ""))
        self.assertEqual(process.arguments(), arguments)
        self.assertEqual(7, len(arguments))

    def test_error_of_initialize(self):
        with self.assertRaisesRegex(LoadError, "^RuntimeError: cannot\n\nAt:\n  .*model.py.*: initialize\n$"):
            self.peer("class TritonPythonModel:\n    def initialize(self, args):\n        raise RuntimeError('cannot')\n").load()

    def test_finalize_prints_and_ends(self):
        process = self.loaded("""
class TritonPythonModel:
    def finalize(self):
        print("finalized gr\\u00fc\\u00dfe")
        sys.stdout.buffer.write(b"\\xff\\n")
        print("error", file=sys.stderr)
""")
        self.assertEqual(0, process.finalize())
        self.assertIn("finalized gr\u00fc\u00dfe\n", process.output())
        self.assertIn("error\n", process.output("stderr"))

    def test_error_of_finalize_is_logged(self):
        process = self.loaded("class TritonPythonModel:\n    def finalize(self):\n        raise ValueError('late')\n")
        self.assertEqual(0, process.finalize())
        self.eventually(lambda: process.ended)
        level, _, _, message = process.logs[-1]
        self.assertEqual(0, level)
        self.assertTrue(message.startswith("finalize failed: ValueError: late\n\nAt:\n  "), message)
        self.assertIn("\nTraceback (most recent call last):\n", message)

    def test_no_finalize_without_initialize(self):
        process = self.peer("""
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError()
    def finalize(self):
        print("finalized")
""")
        with self.assertRaises(LoadError):
            process.load()
        self.assertEqual(0, process.finalize())
        self.assertEqual("", process.output())

    def test_completion_becomes_the_instance(self):
        process = self.peer("""
state = []
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        state.append(os.getpid())
        config.add_input({"name": "MODE", "data_type": "TYPE_STRING", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_STRING", "dims": [2, 3]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config
    def execute(self, requests):
        return [answer(state == [os.getpid()]) for _ in requests]
""", config={"name": "m", "max_batch_size": 0, "input": [], "output": []})
        self.assertEqual(1, process.open())
        completed = process.complete()
        self.assertEqual((4, 0, "dynamic_batching"),
                         (completed["max_batch_size"], completed["decoupled"], completed["scheduling"]))
        self.assertEqual([{"name": "MODE", "data_type": "TYPE_STRING", "dims": [-1], "optional": False}], completed["input"])
        self.assertEqual([2, 3], completed["output"][0]["dims"])
        self.assertEqual(4, completed["json"]["max_batch_size"])
        self.assertEqual(1, process.initialize())
        self.assertEqual("True", self.out(process, ""))

    def test_flags_of_initialize(self):
        process = self.peer("""
class TritonPythonModel:
    async def execute(self, requests):
        return []
    def is_ready(self):
        return True
""")
        self.assertEqual(0, process.open())
        self.assertEqual(7, process.initialize())

    def test_sigterm_finalizes_after_the_execution(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.5)
        return [answer("done") for _ in requests]
    def finalize(self):
        print("finalized")
""", arguments=["--on-term=finalize"])
        execution, handles = process.start([{"inputs": {"MODE": texts("")}}])
        time.sleep(0.2)
        process.process.send_signal(signal.SIGINT)
        process.process.send_signal(signal.SIGTERM)
        process.wait_final(handles)
        self.assertEqual(b"done", process.responses[handles[0]][0].outputs["OUT"][0])
        self.assertEqual(0, process.process.wait(10))
        self.assertIn("finalized", process.output())

    def test_sigterm_while_idle(self):
        process = self.loaded("class TritonPythonModel:\n    def finalize(self):\n        print('finalized')\n",
                              arguments=["--on-term=finalize"])
        time.sleep(0.1)
        process.process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.process.wait(10))
        self.assertIn("finalized", process.output())

    def test_sigterm_ignored(self):
        process = self.loaded("class TritonPythonModel:\n    def execute(self, r):\n        return [answer(1) for _ in r]\n")
        process.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        self.assertEqual("1", self.out(process, ""))

    def test_event_loop_is_stopped_before_finalize(self):
        process = self.loaded("""
class TritonPythonModel:
    running = 0
    async def execute(self, requests):
        self.running = 1
        for r in requests:
            r.get_response_sender().send(answer(""), FINAL)
        while True:
            await asyncio.sleep(0.01)
            self.seen = time.monotonic()
    def finalize(self):
        now = time.monotonic()
        time.sleep(0.2)
        print("loop", "stopped" if self.seen < now else "runs")
""", decoupled=True)
        self.out(process, "")
        time.sleep(0.1)
        self.assertEqual(0, process.finalize())
        self.assertIn("loop stopped", process.output())

    def test_socket_is_removed(self):
        process = self.loaded("class TritonPythonModel:\n    pass\n")
        self.assertFalse(os.path.exists(os.path.join(process.temporary, "s")))
        self.assertTrue(os.path.exists(process.temporary))

    def test_limits_hold_at_the_import(self):
        code = """
import resource
LIMITS = [resource.getrlimit(k)[0] for k in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)]
class TritonPythonModel:
    def execute(self, requests):
        return [answer(LIMITS) for _ in requests]
"""
        limits = {"limit_memory": str(8 << 30), "limit_processor_seconds": "100", "limit_open_files": "64"}
        self.assertEqual(str([8 << 30, 100, 64]), self.out(self.loaded(code, settings=limits), ""))
        with self.assertRaises(LoadError) as caught:
            self.loaded(code, settings={"limit_memory": "-4"})
        self.assertIn("Failed to set the limits of the process: limit_memory is -4", str(caught.exception))

    def test_sigquit_dumps_the_stacks_of_a_model_that_closed_its_standard_error(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        self.busy_here()
        return [answer("") for _ in requests]
    def busy_here(self):
        os.close(2)
        time.sleep(1)
""")
        process.start([{"inputs": {"MODE": texts("")}}])
        time.sleep(0.3)
        process.process.send_signal(signal.SIGQUIT)
        self.eventually(lambda: "busy_here" in process.output("stderr"))

    def test_sigquit_dumps_the_stacks(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        self.busy_here()
        return [answer("") for _ in requests]
    def busy_here(self):
        time.sleep(1)
""")
        process.start([{"inputs": {"MODE": texts("")}}])
        time.sleep(0.3)
        process.process.send_signal(signal.SIGQUIT)
        self.eventually(lambda: "busy_here" in process.output("stderr"))

    def test_ends_with_the_channel(self):
        process = self.loaded("class TritonPythonModel:\n    pass\n")
        process.socket.shutdown(2)
        self.assertEqual(1, process.process.wait(10))

    def test_ends_with_the_channel_while_busy(self):
        process = self.loaded("class TritonPythonModel:\n    def execute(self, requests):\n        time.sleep(60)\n")
        process.start([{"inputs": {"MODE": texts("")}}])
        time.sleep(0.2)
        process.socket.shutdown(2)
        self.assertEqual(1, process.process.wait(10))

    def test_ends_with_the_life_socket_in_native_code(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        if os.fork() == 0:
            time.sleep(60)
        import ctypes
        ctypes.PyDLL(None).sleep(60)  # holds the interpreter lock
""")
        process.start([{"inputs": {"MODE": texts("")}}])
        time.sleep(0.5)
        group = process.process.pid
        process.life.close()
        self.assertEqual(-signal.SIGKILL, process.process.wait(10))

        def gone():
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return True
            with open("/proc/self/stat"):
                return all(not self.alive_in_group(group, name) for name in os.listdir("/proc") if name.isdigit())

        self.eventually(gone)

    def test_what_the_model_has_started_ends_with_the_process(self):
        process = self.loaded("""
import atexit, subprocess
class TritonPythonModel:
    def initialize(self, args):
        session = subprocess.Popen(["sleep", "60"], start_new_session=True)
        reader, writer = os.pipe()
        middle = subprocess.Popen(
            [sys.executable, "-c", "import os, subprocess, sys\\n"
             "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\\n"
             "os.write(int(sys.argv[1]), b'%d' % child.pid)\\nchild.wait()", str(writer)], pass_fds=[writer])
        self.started = [session.pid, int(os.read(reader, 20)), middle.pid]
        atexit.register(lambda: print("alive at exit", session.poll()))
    def execute(self, requests):
        return [answer(self.started) for _ in requests]
""")
        started = json.loads(self.out(process, ""))
        self.assertFalse(any(map(self.has_ended, started)))
        self.assertEqual(0, process.finalize())
        self.assertEqual([True, True], list(map(self.has_ended, started[:2])))
        self.assertIn("alive at exit None", process.output())
        self.eventually(lambda: self.has_ended(started[2]))  # its child has ended

    def has_ended(self, process):
        try:
            with open("/proc/%d/stat" % process) as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def alive_in_group(self, group, name):
        try:
            with open("/proc/%s/stat" % name) as file:
                fields = file.read().rpartition(")")[2].split()
            return int(fields[2]) == group and fields[0] != "Z"
        except OSError:
            return False

    def test_killed(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        os.kill(os.getpid(), 11)
""")
        with self.assertRaises(ProcessEnded):
            process.one({"MODE": texts("")})
        self.assertEqual(-11, process.process.wait(10))
        self.assertIn("Segmentation fault", process.output("stderr"))

    def test_name_without_py(self):
        process = self.peer("", file=os.path.join(self.directory, "m", "1", "model.txt"))
        with self.assertRaisesRegex(LoadError, "^Model name must end with '.py'. Model name is \"model.txt\".$"):
            process.open()

    @unittest.skipIf(importlib.util.find_spec("debugpy") is not None, "debugpy is installed")
    def test_debugger_that_is_not_installed(self):
        process = self.peer("", settings={"debug_port": "5678"})
        with self.assertRaisesRegex(LoadError, "^ImportError: a debugger needs the package debugpy in this environment"):
            process.open()

    def test_frames_in_pieces(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
""", inline=1 << 20)
        sent = process.socket.sendall

        class Pieces:
            def __init__(self, sizes):
                self.sizes = sizes

            def __getattr__(self, name):
                return getattr(process_socket, name)

            def sendall(self, data):
                data = protocol.frame(protocol.LOG_LEVELS, 0, 0, 7) + data + protocol.frame(63, 0, 0, 1, b"x" * 9)
                position = index = 0
                while position < len(data):
                    size = self.sizes[index % len(self.sizes)]
                    index += 1
                    sent(data[position:position + size])
                    position += size

        process_socket = process.socket
        try:
            for sizes in ((1,), (7, 64), (15, 1, 16), (3000, 1), (70000,), (1 << 22,)):
                process.socket = Pieces(sizes)
                for size in (1, 30, 20000) if sizes[0] > 1 else (1, 100):
                    array = np.random.rand(size)
                    self.assertTrue(np.array_equal(array, process.one({"IN": array}).outputs["OUT"]))
        finally:
            process.socket = process_socket

    def test_broken_frame_ends_the_process(self):
        for frame in (protocol.frame(protocol.SEGMENT, 0, 0, 1, b"\0" * 8),
                      b"\xff" * 16, protocol.frame(protocol.CALL_RESPONSE, 1, 0, 1, b"\xff" * 48)):
            process = self.loaded("class TritonPythonModel:\n    pass\n", directory_name="m%d" % len(frame))
            process.send(frame)
            self.assertIn(process.process.wait(10), (1, 4))

    def test_thousands_of_frames_while_loading_slowly(self):
        process = self.peer("time.sleep(0.3)\nclass TritonPythonModel:\n    pass\n")
        for _ in range(2000):
            process.send(protocol.frame(protocol.LOG_LEVELS, 0, 0, 7))
            process.send(protocol.frame(63, 0, 0, 7))
        process.open()


class ExecuteTest(ProcessTest):
    ERRORS = """
class TritonPythonModel:
    def execute(self, requests):
        m = mode(requests[0])
        if m == "none":
            return None
        if m == "tuple":
            return (answer("a"),)
        if m == "element":
            return ["x"] * len(requests)
        if m == "short":
            return [answer("a")]
        if m == "raise":
            raise ValueError("bad")
        if m == "exit":
            sys.exit(4)
        if m == "reschedule":
            requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return [answer("a") for _ in requests]
        if m == "rescheduled":
            requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return [None] + [answer("a") for _ in requests[1:]]
        if m == "error":
            return [pb_utils.InferenceResponse([text("x")], pb_utils.TritonError("own", pb_utils.TritonError.NOT_FOUND))] + \
                [answer("b") for _ in requests[1:]]
        if m == "deep":
            def dive(n):
                return dive(n + 1)
            dive(0)
        if m == "memory":
            bytearray(1 << 60)
        if m == "kept":
            self.kept = requests
            return [None for _ in requests]
        if m == "kept none":
            self.kept = requests
            return None
        if m == "drop":
            self.kept = None
        if m == "cycle":
            loop = [requests]
            loop.append(loop)
            return None
        return [answer(m) for _ in requests]
"""

    def failed(self, process, value, count=2):
        responses = process.execute([{"inputs": {"MODE": texts(value)}, "id": "r%d" % i} for i in range(count)])
        self.assertTrue(all(len(r) == 1 and r[0].final and r[0].code == 1 for r in responses), responses)
        self.assertEqual(1, len({r[0].error for r in responses}))
        return responses[0][0].error

    def test_wrong_results_fail_the_whole_batch(self):
        process = self.loaded(self.ERRORS)
        start = "Failed to process the request(s) for model 'm_0', message: "
        self.assertEqual(start + "Expected a list in the execute return, found type '<class 'tuple'>'.",
                         self.failed(process, "tuple"))
        self.assertEqual(start + "Expected an 'InferenceResponse' object in the execute function return list, found type "
                         "'<class 'str'>'.", self.failed(process, "element"))
        self.assertEqual(start + "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                         "InferenceRequest(s) size is:2, and InferenceResponse(s) size is:1\n", self.failed(process, "short"))
        self.assertEqual(start + "Expected a None object in the execute function return list for reschduled request, found "
                         "type '<class 'c_python_backend_utils.InferenceResponse'>'.", self.failed(process, "reschedule"))
        self.assertTrue(self.failed(process, "raise").startswith(start + "ValueError: bad\n\nAt:\n  "))
        self.assertTrue(self.failed(process, "exit").startswith(start + "SystemExit: 4\n"))
        self.assertTrue(self.failed(process, "deep").startswith(start + "RecursionError: "))
        self.assertTrue(self.failed(process, "memory").startswith(start + "MemoryError: "))
        self.assertEqual("ok", self.out(process, "ok"))

    def test_log_text_has_traceback_and_ids(self):
        process = self.loaded(self.ERRORS)
        response = process.one({"MODE": texts("raise")}, id="the-id")
        self.assertIn("request ids: the-id\nTraceback (most recent call last)", response.trace)
        self.assertNotIn("nereid_python", response.trace)

    def test_long_texts_of_errors_are_cut(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("start" + "x" * (4 << 20) + "end")
""")
        response = process.one({"MODE": texts("")}, id="i" * 100000)
        self.assertLess(len(response.error), 1 << 16)
        self.assertTrue(response.error.startswith("Failed to process the request(s) for model 'm_0', message: ValueError: startx"))
        self.assertIn(" characters are left out)\n\nAt:\n  ", response.error)
        self.assertLess(len(response.trace), 300000)
        self.assertTrue(response.trace.startswith("request ids: iii"))
        self.assertIn("\nTraceback (most recent call last):\n", response.trace)
        self.assertIn(" characters are left out) …\n", response.trace)
        self.assertTrue(response.trace.endswith("xend"))

    def test_error_of_one_request(self):
        process = self.loaded(self.ERRORS)
        first, second = process.execute([{"inputs": {"MODE": texts("error")}}, {"inputs": {"MODE": texts("error")}}])
        self.assertEqual(("own", 2, True), (first[0].error, first[0].code, first[0].final))
        self.assertEqual(b"b", second[0].outputs["OUT"][0])

    def test_request_that_nothing_answers(self):
        process = self.loaded(self.ERRORS)
        for value in ("none", "cycle", "kept none"):
            responses = process.execute([{"inputs": {"MODE": texts(value)}}] * 2, 1)
            for response in responses:
                self.assertEqual("Python model 'm_0' returned no response and did not use the response sender.",
                                 response[0].error)
        execution, handles = process.start([{"inputs": {"MODE": texts("kept")}}])
        process.wait(lambda: process.executed[execution][1])
        time.sleep(0.1)
        self.assertNotIn(handles[0], process.responses)
        self.assertEqual("drop", self.out(process, "drop"))
        process.wait_final(handles)
        self.assertIn("returned no response", process.responses[handles[0]][0].error)

    def test_sender_lost_in_a_cycle_while_the_model_is_idle(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        gc.disable()
        loop = [r.get_response_sender() for r in requests]
        loop.append(loop)
        return [None for _ in requests] if requests[0].request_id() else None
""")
        for _ in range(2):
            execution, handles = process.start([{"inputs": {"MODE": texts("")}, "id": "x"}])
            process.wait_final(handles, 5)
            self.assertIn("released the response sender", process.responses[handles[0]][0].error)

    IDLE = """
from nereid_python import channel, runtime
channel.QUIET_SECONDS = 0.05
class TritonPythonModel:
    looked = 0
    def initialize(self, args):
        self.lose = threading.Event()
        own = runtime.runner.channel
        on_idle = own.on_idle
        def look():
            result = on_idle()
            self.looked += 1
            print("looked", self.looked)
            return result
        own.on_idle = look
    def execute(self, requests):
        if mode(requests[0]) == "now":
            return [answer("")]
        gc.disable()
        def work(requests):
            self.lose.wait()
            loop = [requests]
            loop.append(loop)
        threading.Thread(target=work, args=(requests,), daemon=True).start()
        return [None for _ in requests]
    def is_ready(self):
        if self.looked < 3:
            return False
        self.lose.set()
        return True
"""

    def test_request_lost_in_a_cycle_long_after_the_model_has_become_idle(self):
        process = self.loaded(self.IDLE)
        execution, handles = process.start([{"inputs": {"MODE": texts("")}}])
        process.wait(lambda: process.executed[execution][1])
        self.eventually(lambda: process.check_ready()[0] == 1)
        process.wait_final(handles, 10)
        self.assertIn("returned no response", process.responses[handles[0]][0].error)

    def test_idle_model_without_requests_sleeps(self):
        process = self.loaded(self.IDLE)
        self.out(process, "now")
        self.eventually(lambda: "looked 2" in process.output())
        time.sleep(0.3)
        self.assertNotIn("looked 3", process.output())

    def test_reschedule(self):
        process = self.loaded(self.ERRORS)
        first, second = process.execute([{"inputs": {"MODE": texts("rescheduled")}}, {"inputs": {"MODE": texts("x")}}])
        self.assertEqual(["rescheduled"], first)
        self.assertEqual(b"a", second[0].outputs["OUT"][0])

    def test_one_execution_waits_behind_another(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.05)
        return [answer(mode(r)) for r in requests]
""")
        started = [process.start([{"inputs": {"MODE": texts("r%d" % i)}}]) for i in range(2)]
        for i in range(2, 12):
            execution, handles = started.pop(0)
            process.wait(lambda: process.executed[execution][1])
            started.append(process.start([{"inputs": {"MODE": texts("r%d" % i)}}]))
            self.assertEqual(b"r%d" % (i - 2), process.responses[handles[0]][0].outputs["OUT"][0])

    def test_no_execute(self):
        process = self.peer("class TritonPythonModel:\n    pass\n")
        self.assertEqual(0, process.load())
        response = process.one({"MODE": texts("")})
        self.assertEqual("Failed to process the request(s) for model 'm_0', message: Python model %s does not implement "
                         "`execute` method." % process.settings["model_file"], response.error)

    def test_execute_that_is_set_later(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        self.execute = self.second
        return [answer("first") for _ in requests]
    def second(self, requests):
        return [answer("second") for _ in requests]
""")
        self.assertEqual(["first", "second"], [self.out(process, ""), self.out(process, "")])

    def test_decoupled_must_return_none(self):
        process = self.loaded("class TritonPythonModel:\n    def execute(self, r):\n        return [answer('a')]\n",
                              decoupled=True)
        self.assertEqual("Failed to process the request(s) for model 'm_0', message: Python model 'm_0' is using the decoupled "
                         "mode and the execute function must return None.", process.one({"MODE": texts("")}).error)

    def test_request_as_the_model_sees_it(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        return [answer(json.dumps([r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters(),
                sorted(r.requested_output_names()), r.trace().get_context(), r.is_cancelled(), len(r.inputs()),
                r.inputs()[0].shape(), r.inputs()[0].name(), r.model_name() == "m", r.get_response_sender() is
                r.get_response_sender()])) for r in requests]
""")
        self.assertEqual(["", 0, 0, 0, "{}", ["OTHER", "OUT"], None, False, 1, [1], "MODE", True, True],
                         json.loads(self.out(process, "")))
        seen = process.one({"MODE": texts("a", "b").reshape(2, 1)}, id="\u00e4", correlation=1 << 63, flags=3, timeout=77,
                           parameters='{"a":1}', outputs=["OUT"], trace='{"traceparent":"00"}')
        self.assertEqual(["\u00e4", 1 << 63, 3, 77, '{"a":1}', ["OUT"], '{"traceparent":"00"}', False, 1, [2, 1], "MODE", True,
                          True], json.loads(seen.outputs["OUT"][0]))
        seen = process.one({"MODE": texts("a")}, correlation="seq")
        self.assertEqual("seq", json.loads(seen.outputs["OUT"][0])[1])

    def test_outputs_that_were_not_requested_or_configured(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        many = [pb_utils.Tensor("OTHER", np.zeros(1)), text("x"), pb_utils.Tensor("NONE", np.zeros(1))]
        return [pb_utils.InferenceResponse(many, parameters={"b": True, "i": -5, "s": "\\u00e4", "big": 1 << 70}) for _ in requests]
""")
        response = process.one({"MODE": texts("")})
        self.assertEqual(["OTHER", "OUT"], response.order)
        self.assertEqual({"b": True, "i": -5, "s": "\u00e4", "big": str(1 << 70)}, response.parameters)
        self.assertEqual(["OUT"], process.one({"MODE": texts("")}, outputs=["OUT"]).order)
        self.assertEqual([(protocol.NOTICE_UNKNOWN_OUTPUT, "NONE")], process.notices)

    def test_when_arrays_are_read(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        plain, strided, objects = np.zeros(3), np.zeros((3, 2))[:, 0], np.array([b"a"], dtype=object)
        if mode(requests[0]) == "objects":
            tensors = [pb_utils.Tensor("OUT", objects)]
        else:
            tensors = [pb_utils.Tensor("OUT", plain), pb_utils.Tensor("OTHER", strided)]
        plain[0] = strided[0] = 1
        objects[0] = b"b"
        return [pb_utils.InferenceResponse(tensors) for _ in requests]
""")
        response = process.one({"MODE": texts("")})
        self.assertEqual([1, 0, 0], response.outputs["OUT"].tolist())
        self.assertEqual([0, 0, 0], response.outputs["OTHER"].tolist())
        self.assertEqual([b"a"], process.one({"MODE": texts("objects")}).outputs["OUT"].tolist())

    def test_types_and_shapes_are_not_compared_with_the_configuration(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([1, None, "z", b"b\\0", np.str_("n")], dtype=object)),
                                            pb_utils.Tensor("OTHER", np.array(2.5))]) for _ in requests]
""")
        response = process.one({"MODE": texts("")})
        self.assertEqual([b"1", b"None", b"z", b"b\0", b"n"], response.outputs["OUT"].tolist())
        self.assertEqual((), response.outputs["OTHER"].shape)
        self.assertEqual(2.5, response.outputs["OTHER"][()])


class MemoryTest(ProcessTest):
    IDENTITY = """
class TritonPythonModel:
    kept = []
    def execute(self, requests):
        out = []
        for r in requests:
            t = pb_utils.get_input_tensor_by_name(r, "IN")
            m = mode(r)
            if m == "private":
                a = t.as_numpy()
                assert a is t.as_numpy() and a.flags.writeable
                a[...] = 0
                out.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUT", t.to_dlpack())]))
            elif m == "dlpack":
                c = pb_utils.Tensor.from_dlpack("OUT", t)
                out.append(pb_utils.InferenceResponse([c]))
            elif m == "keep":
                self.kept.append(t)
                out.append(answer("kept"))
            elif m == "keep array":
                self.kept.append(t.as_numpy())
                out.append(answer("kept"))
            elif m == "keep capsule":
                self.kept.append(t.to_dlpack())
                out.append(answer("kept"))
            elif m == "drop":
                self.kept.clear()
                out.append(answer("dropped"))
            elif m == "sum":
                out.append(answer([float(np.asarray(k.as_numpy() if hasattr(k, "as_numpy") else k).sum()) for k in self.kept]))
            elif m == "itself":
                t._name = "OUT"
                out.append(pb_utils.InferenceResponse([t]))
            elif m == "bfloat":
                out.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUT", t.to_dlpack())]))
            elif m == "bfloat numpy":
                t.as_numpy()
            elif m == "big":
                out.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(1 << 22, np.uint8))]))
            elif m == "huge":
                out.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(65 << 20, np.uint8))]))
            elif m == "huge call":
                r = pb_utils.InferenceRequest(model_name="m", requested_output_names=[], inputs=[pb_utils.Tensor("X", np.zeros(65 << 20, np.uint8))])
                out.append(answer([r.exec().error().message(), asyncio.run(called(r)).error().message()]))
            elif m == "limit":
                import resource
                with open("/proc/self/statm") as f:
                    size = int(f.read().split()[0]) * 4096
                resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), -1))
                out.append(answer("limited"))
            elif m == "no limit":
                resource = sys.modules["resource"]
                resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
                out.append(answer("not limited"))
            else:
                out.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", t.as_numpy())]))
        return out
"""

    IDENTITY += """
async def called(request):
    return await request.async_exec()
"""

    def test_all_types_inline_and_in_shared_memory(self):
        process = self.loaded(self.IDENTITY)
        for kind in (np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64, np.float16,
                     np.float32, np.float64):
            for shape in ((1, 3), (100, 101), (0, 5), (), (1, 1, 1, 1, 1)):
                array = np.asarray(np.random.rand(*shape) * 100).astype(kind)
                response = process.one({"MODE": texts(""), "IN": array})
                self.assertEqual(array.dtype, response.outputs["OUT"].dtype)
                self.assertEqual(shape, response.outputs["OUT"].shape)
                self.assertTrue(np.array_equal(array, response.outputs["OUT"]))
        for count in (0, 1, 3, 5000):
            array = texts(*[b"element %d\0" % i for i in range(count)])
            response = process.one({"MODE": texts(""), "IN": array})
            self.assertEqual(array.tolist(), response.outputs["OUT"].tolist())

    def test_arrays_are_private_copies(self):
        process = self.loaded(self.IDENTITY)
        for size in (4, 10000):
            array = np.arange(size, dtype=np.float32)
            for value in ("private", "dlpack"):
                response = process.one({"MODE": texts(value), "IN": array})
                self.assertTrue(np.array_equal(array, response.outputs["OUT"]), value)

    def test_slot_stays_while_python_holds_it(self):
        process = self.loaded(self.IDENTITY)
        array = np.ones(10000, np.float32)
        for value in ("keep", "keep capsule"):
            self.assertEqual("kept", process.one({"MODE": texts(value), "IN": array}).outputs["OUT"][0].decode())
        process.one({"MODE": texts(""), "IN": array * 2})
        self.eventually(lambda: len(process.held) == 2)
        self.assertEqual(2, len(process.held))
        process.one({"MODE": texts("drop"), "IN": np.zeros(1)})
        self.eventually(lambda: not process.held)

    def test_slot_is_released_with_the_execution_if_only_the_array_is_kept(self):
        process = self.loaded(self.IDENTITY)
        process.one({"MODE": texts("keep array"), "IN": np.ones(10000, np.float32)})
        self.eventually(lambda: not process.held)
        process.one({"MODE": texts(""), "IN": np.full(10000, 3, np.float32)})
        self.assertEqual("[10000.0]", process.one({"MODE": texts("sum"), "IN": np.zeros(1)}).outputs["OUT"][0].decode())

    def test_slot_dropped_by_another_thread_while_idle(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        t = requests[0].inputs()[0]
        threading.Thread(target=lambda kept: time.sleep(0.3), args=(t,)).start()
        return [answer("") for _ in requests]
""")
        process.one({"IN": np.ones(10000, np.float32)})
        self.assertEqual(1, len(process.held))
        self.eventually(lambda: not process.held)

    def test_tensor_is_passed_on_by_its_slot(self):
        process = self.loaded(self.IDENTITY)
        array = np.random.rand(50000)
        response = process.one({"MODE": texts("itself"), "IN": array})
        self.assertTrue(np.array_equal(array, response.outputs["OUT"]))
        self.assertFalse(any(segment.outgoing for segment in process.segments.values()))
        self.eventually(lambda: not process.held)
        small = process.one({"MODE": texts("itself"), "IN": np.arange(3)})
        self.assertEqual([0, 1, 2], small.outputs["OUT"].tolist())

    def test_bfloat16(self):
        process = self.loaded(self.IDENTITY)
        array = np.arange(5, dtype=np.uint16)
        response = process.one({"MODE": texts("bfloat"), "IN": (array, 14)})
        self.assertEqual([0, 1, 2, 3, 4], response.outputs["OUT"].tolist())
        response = process.one({"MODE": texts("bfloat numpy"), "IN": (array, 14)})
        self.assertIn("Tensor dtype is BF16 and cannot be converted to NumPy.", response.error)

    def test_memory_grows_is_reused_and_given_back(self):
        process = self.loaded(self.IDENTITY)
        for _ in range(50):
            process.one({"MODE": texts("big"), "IN": np.zeros(1)})
        outgoing = [s for s in process.segments.values() if s.outgoing]
        self.assertEqual(1, len(outgoing))
        process.auto_release = False
        process.one({"MODE": texts("big"), "IN": np.zeros(1)})
        process.one({"MODE": texts("big"), "IN": np.zeros(1)})
        self.assertEqual(2, len([s for s in process.segments.values() if s.outgoing]))

    def test_idle_memory_is_given_back(self):
        process = self.loaded("import nereid_python.memory as memory\nmemory.IDLE_SECONDS = 0.1\n" + self.IDENTITY)
        process.one({"MODE": texts("big"), "IN": np.zeros(1)})
        self.eventually(lambda: process.segments_returned)
        self.assertEqual([], [s for s in process.segments.values() if s.outgoing])
        self.assertEqual(1 << 22, process.one({"MODE": texts("big"), "IN": np.zeros(1)}).outputs["OUT"].size)

    def test_tensors_go_into_the_frame_where_memory_is_refused(self):
        process = self.loaded(self.IDENTITY, memory_limit=1 << 21)
        first, second, third = process.execute([{"inputs": {"MODE": texts(value), "IN": np.zeros(1)}}
                                                for value in ("big", "huge", "")])
        self.assertEqual(1 << 22, first[0].outputs["OUT"].size)
        self.assertEqual("Failed to increase the shared memory pool size to 83886080 bytes.", second[0].error)
        self.assertEqual([0], third[0].outputs["OUT"].tolist())
        self.assertEqual([], process.places)
        error = "Failed to increase the shared memory pool size to 83886080 bytes."
        self.assertEqual(str([error, error]), process.one({"MODE": texts("huge call"), "IN": np.zeros(1)}).outputs["OUT"][0].decode())

    def test_idle_segments_make_room_for_slots_of_other_sizes(self):
        process = self.loaded(self.IDENTITY, memory_limit=9 << 19)
        array = np.zeros(1 << 18)  # 2 MiB
        self.assertEqual(1 << 22, process.one({"MODE": texts("big"), "IN": np.zeros(1)}).outputs["OUT"].size)
        self.assertEqual(1, len(process.places))
        process.memory_limit += 2 << 20  # for the input
        for _ in range(2):
            self.assertEqual(array.shape, process.one({"MODE": texts(""), "IN": array}).outputs["OUT"].shape)
            self.assertEqual(1 << 22, process.one({"MODE": texts("big"), "IN": np.zeros(1)}).outputs["OUT"].size)
        self.assertEqual(5, len(process.places))

    def test_segments_that_cannot_be_mapped(self):
        from nereid_python.memory import Memory, MemoryRefused

        process = self.loaded(self.IDENTITY)
        self.out(process, "limit", )
        array = np.zeros(4 << 20)
        for _ in range(2):
            self.assertEqual("Failed to increase the shared memory pool size to 33554432 bytes.",
                             process.one({"MODE": texts(""), "IN": array}).error)
            self.eventually(lambda: not process.held)
        self.out(process, "no limit")
        self.assertEqual(array.shape, process.one({"MODE": texts(""), "IN": array}).outputs["OUT"].shape)

        wanted, returned = [], []

        def want(slot_size):
            wanted.append(slot_size)
            with open(os.devnull, "w") as sys.stderr:
                memory.add(len(wanted), "/no/such/path", 1 << 20, True, slot_size)

        memory = Memory(want, lambda condition: self.assertTrue(condition()), returned.extend)
        self.addCleanup(setattr, sys, "stderr", sys.stderr)
        memory.refuse(8192)
        self.assertRaises(MemoryRefused, memory.allocate, 4096)
        self.assertEqual(([4096], [1]), (wanted, returned))

    def test_release_after_a_long_pause_is_given_back(self):
        process = self.loaded("import nereid_python.channel as c, nereid_python.memory as m\nc.QUIET_SECONDS = m.IDLE_SECONDS = 0.1\n"
                              + self.IDENTITY)
        process.auto_release = False
        process.one({"MODE": texts("big"), "IN": np.zeros(1)})
        time.sleep(2)
        segment, offset, _ = process.places[-1]
        process.send(protocol.frame(protocol.RELEASE, 0, 1, 0, peer.SLOT.pack(segment, 0, offset)))
        self.eventually(lambda: process.segments_returned, 4)

    def test_bytes_that_end_within_an_element(self):
        from nereid_python import bytestensor

        for data in (b"\5\0\0\0ab", b"\1\0\0\0ab\0", b"\1", b"\xff\xff\xff\xffabcd"):
            with self.assertRaisesRegex(ValueError, "ends within an element"):
                bytestensor.decode(data, 0, len(data), (1,))

    def test_sizes_of_slots(self):
        from nereid_python.memory import slot_size_of

        self.assertEqual([4096, 4096, 8192, 1 << 20, 5 << 18, 5 << 18, 6 << 18, 1 << 21, 5 << 19],
                         [slot_size_of(n) for n in (1, 4096, 4097, 1 << 20, (1 << 20) + 1, 5 << 18, (5 << 18) + 1, (7 << 18) + 1,
                                                    (1 << 21) + 1)])

    def test_lent_slots_come_back_if_an_array_cannot_be_copied(self):
        from nereid_python.codec import Codec
        from nereid_python.memory import Memory, MemoryRefused
        from c_python_backend_utils import Tensor

        memory = Memory(lambda size: memory.refuse(size), lambda condition: None)
        file = tempfile.NamedTemporaryFile()
        file.truncate(32768)
        memory.add(1, file.name, 32768, True, 16384)
        codec = Codec(memory, None, 0)
        codec.inline_limit = 0
        arrays = [memory.lend(16384).array((4096,), np.dtype(np.float32)) for _ in range(2)]
        parts, held, moves = [b""], [], []
        position = 16
        for array in arrays:
            position = codec.put_tensor(parts, position, 0, Tensor("OUT", array), held, moves)
        self.assertEqual(2, len(moves))
        del arrays[0], array  # the model holds the second
        with self.assertRaises(MemoryRefused):
            codec.finish_moves(parts, moves, held)
        codec.undo_moves(moves)
        codec.give_up(held)
        self.assertEqual(1, memory.lent)
        arrays.clear()
        moves.clear()
        self.assertEqual((0, 2), (memory.lent, len(memory._free[16384])))

    RETURNED = """
class TritonPythonModel:
    kept = []
    def execute(self, requests):
        out = []
        for r in requests:
            m = mode(r)
            a = pb_utils.get_input_tensor_by_name(r, "IN").as_numpy()
            if m == "write":
                for k in self.kept:
                    k[...] = -1
            if m == "keep":
                self.kept.append(a)
            if m == "keep view":
                self.kept.append(a[5:])
            if m == "keep request":
                self.kept_request = r
            if m == "clear":
                self.kept.clear()
            a += 1
            outputs = [pb_utils.Tensor("OUT", a)]
            if m == "twice":
                outputs.append(pb_utils.Tensor("OTHER", a))
            if m == "part":
                outputs = [pb_utils.Tensor("OUT", a[10:])]
            out.append(pb_utils.InferenceResponse(outputs))
        return out
"""

    def test_arrays_of_inputs_are_returned_without_a_copy_if_nothing_else_holds_them(self):
        process = self.loaded(self.RETURNED)
        array = np.arange(10000, dtype=np.float64)

        def run(value, check=True):
            response = process.one({"MODE": texts(value), "IN": array})
            self.assertTrue(np.array_equal(array + 1, response.outputs["OUT"]), value)
            return process.places[-1]

        run("")
        for _ in range(5):
            run("")
        self.assertEqual(1, len([s for s in process.segments.values() if s.outgoing]))
        response = process.one({"MODE": texts("twice"), "IN": array})
        self.assertTrue(np.array_equal(array + 1, response.outputs["OTHER"]))
        self.assertNotEqual(process.places[-1], process.places[-2])
        self.assertTrue(np.array_equal(array[10:] + 1, process.one({"MODE": texts("part"), "IN": array}).outputs["OUT"]))
        process.auto_release = False
        places = [run(value) for value in ("keep", "keep view", "keep request", "", "keep")]
        self.assertEqual(5, len(set(places)))
        run("write")
        for segment, offset, size in places:
            content = np.frombuffer(process.segments[segment].mapping, np.float64, size // 8, offset)
            self.assertTrue(np.array_equal(array + 1, content))
        for _ in range(30):
            run("keep")
        run("clear")

    def test_incoming_segment_is_taken_back(self):
        process = self.loaded(self.IDENTITY)
        array = np.random.rand(10000)
        process.one({"MODE": texts(""), "IN": array})
        self.eventually(lambda: not process.held)
        ident = next(i for i, s in process.segments.items() if not s.outgoing)
        with open("/proc/%d/maps" % process.process.pid) as maps:
            before = maps.read().count("memfd:tensors")
        process.send(protocol.frame(protocol.SEGMENT_REMOVE, 0, 0, ident))
        process.incoming_free.remove(ident)
        self.assertTrue(np.array_equal(array, process.one({"MODE": texts(""), "IN": array}).outputs["OUT"]))
        with open("/proc/%d/maps" % process.process.pid) as maps:
            self.assertEqual(before, maps.read().count("memfd:tensors"))

    def test_large_inline_frames(self):
        process = self.loaded(self.IDENTITY, inline=1 << 30)
        array = np.random.rand(1 << 20)
        self.assertTrue(np.array_equal(array, process.one({"MODE": texts(""), "IN": array}).outputs["OUT"]))

    def test_nothing_in_dev_shm_and_few_descriptors(self):
        process = self.loaded(self.IDENTITY)
        before = set(os.listdir("/dev/shm"))
        for _ in range(5):
            process.one({"MODE": texts("big"), "IN": np.zeros(100000)})
        count = len(os.listdir("/proc/%d/fd" % process.process.pid))
        for _ in range(20):
            process.one({"MODE": texts("big"), "IN": np.zeros(100000)})
        self.assertLess(len(os.listdir("/proc/%d/fd" % process.process.pid)), count + 3)
        self.assertEqual(before, set(os.listdir("/dev/shm")))

    def test_does_not_grow(self):
        process = self.loaded(self.IDENTITY)
        array = np.random.rand(10000)

        def run(count):
            for _ in range(count):
                process.one({"MODE": texts(""), "IN": array})
            with open("/proc/%d/statm" % process.process.pid) as file:
                return int(file.read().split()[1]) * 4096

        run(200)
        before = run(300)
        self.assertLess(run(1500) - before, 2 << 20)


class SenderTest(ProcessTest):
    CODE = """
class TritonPythonModel:
    def execute(self, requests):
        out = []
        for r in requests:
            m = mode(r)
            sender = r.get_response_sender()
            if m == "thread":
                def later(sender=sender):
                    time.sleep(0.2)
                    sender.send(answer("later"), flags=FINAL)
                threading.Thread(target=later).start()
                out.append(None)
            elif m == "late sender":
                def late(request=r):
                    time.sleep(0.2)
                    request.get_response_sender().send(answer("late"), flags=FINAL)
                threading.Thread(target=late).start()
                out.append(None)
            elif m == "returned after final":
                sender.send(answer("sent"), flags=FINAL)
                out.append(answer("returned"))
            elif m == "returned after response":
                sender.send(answer("sent"))
                out.append(answer("returned"))
            elif m == "send after return":
                self.sender = sender
                out.append(answer("returned"))
            elif m == "now":
                try:
                    self.sender.send(answer("x"), flags=FINAL)
                    out.append(answer("no error"))
                except pb_utils.TritonModelException as e:
                    out.append(answer(e))
            elif m == "final after final":
                sender.send(answer("a"), flags=FINAL)
                try:
                    sender.send(flags=FINAL)
                except pb_utils.TritonModelException as e:
                    self.sender = None
                    self.seen = str(e)
                out.append(None)
            elif m == "seen":
                out.append(answer(self.seen))
            elif m == "raise":
                self.sender = sender
                raise ValueError("x")
            elif m == "error then final":
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("e", pb_utils.TritonError.CANCELLED)))
                sender.send(flags=FINAL)
                out.append(None)
            elif m == "lost":
                sender.send(answer("a"))
                out.append(None)
            elif m == "cancelled":
                end = time.time() + 10
                while not r.is_cancelled() and time.time() < end:
                    time.sleep(0.01)
                out.append(answer([r.is_cancelled(), sender.is_cancelled()]))
            else:
                out.append(answer(m))
        return out
"""

    def outputs(self, process, value, **more):
        responses = process.execute([dict(inputs={"MODE": texts(value)}, **more)])[0]
        return [r.outputs["OUT"][0].decode() if r.outputs is not None else r.error if r.error else "final" for r in responses]

    def test_not_decoupled(self):
        process = self.loaded(self.CODE)
        self.assertEqual(["later"], self.outputs(process, "thread"))
        self.assertEqual(["late"], self.outputs(process, "late sender"))
        self.assertEqual(["sent"], self.outputs(process, "returned after final"))
        self.assertEqual(["sent", "final"], self.outputs(process, "returned after response"))
        self.assertEqual(["e", "final"], self.outputs(process, "error then final"))
        self.assertEqual(["returned"], self.outputs(process, "send after return"))
        self.assertEqual(["Unable to send response. Non-decoupled model cannot send more than one response."],
                         self.outputs(process, "now"))
        self.assertEqual(["a"], self.outputs(process, "final after final"))
        self.assertEqual(["Unable to send response. Response sender has been closed."], self.outputs(process, "seen"))
        self.assertEqual(["a", "Python model 'm_0' released the response sender without the final response."],
                         self.outputs(process, "lost"))
        self.assertTrue(self.outputs(process, "raise")[0].startswith("Failed to process the request(s)"))
        self.assertEqual(["Unable to send response. Response sender has been closed."], self.outputs(process, "now"))

    def test_cancellation(self):
        process = self.loaded(self.CODE)
        execution, handles = process.start([{"inputs": {"MODE": texts("cancelled")}}])
        time.sleep(0.2)
        process.cancel(handles[0])
        process.cancel(12345)
        process.wait_final(handles)
        self.assertEqual(b"[True, True]", process.responses[handles[0]][0].outputs["OUT"][0])

    def test_cancellation_right_behind_the_execution(self):
        process = self.loaded(self.CODE)
        for _ in range(3):
            with process.lock:
                execution = process.next_id()
                handles = [process.handles + 1, process.handles + 2]
                process.handles += 2
                process.executed[execution] = (handles, False, 0)
                frame = process.encode_execute(execution, [{"inputs": {"MODE": texts("cancelled")}}] * 2, handles)
            # In one piece, so that both frames are read before the main thread takes the first.
            process.send(frame + b"".join(protocol.frame(protocol.CANCEL, 0, 0, handle) for handle in handles))
            process.wait_final(handles)
            for handle in handles:
                self.assertEqual(b"[True, True]", process.responses[handle][0].outputs["OUT"][0])
        self.assertEqual(["x"], self.outputs(process, "x"))

    def test_cancellation_of_an_execution_that_waits_behind_another(self):
        process = self.loaded("""
class TritonPythonModel:
    def initialize(self, args):
        self.go_on = threading.Event()
    def execute(self, requests):
        self.go_on.wait(10)
        return [answer(r.is_cancelled()) for r in requests]
    def is_ready(self):
        self.go_on.set()
        return True
""")
        _, first = process.start([{"inputs": {"MODE": texts("")}}])
        _, second = process.start([{"inputs": {"MODE": texts("")}}] * 2)
        process.cancel(second[1])
        self.assertEqual(1, process.check_ready()[0])  # the frames before have been read
        process.wait_final(first + second)
        self.assertEqual([b"False", b"False", b"True"],
                         [process.responses[handle][0].outputs["OUT"][0] for handle in first + second])
        self.assertEqual("False", self.out(process, ""))

    STREAM = """
class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            m = mode(r)
            sender = r.get_response_sender()
            if m.isdigit():
                for i in range(int(m)):
                    sender.send(answer(i))
                sender.send(flags=FINAL)
            elif m.startswith("thread "):
                def run(sender=sender, n=int(m[7:])):
                    for i in range(n):
                        sender.send(answer(i), flags=FINAL if i == n - 1 else 0)
                threading.Thread(target=run).start()
            elif m == "raise":
                sender.send(answer("a"))
                raise ValueError("x")
            elif m == "end":
                sender.send(flags=FINAL)
            elif m == "lost":
                sender.send(answer("a"))
            elif m == "request in thread":
                threading.Thread(target=lambda r: r.get_response_sender().send(answer("t"), flags=FINAL), args=(r,)).start()
            elif m == "reschedule":
                sender.send(answer("a"))
                r.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
"""

    def test_decoupled(self):
        process = self.loaded(self.STREAM, decoupled=True)
        self.assertEqual(["final"], self.outputs(process, "0"))
        self.assertEqual(["0", "1", "2", "final"], self.outputs(process, "3"))
        self.assertEqual([str(i) for i in range(500)], self.outputs(process, "thread 500"))
        self.assertEqual(["t"], self.outputs(process, "request in thread"))
        self.assertEqual(2, len(self.outputs(process, "lost")))
        responses = process.execute([{"inputs": {"MODE": texts("reschedule")}}])[0]
        self.assertEqual("rescheduled", responses[1])

    def test_exception_in_a_decoupled_batch_fails_open_requests_alone(self):
        process = self.loaded(self.STREAM, decoupled=True)
        first, second = process.execute([{"inputs": {"MODE": texts("end")}}, {"inputs": {"MODE": texts("raise")}}])
        self.assertEqual([None], [r.error for r in first])
        self.assertTrue(second[1].error.startswith("Failed to process the request(s) for model 'm_0', message: ValueError: x"))

    def test_send_waits_for_credit(self):
        process = self.loaded(self.STREAM, decoupled=True)
        for value in ("10", "thread 10"):
            execution, handles = process.start([{"inputs": {"MODE": texts(value)}, "window": 4}])
            time.sleep(0.2)
            self.assertEqual(4, len(process.responses[handles[0]]))
            process.grant(handles[0], 3)
            time.sleep(0.2)
            self.assertEqual(7, len(process.responses[handles[0]]))
            process.grant(handles[0], 100)
            process.wait_final(handles)
            process.wait(lambda: process.executed[execution][1])

    def test_cancellation_ends_the_wait_for_credit(self):
        process = self.loaded(self.STREAM, decoupled=True)
        execution, handles = process.start([{"inputs": {"MODE": texts("10")}, "window": 4}])
        time.sleep(0.2)
        process.cancel(handles[0])
        process.wait_final(handles)

    def test_credit_survives_failed_sends_and_concurrent_ones(self):
        process = self.loaded("""
class Broken(np.ndarray):
    def tobytes(self, *_):
        raise ValueError("broken")
class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            sender = r.get_response_sender()
            for _ in range(20):
                try:
                    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(3).view(Broken))]), FINAL)
                except ValueError:
                    pass
            def run():
                for i in range(50):
                    sender.send(answer(i))
            threads = [threading.Thread(target=run) for _ in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            sender.send(flags=FINAL)
""", decoupled=True)
        execution, handles = process.start([{"inputs": {"MODE": texts("")}, "window": 2}])
        for count in range(2, 201, 2):
            self.eventually(lambda: len(process.responses.get(handles[0], ())) >= count)
            self.assertEqual(count, len([r for r in process.responses[handles[0]] if not r.final]))
            process.grant(handles[0], 2)
        process.wait_final(handles)

    def test_end_of_a_request_ends_the_wait_for_credit(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        m = mode(requests[0])
        if m == "joined":
            self.thread.join(5)
            requests[0].get_response_sender().send(answer(self.thread.is_alive()), FINAL)
            return
        sender = requests[0].get_response_sender()
        def run():
            for i in range(3):
                sender.send(answer(i))
        self.thread = threading.Thread(target=run)
        self.thread.start()
        time.sleep(0.2)
        raise ValueError("x")
""", decoupled=True)
        process.execute([{"inputs": {"MODE": texts("")}, "window": 1}])
        self.assertEqual("False", self.outputs(process, "joined")[0])

    def test_streams_from_many_threads(self):
        process = self.loaded(self.STREAM, decoupled=True)
        requests = [{"inputs": {"MODE": texts("thread 200")}, "window": 16} for _ in range(16)]
        execution, handles = process.start(requests)
        done = threading.Event()

        def grant():
            while not done.is_set():
                for handle in handles:
                    process.grant(handle, 8)
                time.sleep(0.005)

        thread = threading.Thread(target=grant)
        thread.start()
        try:
            process.wait_final(handles)
        finally:
            done.set()
            thread.join()
        for handle in handles:
            self.assertEqual([str(i) for i in range(200)],
                             [r.outputs["OUT"][0].decode() for r in process.responses[handle]])


class CoroutineTest(ProcessTest):
    def test_not_decoupled_runs_to_its_end(self):
        process = self.loaded("""
class TritonPythonModel:
    async def execute(self, requests):
        await asyncio.sleep(0.05)
        if mode(requests[0]) == "raise":
            raise ValueError("in a coroutine")
        return [answer(threading.current_thread() is not threading.main_thread()) for _ in requests]
""")
        self.assertEqual("True", self.out(process, ""))
        error = process.one({"MODE": texts("raise")}).error
        self.assertRegex(error, "^Failed to process the request\\(s\\) for model 'm_0', message: ValueError: in a coroutine\n\nAt:\n"
                         "  .*model.py\\(\\d+\\): execute\n$")

    DECOUPLED = """
class TritonPythonModel:
    async def execute(self, requests):
        for r in requests:
            m = mode(r)
            sender = r.get_response_sender()
            if m == "raise":
                sender.send(answer("first"))
                await asyncio.sleep(0.05)
                raise ValueError("in a coroutine")
            if m == "lost":
                return
            await asyncio.sleep(0.3)
            sender.send(answer(m), flags=FINAL)
"""

    def test_decoupled_returns_at_once(self):
        process = self.loaded(self.DECOUPLED, decoupled=True)
        started = time.monotonic()
        running = [process.start([{"inputs": {"MODE": texts("r%d" % i)}}]) for i in range(1)]
        process.wait(lambda: process.executed[running[0][0]][1])
        self.assertLess(time.monotonic() - started, 0.3)
        self.assertEqual(protocol.FLAG_ASYNC, process.executed[running[0][0]][2])
        for i in range(1, 4):
            execution, handles = process.start([{"inputs": {"MODE": texts("r%d" % i)}}])
            process.wait(lambda: process.executed[execution][1])
            running.append((execution, handles))
        for i, (_, handles) in enumerate(running):
            process.wait_final(handles)
            self.assertEqual(b"r%d" % i, process.responses[handles[0]][0].outputs["OUT"][0])
        self.assertLess(time.monotonic() - started, 1.2)

    def test_slow_client_does_not_stop_other_streams(self):
        process = self.loaded("""
class TritonPythonModel:
    async def execute(self, requests):
        for r in requests:
            for i in range(50):
                r.get_response_sender().send(answer(i))
                await asyncio.sleep(0)
            r.get_response_sender().send(flags=FINAL)
""", decoupled=True)
        slow = process.start([{"inputs": {"MODE": texts("")}, "window": 2}])[1]
        fast = process.start([{"inputs": {"MODE": texts("")}, "window": 100}])[1]
        process.wait_final(fast, 5)
        process.wait_final(slow, 5)
        self.assertEqual(51, len(process.responses[slow[0]]))

    def test_failures_of_decoupled_coroutines(self):
        process = self.loaded(self.DECOUPLED, decoupled=True)
        first, second = process.execute([{"inputs": {"MODE": texts("raise")}}])[0]
        self.assertEqual(b"first", first.outputs["OUT"][0])
        self.assertTrue(second.error.startswith(
            "Failed to process the request(s) for model 'm_0', message: ValueError: in a coroutine\n"))
        self.assertIn("Traceback", second.trace)
        self.assertIn("released the response sender", process.one({"MODE": texts("lost")}).error)


class ReadyTest(ProcessTest):
    CODE = """
class TritonPythonModel:
    ready = True
    def execute(self, requests):
        m = mode(requests[0])
        if m == "sleep":
            time.sleep(1)
        else:
            self.ready = {"true": True, "false": False, "text": "yes", "raise": ValueError("not yet")}[m]
        return [answer("") for _ in requests]
    %sdef is_ready(self):
        if isinstance(self.ready, Exception):
            raise self.ready
        return self.ready
"""

    def test_forms(self):
        for kind in ("", "async "):
            process = self.loaded(self.CODE % kind)
            self.assertEqual((1, ""), process.check_ready())
            self.out(process, "false")
            self.assertEqual((0, ""), process.check_ready())
            self.out(process, "text")
            self.assertEqual((2, "is_ready() must return a boolean value"), process.check_ready())
            self.out(process, "raise")
            status, text = process.check_ready()
            self.assertEqual(2, status)
            self.assertTrue(text.startswith("ValueError: not yet\n\nAt:\n"), text)

    def test_while_the_model_executes(self):
        process = self.loaded(self.CODE % "")
        process.start([{"inputs": {"MODE": texts("sleep")}}])
        time.sleep(0.1)
        started = time.monotonic()
        self.assertEqual((1, ""), process.check_ready())
        self.assertLess(time.monotonic() - started, 0.6)


class LogTest(ProcessTest):
    CODE = """
class TritonPythonModel:
    def initialize(self, args):
        pb_utils.Logger.log_info("initialized")
    def execute(self, requests):
        m = mode(requests[0])
        L = pb_utils.Logger
        if m == "levels":
            L.log_info("i"); L.log_warn("w"); L.log_error("e"); L.log_verbose("v"); L.log("d"); L.log("w2", L.WARNING)
        elif m == "thread":
            t = threading.Thread(target=lambda: L.log_info("from a thread")); t.start(); t.join()
        elif m == "logging":
            logging.getLogger("x").warning("plain %s", 1)
            logging.basicConfig(format="%(name)s:%(message)s", level=logging.DEBUG)
            logging.getLogger("y").error("formatted")
            logging.getLogger("y").debug("hidden")
            logging.getLogger("y").info("informed")
        return [answer("") for _ in requests]
"""

    def test_logger(self):
        process = self.loaded(self.CODE)
        self.out(process, "levels")
        self.assertEqual([(0, "initialized"), (0, "i"), (1, "w"), (2, "e"), (0, "d"), (1, "w2")],
                         [(level, message) for level, _, _, message in process.logs])
        level, file, line, _ = process.logs[1]
        self.assertEqual(process.settings["model_file"], file)
        with open(file) as source:
            self.assertIn('L.log_info("i")', source.read().split("\n")[line - 1])
        process.logs.clear()
        process.send(protocol.frame(protocol.LOG_LEVELS, 0, 0, 15))
        self.out(process, "levels")
        self.assertIn((3, "v"), [(level, message) for level, _, _, message in process.logs])
        process.send(protocol.frame(protocol.LOG_LEVELS, 0, 0, 4))
        process.logs.clear()
        self.out(process, "levels")
        self.assertEqual([(2, "e")], [(level, message) for level, _, _, message in process.logs])
        self.out(process, "thread")

    def test_long_messages_are_cut(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        pb_utils.Logger.log_info("\u00e9" * 1000000)
        pb_utils.Logger.log_info("x" * 65536)
        try:
            pb_utils.MetricFamily("m", "x" * 65536, pb_utils.MetricFamily.COUNTER)
        except pb_utils.TritonModelException as e:
            return [answer(e) for _ in requests]
""")
        self.assertIn("have 65549 bytes: more than 65536", self.out(process, ""))
        (_, _, _, first), (_, _, _, second) = process.logs
        self.assertRegex(first, "^\u00e9{30000,} \u2026 \\(9672\\d\\d more characters\\)$")
        self.assertLessEqual(len(first.encode()), 65536)
        self.assertEqual("x" * 65536, second)

    def test_messages_that_are_too_long(self):
        process = self.loaded("""
import nereid_python.protocol
nereid_python.protocol.FRAME_LIMIT = 1 << 20
def big():
    return [pb_utils.Tensor("OUT", np.zeros(1 << 20, np.uint8))]
class TritonPythonModel:
    def execute(self, requests):
        out = []
        for r in requests:
            m = mode(r)
            try:
                if m == "call":
                    pb_utils.InferenceRequest(model_name="m", requested_output_names=[], inputs=big()).exec()
                if m == "load":
                    pb_utils.load_model("m", "{}", {"file:1/x": bytes(1 << 20)})
                if m == "send":
                    r.get_response_sender().send(pb_utils.InferenceResponse(big()), FINAL)
            except pb_utils.TritonModelException as e:
                out.append(answer(e))
            else:
                out.append(pb_utils.InferenceResponse(big()))
        return out
""", inline=1 << 30)
        for value in ("call", "load", "send", "return"):
            response = process.one({"MODE": texts(value)})
            text = response.error if value == "return" else response.outputs["OUT"][0].decode()
            self.assertRegex(text, "A message to the server of \\d+ bytes is too long: it may have 1048576 bytes.")

    def test_logging_keeps_its_level(self):
        process = self.loaded(self.CODE)
        self.out(process, "logging")
        self.assertEqual([(1, "plain 1"), (2, "y:formatted"), (0, "y:informed")],
                         [(level, message) for level, _, _, message in process.logs[1:]])
        self.assertEqual("", process.output("stderr"))

    def test_logger_before_initialize_goes_to_standard_error(self):
        process = self.peer("pb_utils.Logger.log_info('at import')\nclass TritonPythonModel:\n    pass\n")
        process.open()
        self.assertEqual("at import\n", process.output("stderr"))

    def test_prints_are_written_at_once(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        print("printed \\u65e5\\u672c")
        return [answer("") for _ in requests]
""", environment=dict(os.environ, LC_ALL="C", PYTHONIOENCODING="ascii"))
        self.out(process, "")
        self.assertEqual("printed \u65e5\u672c\n", process.output())


class MetricTest(ProcessTest):
    CODE = """
class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(name="f", description="d", kind=pb_utils.MetricFamily.COUNTER)
        self.gauges = pb_utils.MetricFamily("g", "d", pb_utils.MetricFamily.GAUGE)
        self.histograms = pb_utils.MetricFamily("h", "d", pb_utils.MetricFamily.HISTOGRAM)
        self.counter = self.family.Metric(labels={"a": "b"})
    def execute(self, requests):
        try:
            return [answer(eval(mode(r), globals(), {"self": self})) for r in requests]
        except Exception as e:
            return [answer(f"{type(e).__name__}: {e}") for _ in requests]
"""

    def test_metrics(self):
        process = self.loaded(self.CODE)
        prefix = "Failed to process the request for model 'm_0', message: "
        for code, expected in (
            ("self.counter.increment(2)", "None"), ("self.counter.increment(0.5)", "None"), ("self.counter.value()", "2.5"),
            ("self.family.Metric(labels={'a': 'b'}).value()", "2.5"), ("self.family.Metric(labels={'a': 'c'}).value()", "0.0"),
            ("self.counter.increment(-1)", "TritonModelException: Failed to increment metric value: " + prefix +
             "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."),
            ("self.counter.set(1)", "TritonModelException: Failed to set metric value: " + prefix +
             "TRITONSERVER_METRIC_KIND_COUNTER does not support Set"),
            ("self.counter.observe(1)", "TritonModelException: Failed to observe metric value: " + prefix +
             "TRITONSERVER_METRIC_KIND_COUNTER does not support Observe"),
            ("self.gauges.Metric().observe(1)", "TritonModelException: Failed to observe metric value: " + prefix +
             "TRITONSERVER_METRIC_KIND_GAUGE does not support Observe"),
            ("[self.gauges.Metric().set(5)]", "[None]"),
            ("self.histograms.Metric(buckets=[1, 2]).value()", "TritonModelException: Failed to get metric value: " + prefix +
             "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value"),
            ("self.histograms.Metric(buckets=[1, 2]).increment(1)", "TritonModelException: Failed to increment metric value: " +
             prefix + "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Increment"),
            ("self.histograms.Metric(buckets=[0.1, 2]).observe(1)", "None"), ("bool(self.histograms.Metric(buckets=[]))", "True"),
            ("self.histograms.Metric()", "TritonModelException: Failed to create metric. Missing required buckets."),
            ("self.histograms.Metric(buckets=(1,))", "TritonModelException: Failed to create metric. Buckets must be a list."),
            ("self.histograms.Metric(buckets=[2, 1])", "TritonModelException: Error when creating Metric: " + prefix +
             "Bucket boundaries must be strictly ascending."),
            ("self.family.Metric(buckets=[1])", "TritonModelException: Failed to create metric. Unexpected buckets found."),
            ("self.family.Metric(labels=[1])", "TritonModelException: Failed to create metric. Labels must be a dictionary."),
            ("pb_utils.MetricFamily(name='f', description='d', kind=pb_utils.MetricFamily.GAUGE)",
             "TritonModelException: Error when creating MetricFamily: " + prefix + "Family name already exists with different type"),
            ("pb_utils.MetricFamily(name='x', description='d', kind=pb_utils.MetricFamily.GAUGE).Metric().value()",
             "TritonModelException: Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The "
             "'MetricFamily' object should be deleted AFTER its corresponding 'Metric' objects have been deleted."),
            ("setattr(self, 'family', None)", "None"),
        ):
            self.assertEqual(expected, self.out(process, code), code)
        self.assertTrue(self.out(process, "self.counter.value()").startswith("TritonModelException: Invalid metric operation"))
        self.assertTrue(self.out(process, "pb_utils.MetricFamily('f', 'd', 0)").startswith("TypeError"))
        self.assertTrue(self.out(process, "self.counter.increment('x')").startswith("TypeError"))
        self.eventually(lambda: {f["name"] for f in process.families.values()} == {"g", "h"})


class CallTest(ProcessTest):
    CODE = """
def request(model="other", names=("Y",), inputs=None, **more):
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=list(names),
                                     inputs=[pb_utils.Tensor("X", np.arange(3, dtype=np.float32))] if inputs is None else inputs, **more)

def shown(response):
    if response.has_error():
        return f"{response.error().code()} {response.error().message()}"
    return [(t.name(), t.as_numpy().tolist() if t.as_numpy().size < 10 else t.as_numpy().size) for t in response.output_tensors()]

class TritonPythonModel:
    def initialize(self, args):
        try:
            request().exec()
        except Exception as e:
            self.early = f"{type(e).__name__}: {e}"
    def execute(self, requests):
        out = []
        for r in requests:
            m = mode(r)
            if m == "early":
                out.append(answer(self.early))
            elif m == "threads":
                results = []
                threads = [threading.Thread(target=lambda: results.append(shown(request().exec()))) for _ in range(20)]
                [t.start() for t in threads]
                [t.join() for t in threads]
                out.append(answer([len(results), results[0]]))
            elif m == "pool":
                import multiprocessing
                with multiprocessing.get_context("fork").Pool(4) as pool:
                    out.append(answer([pool.map(forked, range(10)), pool.map(log, [1])]))
            elif m == "pool slot":
                import multiprocessing
                global TENSOR
                TENSOR = pb_utils.get_input_tensor_by_name(r, "IN")
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    out.append(answer(pool.map(slot, range(2))))
            elif m == "control":
                out.append(answer(tried(lambda: pb_utils.load_model("a")) + tried(lambda: pb_utils.load_model("b", "{}", {"file:1/x": b"\\0"}))
                    + tried(lambda: pb_utils.unload_model("a", True)) + tried(lambda: pb_utils.is_model_ready("a"))
                    + tried(lambda: pb_utils.is_model_ready("no", "2")) + tried(lambda: pb_utils.load_model("bad"))
                    + tried(lambda: pb_utils.unload_model("bad")) + tried(lambda: pb_utils.is_model_ready("bad"))
                    + tried(lambda: pb_utils.load_model("a", "", [1])) + tried(lambda: pb_utils.load_model(1))))
            elif m == "iterate":
                responses = request("stream").exec(decoupled=True)
                first = next(responses)
                rest = [shown(x) for x in responses]
                again = [shown(x) for x in responses]
                out.append(answer([shown(first), rest, again]))
            elif m == "credit":
                out.append(answer(len([x for x in request("long").exec(decoupled=True)])))
            elif m == "cancel":
                responses = request("endless").exec(decoupled=True)
                next(responses)
                responses.cancel()
                out.append(answer([shown(x) for x in responses]))
            elif m == "drop":
                responses = request("endless").exec(decoupled=True)
                next(responses)
                del responses
                out.append(answer(""))
            elif m == "pool drop":
                import multiprocessing
                self.pool = multiprocessing.get_context("fork").Pool(1)
                out.append(answer(self.pool.map(dropped, range(2))))
            elif m == "pool end":
                out.append(answer(self.pool.map(forked, [1])))
                self.pool.terminate()
            elif m == "pass on":
                t = pb_utils.get_input_tensor_by_name(r, "IN")
                t.as_numpy()[...] = 0
                response = request("echo", inputs=[t], names=[]).exec()
                tensor = response.output_tensors()[0]
                tensor._name = "OUT"
                out.append(pb_utils.InferenceResponse([tensor]))
            elif m == "all fields":
                out.append(answer(shown(request("fields", request_id="id", correlation_id="seq", model_version=3, flags=1, timeout=9,
                    trace=r.trace(), parameters={"a": 1, "b": False, "c": "x"},
                    preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 1)).exec())))
            elif m == "parameters":
                out.append(answer(request("parameters").exec().parameters()))
            else:
                out.append(answer(shown(request(m).exec())))
        return out

def tried(action):
    try:
        return [repr(action())]
    except Exception as e:
        return [f"{type(e).__name__}: {e}"]

def forked(i):
    return shown(request(inputs=[pb_utils.Tensor("X", np.full(20000, i, np.float32))]).exec())

def dropped(i):
    metric = pb_utils.MetricFamily("f%d" % i, "", pb_utils.MetricFamily.COUNTER).Metric()
    responses = request("endless").exec(decoupled=True)
    next(responses)
    del responses, metric

def slot(i):
    return shown(request("sum", inputs=[TENSOR]).exec())

def log(i):
    pb_utils.Logger.log_info("from a forked process")
    return shown(request("refused").exec())
"""

    def setUp(self):
        super().setUp()
        self.running = 0

    def on_call(self, process, call):
        model = call["model"]
        if model == "other":
            process.respond(call, {"Y": call["inputs"]["X"] + 1})
        elif model == "sum":
            process.respond(call, {"Y": np.array([call["inputs"]["IN"].sum()])})
        elif model == "refused":
            process.respond(call, error="no such thing", refused=True)
        elif model == "failed":
            process.respond(call, error="failed itself", code=7)
        elif model == "stream":
            for i in range(3):
                process.respond(call, {"Y": np.array([i])}, final=False)
            process.respond(call)
        elif model == "long":
            granted = call["window"]
            for i in range(200):
                if i >= granted:
                    process.wait(lambda: sum(c for k, c in process.call_credits if k == call["id"]) + call["window"] > i)
                process.respond(call, {"Y": np.array([i])}, final=i == 199)
        elif model == "endless":
            process.respond(call, {"Y": np.array([0])}, final=False)
            process.wait(lambda: call["id"] in process.cancelled_calls + process.dropped_calls)
            if call["id"] in process.cancelled_calls:
                process.respond(call, error="cancelled", code=7)
        elif model == "echo":
            process.respond(call, {"OUTPUT": call["inputs"]["IN"]})
        elif model == "parameters":
            process.respond(call, {}, parameters='{"p":1}')
        else:
            process.respond(call, {"Y": np.array([0])})

    def test_calls(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        self.assertEqual("TritonModelException: BLS is only supported during the 'execute' function.", self.out(process, "early"))
        self.assertEqual("[('Y', [1.0, 2.0, 3.0])]", self.out(process, "other"))
        execution = max(process.executed)
        self.assertEqual(execution, process.calls[-1]["execution"])
        self.assertFalse(process.calls[-1]["decoupled"])
        self.assertEqual("__ErrorCode.INTERNAL Model refused - Error when running inference: no such thing",
                         self.out(process, "refused"))
        self.assertEqual("__ErrorCode.CANCELLED failed itself", self.out(process, "failed"))
        self.assertEqual('{"p":1}', self.out(process, "parameters"))
        self.assertEqual("[20, [('Y', [1.0, 2.0, 3.0])]]", self.out(process, "threads"))
        self.assertEqual(0, process.calls[-1]["execution"])

    def test_all_fields(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        self.out(process, "all fields", trace='{"traceparent":"x"}')
        call = process.calls[-1]
        self.assertEqual(("id", "seq", 3, 1, 9, '{"traceparent":"x"}', {"a": 1, "b": False, "c": "x"}, 1, ["Y"]),
                         (call["request_id"], call["correlation"], call["version"], call["flags"], call["timeout"], call["trace"],
                          call["parameters"], call["memory"], call["outputs"]))

    def test_streams(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        rest = "[('Y', [1])], [('Y', [2])], []"
        self.assertEqual("[[('Y', [0])], [%s], [[('Y', [0])], %s]]" % (rest, rest), self.out(process, "iterate"))
        self.assertEqual("200", self.out(process, "credit"))
        self.assertEqual("['__ErrorCode.CANCELLED cancelled']", self.out(process, "cancel"))
        self.out(process, "drop")
        self.eventually(lambda: process.dropped_calls)

    def test_tensors_are_passed_on(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        for size in (4, 100000):
            array = np.random.rand(size)
            response = process.one({"MODE": texts("pass on"), "IN": array})
            self.assertTrue(np.array_equal(array, response.outputs["OUT"]))
        self.eventually(lambda: not process.held)

    def test_control(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        process.control_results.update({"bad": "it is bad", "no": 0.0})
        prefix = "Failed to process the request for model 'm_0', message: it is bad"
        self.assertEqual(
            ["None", "None", "None", "True", "False", "TritonModelException: Failed to load model: " + prefix,
             "TritonModelException: Failed to unload model: " + prefix,
             "TritonModelException: Failed to check model readiness: " + prefix,
             "TritonModelException: failed to load model 'a', files should be a dictionary of file paths and file contents",
             "TypeError: model_name: int (expected: str)"], eval(self.out(process, "control")))
        self.assertEqual([("load", "a", "", {}), ("load", "b", "{}", {"file:1/x": b"\0"}), ("unload", "a", True),
                          ("ready", "a", ""), ("ready", "no", "2")], process.controls[:5])

    def test_slots_stay_while_a_forked_process_may_read_them(self):
        process = self.loaded("""
import multiprocessing
def read(pipe, array, tensor):
    pipe.recv()
    pipe.send([float(array.sum()), float(tensor.as_numpy().sum())])
class TritonPythonModel:
    child = None
    def execute(self, requests):
        tensor = requests[0].inputs()[0]
        array = tensor.as_numpy()
        if self.child is None and array[0] == 5:
            self.pipe, other = multiprocessing.Pipe()
            self.child = multiprocessing.get_context("fork").Process(target=read, args=(other, array, tensor), daemon=True)
            self.child.start()
        elif array[0] == 7:
            self.pipe.send(1)
            seen = self.pipe.recv()
            self.child.join()
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(seen))])]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)]) for _ in requests]
""")
        for value in (1, 2, 5, 3, 4, 3, 4, 3):
            array = np.full(10000, float(value))
            self.assertTrue(np.array_equal(array, process.one({"IN": array}).outputs["OUT"]))
        self.assertEqual([50000.0, 50000.0], process.one({"IN": np.full(10000, 7.0)}).outputs["OUT"].tolist())
        self.eventually(lambda: process.one({"IN": np.zeros(1)}) and not process.held)

    def test_forked_processes_have_arrays_of_their_own(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        out = []
        for r in requests:
            tensor = r.inputs()[0]
            array = tensor.as_numpy()
            m = array[0]
            if m != 7:
                out.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)]))
                continue
            other = r.inputs()[1]
            reader, writer = os.pipe()
            go, start = os.pipe()
            child = os.fork()
            if child == 0:
                os.read(go, 1)
                seen = [float(array[0]), float(array[-1])]
                array[:] = -1
                made = other.as_numpy()
                made[:] = -2
                try:
                    r.get_response_sender().send(answer("x"))
                except pb_utils.TritonModelException as e:
                    seen.append(str(e))
                os.write(writer, json.dumps(seen).encode())
                os._exit(0)
            array[-1] = 9
            os.write(start, b"x")
            seen = json.loads(os.read(reader, 1000))
            os.waitpid(child, 0)
            seen += [float(array[0]), float(array[1]), float(array[-1]), float(other.as_numpy().sum())]
            out.append(answer(json.dumps(seen)))
        return out
""", inputs=["A", "B"])
        for value in (1, 2, 3):
            array = np.full(10000, float(value))
            process.one({"A": array, "B": array})
        process.auto_release = False  # a response that lies in a free slot
        array = np.full(10000, 7.0)
        self.assertEqual([7, 7, "Unable to send response. A forked process cannot send responses.", 7, 7, 9, 70000],
                         json.loads(process.one({"A": array, "B": array}).outputs["OUT"][0].decode()))
        self.assertTrue(np.array_equal(array + 1, process.one({"A": array + 1, "B": array}).outputs["OUT"]))
        self.eventually(lambda: not process.held)

    def test_pool_of_initialize(self):
        process = self.loaded("""
import multiprocessing
def call(i):
    try:
        tensor = pb_utils.Tensor("X", np.arange(3, dtype=np.float32) + i)
        response = pb_utils.InferenceRequest(model_name="other", requested_output_names=["Y"], inputs=[tensor]).exec()
        return response.error().message() if response.has_error() else response.output_tensors()[0].as_numpy().tolist()
    except Exception as e:
        return repr(e)
class TritonPythonModel:
    def initialize(self, args):
        self.pool = multiprocessing.get_context("fork").Pool(2)
        self.early = self.pool.map(call, [0])
    def execute(self, requests):
        return [answer([self.early, self.pool.map(call, range(3))]) for _ in requests]
    def finalize(self):
        self.pool.terminate()
        print("terminated")
""", on_call=self.on_call)
        self.assertEqual("[[\"BLS is only supported during the 'execute' function.\"], [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "
                         "[3.0, 4.0, 5.0]]]", self.out(process, ""))
        self.assertEqual(0, process.finalize())
        self.assertIn("terminated", process.output())

    def test_forked_processes(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        self.assertEqual([[[("Y", 20000)]] * 10, ["__ErrorCode.INTERNAL Model refused - Error when running inference: no such "
                                                  "thing"]], eval(self.out(process, "pool")))
        self.assertTrue(any(message == "from a forked process" for _, _, _, message in process.logs))
        array = np.ones(100000)
        response = process.one({"MODE": texts("pool slot"), "IN": array})
        self.assertEqual("[[('Y', [100000.0])], [('Y', [100000.0])]]", response.outputs["OUT"][0].decode())
        self.assertEqual("[('Y', [1.0, 2.0, 3.0])]", self.out(process, "other"))

    def test_forked_processes_drop_calls(self):
        process = self.loaded(self.CODE, on_call=self.on_call)
        self.assertEqual("[None, None]", self.out(process, "pool drop"))
        self.eventually(lambda: len(process.dropped_calls) == 2)  # while the forked process lives
        self.assertEqual([call["id"] for call in process.calls], process.dropped_calls)
        self.assertEqual("[[('Y', 20000)]]", self.out(process, "pool end"))
        self.assertEqual((2, 2), (len(process.dropped_calls), len(process.families)))

    def test_last_response_at_the_end_of_a_forked_process(self):
        counts = []

        relays = {}

        def drop(ident):
            # The thread that reads has just taken the call from the table: its last response arrives.
            relays.pop(ident).arrived(InferenceResponse([]), True)

        runner = types.SimpleNamespace(
            channel=types.SimpleNamespace(want_reading=lambda wanted: counts.append(1 if wanted else -1), send=len),
            calls=types.SimpleNamespace(allowed=True, relay_call=relays.__setitem__, drop=drop))
        ours, theirs = socket.socketpair()
        child = forks._Child(runner, ours, [], False)
        theirs.sendall(protocol.frame(protocol.CALL, 0, 0, 7, bytes(protocol.CALL_HEAD.size)))
        theirs.shutdown(socket.SHUT_WR)
        child.serve()
        theirs.close()
        self.assertEqual([1, -1], counts)

    ASYNC = """
class TritonPythonModel:
    async def execute(self, requests):
        tensor = pb_utils.Tensor("X", np.arange(3, dtype=np.float32))
        q = lambda m: pb_utils.InferenceRequest(model_name=m, requested_output_names=["Y"], inputs=[tensor])
        futures = [q("other").async_exec() for _ in range(8)]
        responses = await asyncio.gather(*futures)
        count = 0
        for response in await q("stream").async_exec(decoupled=True):
            count += 1
        blocked = q("other").exec()
        result = [answer([len(responses), responses[0].output_tensors()[0].as_numpy().tolist(), count, blocked.has_error()])
                  for _ in requests]
        if not %s:
            return result
        for request, response in zip(requests, result):
            request.get_response_sender().send(response, flags=FINAL)
"""

    def test_coroutines(self):
        for decoupled in (False, True):
            process = self.loaded(self.ASYNC % decoupled, on_call=self.on_call, decoupled=decoupled)
            started = time.monotonic()
            for _ in range(3):
                self.assertEqual("[8, [1.0, 2.0, 3.0], 4, False]", self.out(process, ""))
            self.assertLess(time.monotonic() - started, 5)
            self.assertNotEqual(0, process.calls[-1]["execution"])

    def test_calls_from_a_thread_while_idle(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        def run():
            time.sleep(0.1)
            tensor = pb_utils.Tensor("X", np.arange(3, dtype=np.float32))
            for _ in range(100):
                response = pb_utils.InferenceRequest(model_name="other", requested_output_names=["Y"], inputs=[tensor]).exec()
            sender.send(answer(response.has_error()), flags=FINAL)
        threading.Thread(target=run).start()
        return [None]
""", on_call=self.on_call)
        self.assertEqual("False", self.out(process, ""))


class DisturbanceTest(ProcessTest):
    def test_changed_directory_closed_streams_and_threads(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        os.chdir("/")
        sys.stdout.close()
        os.close(1)
        def idle():
            time.sleep(0.2)
        threads = [threading.Thread(target=idle) for _ in range(500)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        os.write(2, bytes(range(256)) * 100)
        return [answer("ok") for _ in requests]
""")
        self.assertEqual("ok", self.out(process, ""))

    def test_signal_handlers_in_the_middle_of_a_write(self):
        process = self.loaded("""
import signal
class TritonPythonModel:
    def execute(self, requests):
        out = []
        for r in requests:
            m = mode(r)
            count = 0
            raised = 0
            def handler(*_):
                nonlocal count
                count += 1
                pb_utils.Logger.log_info("signal")
                if m == "raise" and count % 2:
                    raise TimeoutError("too long")
            signal.signal(signal.SIGALRM, handler)
            data = np.zeros(3000000, np.uint8)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.003)
            sender = r.get_response_sender()
            for i in range(20):
                try:
                    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]))
                except TimeoutError:
                    raised += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            sender.send(answer([count, raised]), FINAL)
""", inline=1 << 30, decoupled=True)
        receive = process.receive_exactly
        process.receive_exactly = lambda size: (time.sleep(0.01 if size > 1 << 20 else 0), receive(size))[1]
        for value in ("log", "raise"):
            responses = process.execute({"MODE": texts(value)}, 10)[0]
            count, raised = eval(responses[-1].outputs["OUT"][0].decode())
            self.assertGreater(count, 10)
            self.assertEqual(value == "raise", raised > 0)
            for response in responses[:-1]:
                self.assertEqual((3000000, 0), (response.outputs["OUT"].size, response.outputs["OUT"].max()))
            if value == "log":  # a handler that is itself interrupted by an exception does not log
                self.eventually(lambda: len(process.logs) >= count)

    def test_signal_handlers_that_raise_outside_of_the_model(self):
        process = self.loaded("""
import signal
def handler(*_):
    raise TimeoutError("too long")
class TritonPythonModel:
    def execute(self, requests):
        signal.signal(signal.SIGALRM, handler)
        m = mode(requests[0])
        data = np.zeros(4 if m == "small" else 8000000, np.uint8)
        if m != "none":
            signal.setitimer(signal.ITIMER_REAL, 0.1 if m == "small" else 0.03)
            if m == "thread":
                threading.Thread(target=time.sleep, args=(0.2,)).start()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]) for _ in requests]
""", inline=1 << 30)
        receive = process.receive_exactly
        process.receive_exactly = lambda size: (time.sleep(0.1 if size > 1 << 20 else 0), receive(size))[1]
        for value in ("small", "large", "thread", "none"):
            response = process.one({"MODE": texts(value)})
            self.assertEqual(4 if value == "small" else 8000000, response.outputs["OUT"].size)
            time.sleep(0.2)
        self.assertEqual(3, process.output("stderr").count("a signal handler of the model has raised outside of the model"))

    def test_closed_low_descriptors(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        os.closerange(3, 256)
        return [answer("ok") for _ in requests]
""")
        self.assertEqual("ok", self.out(process, ""))
        self.assertEqual("ok", self.out(process, ""))

    def test_closed_channel_is_told(self):
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        os.closerange(3, 4096)
        return [answer("ok") for _ in requests]
""")
        with self.assertRaises(ProcessEnded):
            process.one({"MODE": texts("")})
        self.assertEqual(1, process.process.wait(10))

    def test_executions_with_threads_that_call_and_collect(self):
        process = self.loaded("""
class TritonPythonModel:
    def initialize(self, args):
        self.stop = False
        def run():
            tensor = pb_utils.Tensor("X", np.zeros(20000, np.float32))
            while not self.stop:
                pb_utils.InferenceRequest(model_name="other", requested_output_names=["Y"], inputs=[tensor]).exec()
                gc.collect(0)
        self.thread = threading.Thread(target=self.later, args=(run,), daemon=True)
        self.thread.start()
    def later(self, run):
        time.sleep(0.2)
        run()
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
    def finalize(self):
        self.stop = True
        self.thread.join(5)
""", on_call=lambda process, call: process.respond(call, {"Y": call["inputs"]["X"]}))
        end = time.monotonic() + 2
        count = 0
        while time.monotonic() < end:
            array = np.full(5000 + count % 3000, count, np.float32)
            response = process.one({"IN": array})
            self.assertTrue(np.array_equal(array, response.outputs["OUT"]))
            count += 1
        self.assertGreater(count, 20)
        self.assertGreater(len(process.calls), 20)


class ProtocolTest(ProcessTest):
    def test_example_of_the_page(self):
        with open(os.path.join(peer.HERE, "..", "..", "..", "PROTOCOL.md")) as file:
            page = file.read()
        blocks = re.findall(r"```\n((?:[0-9a-f]{2}[ \n])+)```", page)
        request, response = (bytes.fromhex(block.replace("\n", " ")) for block in blocks)
        process = self.loaded("""
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
""", inputs=["IN"], outputs=["OUT"])
        seen = []
        dispatch = process.dispatch
        process.dispatch = lambda data, *rest: (seen.append(data), dispatch(data, *rest))
        array = np.array([[1, 2]], np.float32)
        self.assertEqual(request, process.encode_execute(1, [{"inputs": {"IN": array}, "id": "a"}], [7]))
        process.executed[1] = ([7], False, 0)
        process.send(request)
        process.wait(lambda: process.executed[1][1])
        self.assertEqual([response], seen)

    def test_page_has_all_frames(self):
        with open(os.path.join(peer.HERE, "..", "..", "..", "PROTOCOL.md")) as file:
            page = file.read()
        names = ("OPEN COMPLETE INITIALIZE EXECUTE CHECK_READY FINALIZE CANCEL CREDIT RELEASE SEGMENT SEGMENT_REFUSED "
                 "SEGMENT_REMOVE CALL_RESPONSE REPLY LOG_LEVELS HELLO DONE COMPLETED EXECUTED RESPONSE FAILED READY RELEASED "
                 "SEGMENT_WANTED SEGMENT_RETURNED CALL CALL_CREDIT CALL_CANCEL CALL_DROP CONTROL METRIC LOG NOTICE").split()
        for name in names:
            self.assertIn("| %d | %s |" % (getattr(protocol, name), name), page)


class SourceTest(unittest.TestCase):
    def test_sources_have_the_syntax_of_python_3_9(self):
        import ast

        for directory, _, names in os.walk(peer.MAIN):
            for name in names:
                if name.endswith(".py"):
                    with open(os.path.join(directory, name)) as file:
                        text = file.read()
                    ast.parse(text, name, feature_version=(3, 9))
                    self.assertIsNone(re.search(r"^\s*(import|from) (imp|distutils|asyncore|asynchat|smtpd|cgi|pipes|telnetlib)\b",
                                                text, re.M), name)


if __name__ == "__main__":
    unittest.main()
