"""Requests to another model, where the second one needs the result of the first."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            a, b, c = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("A", "B", "C"))
            total = call_add_sub(a, b, "OUTPUT0")
            result = call_add_sub(total, c, "OUTPUT1")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", result)]))
        return responses


def call_add_sub(first, second, output):
    """Returns an output of add_sub: OUTPUT0 is the sum, OUTPUT1 the difference."""
    request = pb_utils.InferenceRequest(
        model_name="add_sub",
        inputs=[pb_utils.Tensor("INPUT0", first), pb_utils.Tensor("INPUT1", second)],
        requested_output_names=[output],
    )
    response = request.exec()
    # A failure is a response with an error, and no exception.
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, output).as_numpy()
