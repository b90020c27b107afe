"""The backend ``tokenize`` of examples/text (Tokenize.java), as a Python model."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

OTHER = 1


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.length = int(pb_utils.get_output_config_by_name(config, "TOKENS")["dims"][0])
        # A character's number is its line. The first two are for the places behind a text, and for other characters.
        with open(os.path.join(args["model_repository"], "alphabet.txt"), encoding="utf-8") as file:
            lines = file.read().split("\n")
        self.numbers = {line: number for number, line in enumerate(lines) if number > OTHER and line}

    def execute(self, requests):
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)
            try:
                tokens = np.stack([self.tokens(text.decode()) for text in texts])
            except ValueError as error:
                error = pb_utils.TritonError("TEXT: %s" % error, pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(error=error))
                continue
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOKENS", tokens)]))
        return responses

    def tokens(self, text):
        if not 0 < len(text) <= self.length:
            raise ValueError("%d characters (expected: 1 to %d)" % (len(text), self.length))
        tokens = np.zeros(self.length, dtype=np.int64)
        tokens[:len(text)] = [self.numbers.get(character, OTHER) for character in text.lower()]
        return tokens
