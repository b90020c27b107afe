"""The recorded models give the recorded responses, as far as Python decides them."""

import json
import os
import unittest

import numpy as np

import golden
import peer
from peer import LoadError, Peer

ROOT = golden.root()


@unittest.skipIf(ROOT is None, "the record of Triton's Python backend is not here (NEREID_GOLDEN_PYTHON names it)")
class GoldenTest(unittest.TestCase):
    """Each exchange of the record against the process of its model."""

    @classmethod
    def setUpClass(cls):
        cls.models = os.path.join(ROOT, "models")
        cls.peers = {}
        cls.configs = {}

    @classmethod
    def tearDownClass(cls):
        for process in cls.peers.values():
            process.close()

    @classmethod
    def model(cls, name):
        if name not in cls.peers:
            config = golden.configuration(name, cls.models)
            process = Peer(os.path.join(cls.models, name), config=config, on_call=cls.on_call)
            cls.peers[name] = process
            process.open()
            if not config["input"]:
                completed = process.complete()
                config = completed["json"]
                process.config = config
            process.decoupled = bool((config.get("model_transaction_policy") or {}).get("decoupled"))
            process.inputs = [tensor["name"] for tensor in config["input"]]
            process.outputs = [tensor["name"] for tensor in config["output"]]
            for control in (config.get("sequence_batching") or {}).get("control_input", []):
                process.inputs.append(control["name"])
            cls.configs[name] = config
            process.initialize()
        return cls.peers[name]

    @classmethod
    def on_call(cls, caller, call):
        """Responds to a request of a model as the server does."""
        name = call["model"]
        if not os.path.isdir(os.path.join(cls.models, name)) or call["version"] not in (-1, 1):
            caller.respond(
                call, error="Failed for execute the inference request. Model '%s' is not ready." % name, refused=True)
            return
        process = cls.model(name)
        if process.decoupled and not call["decoupled"]:
            caller.respond(
                call, refused=True,
                error="Model %s is using the decoupled. The current BLS request call doesn't support models using the "
                "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls "
                "for decoupled models.'" % name)
            return
        if name == "py_addsub":
            refusal = None
            if len(call["inputs"]) == 1:
                refusal = (
                    "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'py_addsub'. Got input(s) "
                    "['INPUT0'], but missing required input(s) ['INPUT1']. Please provide all required input(s).")
            elif "NOPE" in call["outputs"]:
                refusal = "unexpected inference output 'NOPE' for model 'py_addsub'"
            elif call["inputs"]["INPUT0"].shape != (1, 4):
                refusal = (
                    "[request id: <id_unknown>] unexpected shape for input 'INPUT0' for model 'py_addsub'. Expected "
                    "[-1,4], got [1,2]. NOTE: Setting a non-zero max_batch_size in the model config requires a batch "
                    "dimension to be prepended to each input shape. If you want to specify the full shape including "
                    "the batch dim in your input dims config, try setting max_batch_size to zero. See the model "
                    "configuration docs for more info on max_batch_size.")
            if refusal is not None:
                caller.respond(call, error=refusal, refused=True)
                return
        for response in process.execute([{"inputs": call["inputs"], "outputs": call["outputs"]}])[0]:
            if response.error is not None:
                caller.respond(call, error=response.error, code=response.code, final=response.final)
            else:
                caller.respond(call, outputs=response.outputs, final=response.final)

    def parse(self, exchange):
        start, _, body = exchange["request"].partition("\r\n\r\n")
        method, path, _ = start.split("\r\n")[0].split(" ")
        return method, path.split("/"), json.loads(body) if body else None

    def request(self, process, body):
        parameters = body.get("parameters") or {}
        request = {"inputs": {tensor["name"]: golden.array(tensor) for tensor in body["inputs"]}}
        if "outputs" in body:
            request["outputs"] = [output["name"] for output in body["outputs"]]
        request["id"] = body.get("id", "")
        start = parameters.pop("sequence_start", False)
        end = parameters.pop("sequence_end", False)
        request["correlation"] = parameters.pop("sequence_id", 0)
        request["flags"] = (1 if start else 0) | (2 if end else 0)
        if parameters:
            request["parameters"] = json.dumps(parameters, separators=(",", ":"))
        if "START" in process.inputs:
            request["inputs"]["START"] = np.array([[float(start)]], np.float32)
            request["inputs"]["END"] = np.array([[int(end)]], np.int32)
            request["inputs"]["ID"] = np.array([[request["correlation"]]], np.uint64)
        return request

    def compare(self, exchange, name, process, response):
        body = exchange["body"]
        if exchange["status"] != 200:
            recorded = json.loads(body)["error"]
            self.assertTrue((response.error or "").startswith(recorded), (recorded, response))
            self.assertEqual(exchange["status"], golden.STATUS[response.code])
            return
        recorded = json.loads(body)
        self.assertIsNone(response.error)
        self.assertEqual(recorded.get("parameters", {}), response.parameters)
        self.assertEqual([output["name"] for output in recorded["outputs"]], response.order)
        for output in recorded["outputs"]:
            value = response.outputs[output["name"]]
            self.assertEqual(output["shape"], list(value.shape))
            self.assertEqual(golden.TYPES[output["datatype"]], golden.datatypes.number_of(value.dtype))
            data = golden.listed(value)
            if name == "py_args":
                # The names of the fields are the server's.
                del data[12], output["data"][12]
            expected = output["data"]
            if expected and isinstance(expected[0], float):
                self.assertTrue(np.array_equal(np.array(expected, value.dtype), value.reshape(-1)))
            else:
                self.assertEqual(expected, data)

    def test_exchanges(self):
        compared = 0
        for exchange in golden.exchanges(ROOT):
            method, path, body = self.parse(exchange)
            if method != "POST":
                continue
            name, operation = path[3], path[4]
            with self.subTest(n=exchange["n"], title=exchange["title"]):
                if name == "py_bad_import" or (name == "py_addsub" and exchange["status"] != 200):
                    continue  # the server refuses these
                if name == "py_sequence" and exchange["status"] != 200:
                    continue
                process = self.model(name)
                if operation == "infer":
                    if process.decoupled:
                        continue  # the front end refuses these
                    responses = process.execute([self.request(process, body)])[0]
                    responses = [r for r in responses if r.outputs is not None or r.error is not None]
                    self.compare(exchange, name, process, responses[0])
                else:
                    self.stream(exchange, process, operation, body)
                compared += 1
        self.assertGreater(compared, 90)

    def stream(self, exchange, process, operation, body):
        inputs = {name: peer.texts(value) for name, value in body.items()}
        responses = process.execute([{"inputs": inputs}])[0]
        responses = [r for r in responses if r.outputs is not None or r.error is not None]
        if operation == "generate":
            if exchange["status"] == 200 and "error" not in json.loads(exchange["body"]):
                self.assertEqual(json.loads(exchange["body"])["OUT"], golden.listed(responses[0].outputs["OUT"])[0])
            return
        events = [json.loads(line[6:]) for line in exchange["body"].split("\n") if line.startswith("data: ")]
        title = exchange["title"]
        if title.endswith("returned list"):
            # The final flag was sent before the error, which no client sees.
            responses = responses[:1]
        self.assertEqual(len(events), len(responses), (events, responses))
        for event, response in zip(events, responses):
            if "error" in event:
                self.assertTrue(response.error.startswith(event["error"]), response.error)
            else:
                self.assertEqual(event.pop("OUT"), golden.listed(response.outputs["OUT"])[0])
                event.pop("model_name")
                event.pop("model_version")
                self.assertEqual(event, response.parameters)

    def test_loads(self):
        with open(os.path.join(ROOT, "loads.json")) as file:
            loads = json.load(file)
        for name, reason in loads.items():
            with self.subTest(model=name):
                config = golden.configuration(name, self.models)
                with Peer(os.path.join(self.models, name), config=config) as process:
                    with self.assertRaises(LoadError) as caught:
                        process.open()
                        if name.startswith("py_auto"):
                            process.complete()
                        process.initialize()
                    self.assertTrue(("Internal: " + str(caught.exception)).startswith(reason), str(caught.exception))

    def test_completions(self):
        expected = {
            "py_auto": (4, 0, "dynamic_batching"), "py_auto_zero": (0, 0, ""), "py_auto_decoupled": (0, 2, ""),
        }
        for name, (size, decoupled, scheduling) in expected.items():
            with self.subTest(model=name):
                config = golden.configuration(name, self.models)
                with Peer(os.path.join(self.models, name), config=config) as process:
                    self.assertEqual(1, process.open())
                    completed = process.complete()
                    self.assertEqual(size, completed["max_batch_size"])
                    self.assertEqual(decoupled, completed["decoupled"])
                    self.assertEqual(scheduling, completed["scheduling"])
                    self.assertEqual("TYPE_FP32", completed["input"][0]["data_type"])
                    self.assertEqual([4], completed["output"][0]["dims"])


if __name__ == "__main__":
    unittest.main()
