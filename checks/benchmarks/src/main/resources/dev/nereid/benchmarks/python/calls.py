"""Calls another model one time after another for some seconds; returns calls, seconds, and two percentiles in microseconds."""

import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        seconds = float(pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().reshape(-1)[0])
        array = np.arange(256, dtype=np.float32).reshape(1, 256)
        times = []
        start = before = time.perf_counter()
        while before - start < seconds:
            call = pb_utils.InferenceRequest(
                model_name="identity",
                requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.Tensor("INPUT0", array)],
            )
            response = call.exec()
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
            output = pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy()
            after = time.perf_counter()
            times.append(after - before)
            before = after
        if not np.array_equal(output, array):
            raise pb_utils.TritonModelException("the model that is called returned another tensor")
        p50, p99 = np.percentile(times, [50, 99]) * 1e6
        figures = np.array([[len(times), before - start, p50, p99]], np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", figures)])
