"""The command that runs a model without a server."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import peer
from nereid_model import config

MODEL = """
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily("f", "d", pb_utils.MetricFamily.COUNTER)
        self.counter = self.family.Metric(labels={"a": "b"})
        pb_utils.Logger.log_info("initialized")

    def execute(self, requests):
        out = []
        for r in requests:
            text = pb_utils.get_input_tensor_by_name(r, "TEXT").as_numpy().reshape(-1)[0].decode()
            self.counter.increment(1)
            if text == "raise":
                raise ValueError("wrong")
            if text == "call":
                called = pb_utils.InferenceRequest(model_name="o", requested_output_names=[], inputs=[]).exec()
                text = called.error().message()
            if text == "none":
                out.append(None)
                continue
            if text == "thread":
                sender = r.get_response_sender()
                send = lambda: sender.send(pb_utils.InferenceResponse([]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                threading.Thread(target=send).start()
                out.append(None)
                continue
            outputs = [pb_utils.Tensor("OUT", np.array([text, str(r.parameters())], dtype=object)),
                       pb_utils.Tensor("N", np.array([self.counter.value()], np.float32))]
            out.append(pb_utils.InferenceResponse(outputs, parameters={"p": 1, "q": "x", "r": True}))
        return out

    def finalize(self):
        print("finalized")
"""
CONFIG = """
# a comment
name: "m"
input [ { name: "TEXT", data_type: TYPE_STRING, dims: [ 1 ] } ]
output { name: "OUT" data_type: TYPE_STRING dims: [ -1 ] }
output { name: "N" data_type: TYPE_FP32 dims: 1 }
parameters { key: "k" value { string_value: 'v\\n' "w" } };
"""


class ModelCommandTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="nereid-python-models-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        os.makedirs(os.path.join(self.directory, "1"))
        self.write("1/model.py", MODEL)
        self.write("config.pbtxt", CONFIG)

    def write(self, name, content):
        with open(os.path.join(self.directory, name), "w") as file:
            file.write(content)

    def run_command(self, *requests):
        environment = dict(os.environ, PYTHONPATH=peer.MAIN)
        command = [sys.executable, "-m", "nereid_model", "test", self.directory]
        body = None
        if requests:
            command.append("-")
            body = json.dumps([{"id": "i", "inputs": [
                {"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": [text]}], "parameters": {"x": 1}}
                for text in requests]).encode()
        ended = subprocess.run(command, input=body, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                               timeout=30, check=False)
        lines = [line for line in ended.stdout.decode().split("\n") if line.startswith("{")]
        return ended.returncode, [json.loads(line) for line in lines], ended.stdout.decode(), ended.stderr.decode()

    def test_responses(self):
        status, responses, output, errors = self.run_command("a", "call")
        self.assertEqual(0, status, errors)
        self.assertEqual({"id": "i", "model_name": "m", "model_version": "1", "outputs": [
            {"name": "OUT", "datatype": "BYTES", "shape": [2], "data": ["a", '{"x":1}']},
            {"name": "N", "datatype": "FP32", "shape": [1], "data": [1.0]}], "parameters": {"p": 1, "q": "x", "r": True}},
            responses[0])
        self.assertEqual("Model o - Error when running inference: calls need a server", responses[1]["outputs"][0]["data"][0])
        self.assertIn("INFO model.py:", errors)
        self.assertIn("finalized", output)
        self.assertEqual(["model.py"], os.listdir(os.path.join(self.directory, "1")))

    def test_errors(self):
        status, responses, _, errors = self.run_command("raise")
        self.assertEqual(1, status)
        self.assertTrue(responses[0]["error"].startswith("Failed to process the request(s) for model 'm_0', message: ValueError"))
        self.assertIn("Traceback", errors)
        status, responses, _, _ = self.run_command("none")
        self.assertIn("returned no response", responses[0]["error"])

    def test_response_from_a_thread(self):
        self.assertEqual([[]], [r["outputs"] for r in self.run_command("thread")[1]])

    def test_load_alone_and_its_errors(self):
        self.assertEqual(0, self.run_command()[0])
        self.write("1/model.py", "import no_such_module\n")
        status, _, _, errors = self.run_command()
        self.assertEqual(1, status)
        self.assertIn("ModuleNotFoundError: No module named 'no_such_module'", errors)
        self.write("config.pbtxt", 'name: "m')
        self.assertIn("config.pbtxt: line 1", self.run_command()[3])

    def test_text_format(self):
        parsed = config.parse(CONFIG)
        self.assertEqual("m", parsed["name"])
        self.assertEqual([1], parsed["input"][0]["dims"])
        self.assertEqual([1], parsed["output"][1]["dims"])
        self.assertEqual({"key": "k", "value": {"string_value": "v\nw"}}, parsed["parameters"])
        self.assertEqual({"a": {"b": True, "c": 1.5, "d": "X"}}, config.parse("a < b: true c: 1.5 d: X >"))
        for wrong in ("a {", "a: [1", "a: @ \x00\"", "a"):
            with self.assertRaises(config.ConfigError):
                config.parse(wrong)


if __name__ == "__main__":
    unittest.main()
