"""Responses from a thread: execute returns at once, and the next request does not wait for the stream of this one."""

import json
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.pause = int(parameters["pause_ms"]["string_value"]) / 1000
        self.ending = threading.Event()

    def execute(self, requests):
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().reshape(-1)[0].decode()
            # The sender, not the request, is what a thread needs.
            threading.Thread(target=self.stream, args=(text, request.get_response_sender())).start()
        return None

    def stream(self, text, sender):
        try:
            for word in text.split():
                if sender.is_cancelled():
                    break
                word = pb_utils.Tensor("text_output", np.array([word], dtype=np.object_))
                sender.send(pb_utils.InferenceResponse([word]))
                self.ending.wait(self.pause)
        except Exception as error:  # nothing else reads exceptions of this thread
            pb_utils.Logger.log_error("stream_words: %s" % error)
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))))
        finally:
            # Each request needs its end, a cancelled one too.
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def finalize(self):
        self.ending.set()
