"""Probabilities to JSON. All requests of a batch are computed at once."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.decimals = int(config["parameters"]["decimals"]["string_value"])
        with open(os.path.join(args["model_repository"], "labels.txt"), encoding="utf-8") as file:
            self.labels = file.read().split()

    def execute(self, requests):
        # A request has its own batch dimension: several rows, each of which is one picture.
        inputs = [pb_utils.get_input_tensor_by_name(request, "PROBABILITIES").as_numpy() for request in requests]
        rows = np.concatenate(inputs)
        best = rows.argmax(axis=1)
        texts = np.array([[self.text(row, index)] for row, index in zip(rows, best)], dtype=np.object_)
        parts = np.split(texts, np.cumsum([len(array) for array in inputs])[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("JSON", part)]) for part in parts]

    def text(self, row, index):
        return json.dumps({"label": self.labels[index], "probability": round(float(row[index]), self.decimals)})
