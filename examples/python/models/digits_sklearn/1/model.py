"""Handwritten digits by scikit-learn. There is no config.pbtxt: the model completes its configuration by itself.

``model.joblib`` beside this file is served if it exists. Else a small model is trained when the server loads this one.
"""

import os

import numpy as np
import triton_python_backend_utils as pb_utils

try:
    import joblib
    import sklearn.datasets
    import sklearn.linear_model
except ImportError as error:
    raise pb_utils.TritonModelException(
        "digits_sklearn needs scikit-learn, and this Python has none: %s (expected: 'apt-get install python3-sklearn' for "
        "Debian's Python, or the parameter EXECUTION_ENV_PATH with an environment that has it)" % error
    ) from error


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(64)
        config.set_dynamic_batching()
        config.add_input({"name": "IMAGE", "data_type": "TYPE_FP32", "dims": [64]})
        config.add_output({"name": "DIGIT", "data_type": "TYPE_INT64", "dims": [1]})
        config.add_output({"name": "PROBABILITIES", "data_type": "TYPE_FP64", "dims": [10]})
        return config

    def initialize(self, args):
        # Loading such a file executes code of whoever wrote it, like model.py itself.
        file = os.path.join(pb_utils.get_model_dir(), "model.joblib")
        if os.path.exists(file):
            self.model = joblib.load(file)
        else:
            pb_utils.Logger.log_info("no model.joblib: trains a model with the digits of scikit-learn")
            self.model = train()

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy() for request in requests]
        # One call of scikit-learn for all requests of the batch: most of its time does not depend on the rows.
        probabilities = self.model.predict_proba(np.concatenate(inputs))
        digits = self.model.classes_[probabilities.argmax(axis=1)].astype(np.int64).reshape(-1, 1)
        responses, start = [], 0
        for array in inputs:
            end = start + len(array)
            outputs = [
                pb_utils.Tensor("DIGIT", digits[start:end]),
                pb_utils.Tensor("PROBABILITIES", probabilities[start:end]),
            ]
            responses.append(pb_utils.InferenceResponse(outputs))
            start = end
        return responses


def train():
    """Returns a model of 8 x 8 pixels from 0 (paper) to 1 (ink)."""
    images, digits = sklearn.datasets.load_digits(return_X_y=True)
    return sklearn.linear_model.LogisticRegression(max_iter=200).fit(images / 16, digits)
