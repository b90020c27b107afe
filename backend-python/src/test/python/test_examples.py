"""The models of examples/python respond as plain Python does."""

import csv
import importlib.util
import json
import os
import struct
import subprocess
import sys
import unittest
import zlib

import numpy as np

import peer
from peer import Peer, texts
from nereid_model import config

EXAMPLES = os.path.abspath(os.path.join(peer.HERE, *[os.pardir] * 4, "examples"))
MODELS = os.path.join(EXAMPLES, "python", "models")
ENSEMBLES = ("read_digit",)
LABELS = "zero one two three four five six seven eight nine".split()
HAS_SKLEARN = importlib.util.find_spec("sklearn") is not None


def path(*parts):
    return os.path.join(MODELS, *parts)


def request(model):
    with open(path(model, "request.json"), encoding="utf-8") as file:
        return json.load(file)


def run(model, *requests):
    """Runs the command of nereid_model; returns its status, the responses, and what it wrote to standard error."""
    command = [sys.executable, "-m", "nereid_model", "test", path(model)]
    command.append("-" if requests else path(model, "request.json"))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([peer.MAIN, os.environ.get("PYTHONPATH", "")]))
    ended = subprocess.run(command, input=json.dumps(requests).encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=environment, timeout=60, check=False)
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr.decode()


def inputs(**arrays):
    """Returns a request in JSON."""
    types = {"i": "INT32", "f": "FP32", "O": "BYTES"}
    return {"inputs": [
        {"name": name, "datatype": types[array.dtype.kind], "shape": list(array.shape), "data": array.reshape(-1).tolist()}
        for name, array in arrays.items()]}


