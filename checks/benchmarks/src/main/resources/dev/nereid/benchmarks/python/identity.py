"""Returns its input, as models do: through an array."""

import os

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        # Which process this is, for readings of its processor time.
        with open(os.path.join(args["model_repository"], "process"), "w") as file:
            file.write(str(os.getpid()))

    def execute(self, requests):
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", array)]))
        return responses
