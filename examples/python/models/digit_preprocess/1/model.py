"""Picture files to tensors. The decoder is a module beside this file."""

import numpy as np
import triton_python_backend_utils as pb_utils

import pictures


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            files = pb_utils.get_input_tensor_by_name(request, "PICTURE").as_numpy()
            try:
                pixels = [pixels_of(file) for file in files.reshape(-1)]
            except pictures.PictureError as error:
                # What is wrong with one picture fails its own request, and no other one of the batch.
                error = pb_utils.TritonError("PICTURE: %s" % error, pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(error=error))
                continue
            output = pb_utils.Tensor("PIXELS", np.stack(pixels))
            responses.append(pb_utils.InferenceResponse([output]))
        return responses


def pixels_of(file):
    """Returns the picture in a file as FP32 [1, 8, 8]."""
    gray = pictures.read_gray(file)
    if gray.shape[0] < 8 or gray.shape[1] < 8:
        raise pictures.PictureError("%d x %d pixels (expected: at least 8 x 8)" % gray.shape[::-1])
    # The mean of the pixels in each of 8 x 8 fields.
    rows = np.array_split(gray, 8, axis=0)
    fields = [[field.mean() for field in np.array_split(row, 8, axis=1)] for row in rows]
    return np.array([fields], dtype=np.float32) / 255