class ExamplesTest(unittest.TestCase):
    """Each example by ``nereid_model``, or with the test's side of the protocol where a model needs a server."""

    def respond(self, model, *requests):
        """Returns the outputs of each response: name to array."""
        status, responses, errors = run(model, *requests)
        self.assertEqual(0, status, errors)
        kinds = {"BYTES": np.object_, "FP32": np.float32, "FP64": np.float64, "INT64": np.int64}
        return [
            {output["name"]: np.array(output["data"], kinds[output["datatype"]]).reshape(output["shape"])
             for output in response["outputs"]} for response in responses]

    def loaded(self, model, on_call=None):
        """Starts the process of a model."""
        settings = config.read(path(model))
        process = Peer(path(model), config=settings, on_call=on_call)
        self.addCleanup(process.close)
        process.inputs = [tensor["name"] for tensor in settings["input"]]
        process.outputs = [tensor["name"] for tensor in settings["output"]]
        process.decoupled = bool((settings.get("model_transaction_policy") or {}).get("decoupled"))
        process.open()
        process.initialize()
        return process

    def test_each_example_has_a_request(self):
        models = sorted(os.listdir(MODELS))
        self.assertGreaterEqual(len(models), 8)
        for model in models:
            with self.subTest(model):
                names = {tensor["name"] for tensor in request(model)["inputs"]}
                configured = {tensor["name"] for tensor in config.read(path(model))["input"]}
                self.assertTrue(names == configured or not configured)
                self.assertEqual(model in ENSEMBLES, not os.path.exists(path(model, "1", "model.py")))

    # Pictures

    def test_pictures_become_pixels(self):
        outputs = self.respond("digit_preprocess")
        with open(os.path.join(EXAMPLES, "training", "digits_test.csv"), encoding="utf-8") as file:
            seven = next(row for row in csv.reader(file) if row[0] == "7")
        expected = np.array([float(value) for value in seven[1:]]).reshape(1, 1, 8, 8) / 16
        self.assertLess(np.abs(outputs[0]["PIXELS"] - expected).max(), 1 / 255)

    def test_png_files_are_read_like_netpbm_files(self):
        process = self.loaded("digit_preprocess")
        for digit in range(10):
            with open(os.path.join(EXAMPLES, "images", "digit_%d_0.png" % digit), "rb") as file:
                png = file.read()
            pixels = process.one({"PICTURE": texts(png).reshape(1, 1)}).outputs["PIXELS"]
            values = (pixels * 255).round().astype(np.uint8).reshape(-1)
            for netpbm in (b"P5 8 8 255\n" + values.tobytes(), b"P6\n#c\n8 8\n255\n" + values.repeat(3).tobytes(),
                           b"P2 8 8 255\n" + " ".join(map(str, values)).encode()):
                again = process.one({"PICTURE": texts(netpbm).reshape(1, 1)}).outputs["PIXELS"]
                self.assertTrue(np.allclose(pixels, again, atol=1e-6))

    def test_all_filters_of_png(self):
        process = self.loaded("digit_preprocess")
        picture = np.random.default_rng(1).integers(0, 256, (20, 16, 3), dtype=np.uint8)
        expected = picture.astype(np.float32).mean(axis=2) / 255
        fields = [[field.mean() for field in np.array_split(rows, 8, axis=1)] for rows in np.array_split(expected, 8)]
        pixels = process.one({"PICTURE": texts(png_of(picture)).reshape(1, 1)}).outputs["PIXELS"]
        self.assertTrue(np.allclose(fields, pixels[0, 0], atol=1e-5))

    def test_a_broken_picture_fails_its_own_request(self):
        process = self.loaded("digit_preprocess")
        good = png_of(np.zeros((8, 8, 3), np.uint8))
        bomb = good[:16] + struct.pack(">II", 1 << 30, 1 << 30) + good[24:]
        broken = [b"", b"GIF89a", good[:-30], good[:20], bomb, b"P5 8 8 255\n", b"P2 8 8 255\n1 2 x", b"P5 4 4 255\n" + b"0" * 16,
                  b"P5 8 8 0\n" + b"0" * 64, b"P6 99999 99999 255\n"]
        for file in broken:
            responses = process.execute([{"PICTURE": texts(file).reshape(1, 1)}, {"PICTURE": texts(good).reshape(1, 1)}])
            self.assertTrue(responses[0][0].error.startswith("PICTURE: "), responses)
            self.assertEqual(3, responses[0][0].code)
            self.assertEqual((1, 1, 8, 8), responses[1][0].outputs["PIXELS"].shape)

    def test_probabilities_become_labels(self):
        rows = np.random.default_rng(2).random((5, 10), dtype=np.float32)
        responses = self.respond("digit_postprocess", inputs(PROBABILITIES=rows[:2]), inputs(PROBABILITIES=rows[2:]))
        self.assertEqual([(2, 1), (3, 1)], [outputs["JSON"].shape for outputs in responses])
        found = [json.loads(text) for outputs in responses for text in outputs["JSON"].reshape(-1)]
        self.assertEqual([{"label": LABELS[row.argmax()], "probability": round(float(row.max()), 4)} for row in rows], found)

    # Model calls

    def add_sub(self, process, call):
        """Responds as the model add_sub."""
        first, second = call["inputs"]["INPUT0"], call["inputs"]["INPUT1"]
        if (first < 0).any():
            process.respond(call, error="negative", code=3)
            return
        outputs = {"OUTPUT0": first + second, "OUTPUT1": first - second}
        process.respond(call, {name: outputs[name] for name in call["outputs"]})

    def test_calls_in_sequence(self):
        process = self.loaded("call_in_sequence", self.add_sub)
        a, b, c = np.random.default_rng(3).integers(0, 1000, (3, 2, 4), dtype=np.int32)
        response = process.one({"A": a, "B": b, "C": c})
        self.assertTrue(np.array_equal(a + b - c, response.outputs["RESULT"]), response)
        self.assertEqual(["add_sub"] * 2, [call["model"] for call in process.calls])
        self.assertIn("TritonModelException: negative", process.one({"A": -a - 1, "B": b, "C": c}).error)

    def test_calls_at_once(self):
        waiting = []

        def respond_to_all(process, call):
            waiting.append(call)
            if len(waiting) % 6 == 0:
                for one in waiting[-6:]:
                    self.add_sub(process, one)

        process = self.loaded("call_at_once", respond_to_all)
        a, b, c = np.random.default_rng(4).integers(0, 1000, (3, 2, 4), dtype=np.int32)
        # Two requests with three calls each: none is responded to before all six are there.
        responses = process.execute([{"A": a, "B": b, "C": c}, {"A": c, "B": a, "C": b}])
        for response, (x, y, z) in zip(responses, ((a, b, c), (c, a, b))):
            self.assertTrue(np.array_equal(np.stack([x + y, y + z, x + z], axis=1), response[0].outputs["SUMS"]), response)
        responses = process.execute([{"A": -a - 1, "B": b, "C": c}, {"A": a, "B": b, "C": c}])
        self.assertEqual(("negative", 3), (responses[0][0].error, responses[0][0].code))
        self.assertIsNone(responses[1][0].error)

    def test_calls_need_a_server(self):
        for model in ("call_in_sequence", "call_at_once"):
            status, responses, _ = run(model)
            self.assertEqual(1, status)
            self.assertIn("Model add_sub - Error when running inference: calls need a server", responses[0]["error"])

    # Streams

    def test_words_are_streamed(self):
        outputs = self.respond("stream_words", inputs(text_input=np.array(["über uns alle"], np.object_)))
        self.assertEqual(["über", "uns", "alle"], [output["text_output"][0] for output in outputs])
        self.assertEqual([], self.respond("stream_words", inputs(text_input=np.array([""], np.object_))))

    def test_streams_do_not_wait_for_each_other_and_end_when_cancelled(self):
        process = self.loaded("stream_words")
        _, first = process.start([{"inputs": {"text_input": texts("word " * 1000)}}])
        self.assertEqual(b"short", process.execute([{"text_input": texts("short")}])[0][0].outputs["text_output"][0])
        process.cancel(first[0])
        process.wait_final(first)
        self.assertLess(len(process.responses[first[0]]), 1000)

    # scikit-learn

    @unittest.skipUnless(HAS_SKLEARN, "scikit-learn is not installed")
    def test_digits_of_scikit_learn(self):
        with open(os.path.join(EXAMPLES, "training", "digits_test.csv"), encoding="utf-8") as file:
            rows = [[float(value) for value in row] for row in csv.reader(file) if row[0].isdigit()][:60]
        images = np.array(rows, np.float32)[:, 1:] / 16
        responses = self.respond("digits_sklearn", inputs(IMAGE=images[:20]), inputs(IMAGE=images[20:]))
        digits = np.concatenate([outputs["DIGIT"] for outputs in responses]).reshape(-1)
        self.assertGreaterEqual(np.sum(digits == [row[0] for row in rows]), 55)

        # The same in plain Python.
        import sklearn.datasets
        import sklearn.linear_model
        known, labels = sklearn.datasets.load_digits(return_X_y=True)
        plain = sklearn.linear_model.LogisticRegression(max_iter=200).fit(known / 16, labels)
        probabilities = np.concatenate([outputs["PROBABILITIES"] for outputs in responses])
        self.assertTrue(np.allclose(plain.predict_proba(images), probabilities))

    @unittest.skipIf(HAS_SKLEARN, "scikit-learn is installed")
    def test_a_missing_library_is_named_with_the_cure(self):
        status, _, errors = run("digits_sklearn")
        self.assertEqual(1, status)
        self.assertIn("apt-get install python3-sklearn", errors)

    # The same model in Java

    def test_tokens(self):
        with open(os.path.join(EXAMPLES, "pipeline-models", "date_tokenizer", "alphabet.txt"), encoding="utf-8") as file:
            alphabet = file.read()
        with open(path("date_tokens", "alphabet.txt"), encoding="utf-8") as file:
            self.assertEqual(alphabet, file.read())
        characters = alphabet.split("\n")
        outputs = self.respond("date_tokens")
        for text, tokens in zip(request("date_tokens")["inputs"][0]["data"], outputs[0]["TOKENS"]):
            expected = [characters.index(character) for character in text.lower()]
            self.assertEqual(expected + [0] * (40 - len(text)), tokens.tolist())
        odd = self.respond("date_tokens", inputs(TEXT=np.array([["ä€1"]], np.object_)))[0]["TOKENS"]
        self.assertEqual([1, 1, characters.index("1")], odd[0, :3].tolist())
        status, responses, _ = run("date_tokens", inputs(TEXT=np.array([[""]], np.object_)))
        self.assertEqual((1, {"error": "TEXT: 0 characters (expected: 1 to 40)", "code": 3}), (status, responses[0]))


def png_of(pixels):
    """Returns a PNG file with each filter in turn."""
    height, width, channels = pixels.shape
    padded = np.zeros((height + 1, width + 1, channels), np.int32)
    padded[1:, 1:] = pixels
    left, above, corner = padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    away = np.abs([above - corner, left - corner, left + above - 2 * corner])
    predictions = [0 * left, left, above, (left + above) // 2, np.choose(away.argmin(axis=0), [left, above, corner])]
    lines = b"".join(
        bytes([y % 5]) + ((pixels[y] - predictions[y % 5][y]) & 255).astype(np.uint8).tobytes() for y in range(height))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


if __name__ == "__main__":
    unittest.main()
