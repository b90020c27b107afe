"""Requests to another model that do not need each other: asyncio waits for all of them at once."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        return await asyncio.gather(*(respond(request) for request in requests))


async def respond(request):
    """Returns the response to one request, which is an error if one of its calls has failed."""
    a, b, c = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("A", "B", "C"))
    calls = [add_sub(first, second).async_exec() for first, second in ((a, b), (b, c), (a, c))]
    called = await asyncio.gather(*calls)
    for response in called:
        if response.has_error():
            return pb_utils.InferenceResponse(error=response.error())
    sums = [pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy() for response in called]
    return pb_utils.InferenceResponse([pb_utils.Tensor("SUMS", np.stack(sums, axis=1))])


def add_sub(first, second):
    return pb_utils.InferenceRequest(
        model_name="add_sub",
        inputs=[pb_utils.Tensor("INPUT0", first), pb_utils.Tensor("INPUT1", second)],
        requested_output_names=["OUTPUT0"],
    )
