"""The modules that models import, line by line of their contract."""

import gc
import json
import re
import sys
import types
import unittest
import weakref

import numpy as np

import peer  # noqa: F401  (sets the path)
import c_python_backend_utils
import triton_python_backend_utils as pb_utils
from nereid_python import bytestensor, datatypes, errors, runtime
from triton_python_backend_utils import (
    InferenceRequest, InferenceResponse, ModelConfig, PreferredMemory, Tensor, TritonError, TritonModelException,
)


class ModuleTest(unittest.TestCase):
    def test_has_all_names_before_a_model_runs(self):
        for name in (
            "Tensor InferenceRequest InferenceResponse TritonError TritonModelException PreferredMemory Logger MetricFamily "
            "get_input_tensor_by_name get_output_tensor_by_name get_input_config_by_name get_output_config_by_name "
            "using_decoupled_model_transaction_policy triton_string_to_numpy triton_to_numpy_type numpy_to_triton_type "
            "serialize_byte_tensor deserialize_bytes_tensor get_model_dir load_model unload_model is_model_ready ModelConfig "
            "TRITON_STRING_TO_NUMPY TRITONSERVER_REQUEST_FLAG_SEQUENCE_START TRITONSERVER_REQUEST_FLAG_SEQUENCE_END "
            "TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITONSERVER_REQUEST_RELEASE_ALL TRITONSERVER_REQUEST_RELEASE_RESCHEDULE "
            "TRITONSERVER_MEMORY_CPU TRITONSERVER_MEMORY_GPU InferenceTrace"
        ).split():
            self.assertTrue(hasattr(pb_utils, name), name)
        for name in (
            "Tensor InferenceRequest InferenceResponse InferenceTrace InferenceResponseSender ResponseIterator Metric "
            "MetricKind MemoryType TritonError Logger PreferredMemory MetricFamily"
        ).split():
            self.assertTrue(hasattr(c_python_backend_utils, name), name)
        self.assertIs(pb_utils.Tensor, c_python_backend_utils.Tensor)
        self.assertEqual("<class 'c_python_backend_utils.InferenceResponse'>", str(InferenceResponse))

    def test_constants(self):
        self.assertEqual(1, pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
        self.assertEqual(2, pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)
        self.assertEqual(1, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        self.assertEqual(1, pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)
        self.assertEqual(2, pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        self.assertNotEqual(pb_utils.TRITONSERVER_MEMORY_CPU, pb_utils.TRITONSERVER_MEMORY_GPU)

    def test_data_types(self):
        self.assertIs(bool, pb_utils.triton_string_to_numpy("TYPE_BOOL"))
        self.assertIs(np.object_, pb_utils.triton_string_to_numpy("TYPE_STRING"))
        self.assertIs(np.float16, pb_utils.TRITON_STRING_TO_NUMPY["TYPE_FP16"])
        for name in ("TYPE_BF16", "FP32", ""):
            with self.assertRaises(KeyError):
                pb_utils.triton_string_to_numpy(name)
        types = [np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64, np.float16,
                 np.float32, np.float64, np.object_]
        for number, kind in enumerate(types, 1):
            self.assertEqual(number, pb_utils.numpy_to_triton_type(kind))
            self.assertEqual(number, pb_utils.numpy_to_triton_type(np.dtype(kind)))
            self.assertIs(kind, pb_utils.triton_to_numpy_type(number))
        self.assertEqual(13, pb_utils.numpy_to_triton_type(np.bytes_))
        for kind in (np.complex64, np.str_, np.datetime64, None, "x"):
            self.assertIsNone(pb_utils.numpy_to_triton_type(kind))
        for number in (0, 14, 15, -1, None):
            self.assertIsNone(pb_utils.triton_to_numpy_type(number))

    def test_configuration_lookups(self):
        config = {"input": [{"name": "A", "dims": [1]}], "output": [{"name": "B"}]}
        self.assertEqual({"name": "A", "dims": [1]}, pb_utils.get_input_config_by_name(config, "A"))
        self.assertEqual({"name": "B"}, pb_utils.get_output_config_by_name(config, "B"))
        self.assertIsNone(pb_utils.get_input_config_by_name(config, "B"))
        self.assertIsNone(pb_utils.get_output_config_by_name({}, "B"))
        self.assertFalse(pb_utils.using_decoupled_model_transaction_policy(config))
        self.assertTrue(
            pb_utils.using_decoupled_model_transaction_policy({"model_transaction_policy": {"decoupled": True}}))
        self.assertFalse(pb_utils.using_decoupled_model_transaction_policy({"model_transaction_policy": {}}))

    def test_tensor_lookups(self):
        class Shouting(Tensor):
            def name(self):
                return super().name().upper()

        class Other:
            def inputs(self):
                return [tensor]

            output_tensors = inputs

        class More(InferenceRequest):
            def inputs(self):
                return super().inputs() + [tensor]

        class MoreOutputs(InferenceResponse):
            def output_tensors(self):
                return super().output_tensors() + [tensor]

        tensor, loud = Tensor("a", np.zeros(1)), Shouting("b", np.zeros(1))
        request = InferenceRequest(inputs=[loud, tensor], requested_output_names=[], model_name="m")
        more = More(inputs=[loud], requested_output_names=[], model_name="m")
        for found in (request, more, Other()):
            self.assertIs(tensor, pb_utils.get_input_tensor_by_name(found, "a"))
            self.assertIsNone(pb_utils.get_input_tensor_by_name(found, "b"))
        for found in (InferenceResponse([loud, tensor]), MoreOutputs([loud]), Other()):
            self.assertIs(tensor, pb_utils.get_output_tensor_by_name(found, "a"))
            self.assertIsNone(pb_utils.get_output_tensor_by_name(found, "b"))
        self.assertIs(loud, pb_utils.get_input_tensor_by_name(request, "B"))
        self.assertIs(loud, pb_utils.get_output_tensor_by_name(InferenceResponse([loud]), "B"))

    def test_byte_tensors(self):
        array = np.array([b"ab", b"", "gr\u00fc\u00dfe", 1, None], dtype=np.object_)
        encoded = pb_utils.serialize_byte_tensor(array)
        self.assertEqual(b"\2\0\0\0ab\0\0\0\0\7\0\0\0gr\xc3\xbc\xc3\x9fe\1\0\0\0001\4\0\0\0None", bytes(encoded))
        self.assertEqual([b"ab", b"", "gr\u00fc\u00dfe".encode(), b"1", b"None"],
                         pb_utils.deserialize_bytes_tensor(encoded).tolist())
        self.assertEqual((), pb_utils.serialize_byte_tensor(np.array([], dtype=np.object_)))
        self.assertEqual(0, len(pb_utils.deserialize_bytes_tensor(b"")))
        self.assertIsNone(pb_utils.serialize_byte_tensor(np.zeros(2)))
        two = np.array([[b"a", b"b"], [b"c", b"d"]], dtype=np.object_)
        self.assertEqual([b"a", b"c", b"b", b"d"],
                         pb_utils.deserialize_bytes_tensor(pb_utils.serialize_byte_tensor(two.T)).tolist())
        self.assertEqual([b"a\0"], bytestensor.decode(b"\2\0\0\0a\0", 0, 6, (1,)).tolist())
        self.assertEqual([b"ab", b"c"], pb_utils.deserialize_bytes_tensor(
            pb_utils.serialize_byte_tensor(np.array([b"ab", b"c\0"]))).tolist())
        with self.assertRaises(ValueError):
            bytestensor.decode(b"\2\0\0\0a", 0, 5, (1,))


class TensorTest(unittest.TestCase):
    def test_constructor(self):
        tensor = Tensor("x", np.arange(6, dtype=np.int32).reshape(2, 3))
        self.assertEqual("x", tensor.name())
        self.assertEqual([2, 3], tensor.shape())
        self.assertIs(list, type(tensor.shape()))
        self.assertTrue(tensor.is_cpu())
        self.assertEqual(8, tensor.triton_dtype())
        self.assertEqual([], Tensor("x", np.array(3, np.int32)).shape())
        self.assertEqual([0, 3], Tensor("x", np.zeros((0, 3), np.float32)).shape())

    def test_refuses_wrong_arguments(self):
        array = np.zeros(2, np.float32)
        for arguments in ((None, array), (1, array), ("x", [1, 2]), ("x", None), ("x", np.float32(1)), ("x",), (), ("x", 1)):
            with self.assertRaises(TypeError, msg=str(arguments)):
                Tensor(*arguments)
        with self.assertRaises(TypeError):
            Tensor(array, "x")
        with self.assertRaisesRegex(TritonModelException, "^Tensor name cannot be an empty string.$"):
            Tensor("", array)
        for bad in (np.array(["a"]), np.zeros(2, np.complex64), np.zeros(2, ">f4"), np.zeros(2, "datetime64[s]"),
                    np.zeros(2, [("a", "i4")])):
            with self.assertRaisesRegex(TritonModelException, "^NumPy dtype is not supported.$"):
                Tensor("x", bad)

    def test_as_numpy_of_constructed_tensors(self):
        array = np.arange(4, dtype=np.float32)
        self.assertIs(array, Tensor("x", array).as_numpy())
        strided = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
        copy = Tensor("x", strided).as_numpy()
        self.assertEqual(strided.tolist(), copy.tolist())
        self.assertTrue(copy.flags.c_contiguous)
        objects = np.array([1, None, "z", b"b"], dtype=np.object_)
        self.assertIs(objects, Tensor("x", objects).as_numpy())
        self.assertEqual(13, Tensor("x", np.array([b"a"])).triton_dtype())

    def test_dlpack(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = Tensor("x", array)
        self.assertEqual((1, 0), tensor.__dlpack_device__())
        self.assertIn('"dltensor"', repr(tensor.to_dlpack()))
        other = Tensor.from_dlpack("y", tensor.to_dlpack())
        self.assertEqual("y", other.name())
        self.assertEqual(array.tolist(), other.as_numpy().tolist())
        other.as_numpy()[0, 0] = 9
        self.assertEqual(9, array[0, 0])
        self.assertEqual(array.tolist(), np.from_dlpack(tensor).tolist())
        self.assertEqual([2, 3], Tensor.from_dlpack("y", tensor).shape())
        self.assertEqual([3, 2], Tensor.from_dlpack("y", np.zeros((3, 2), np.int64)).shape())
        for kind in (np.bool_, np.uint8, np.int16, np.uint64, np.float16, np.float64):
            back = Tensor.from_dlpack("y", Tensor("x", np.array([[0, 1]], kind)).to_dlpack())
            self.assertEqual(np.dtype(kind), back.as_numpy().dtype)
            self.assertEqual([[0, 1]], back.as_numpy().tolist())
        for shape in ((), (0, 3), (1, 1)):
            self.assertEqual(list(shape), Tensor.from_dlpack("y", Tensor("x", np.zeros(shape)).to_dlpack()).shape())

    def test_dlpack_of_read_only_arrays(self):
        array = np.arange(3)
        array.flags.writeable = False
        self.assertEqual([0, 1, 2], Tensor.from_dlpack("y", Tensor("x", array).to_dlpack()).as_numpy().tolist())
        for shape in ((0,), (2, 0)):
            array = np.zeros(shape, np.float32)
            array.flags.writeable = False
            other = Tensor.from_dlpack("y", Tensor("x", array).to_dlpack())
            self.assertEqual((list(shape), np.dtype(np.float32)), (other.shape(), other.as_numpy().dtype))

    def test_dlpack_takes_the_stream_in_any_way(self):
        tensor = Tensor("x", np.arange(3))
        for capsule in (tensor.__dlpack__(None), tensor.__dlpack__(stream=None), tensor.__dlpack__(max_version=(1, 0))):
            self.assertEqual([0, 1, 2], Tensor.from_dlpack("y", capsule).as_numpy().tolist())

    def test_dlpack_keeps_its_tensor(self):
        tensor = Tensor("x", np.arange(3))
        gone = weakref.ref(tensor)
        before = sys.getrefcount(tensor)
        capsule = tensor.to_dlpack()
        self.assertEqual(before + 1, sys.getrefcount(tensor))
        del tensor
        self.assertIsNotNone(gone())
        other = Tensor.from_dlpack("y", capsule)
        del capsule
        self.assertEqual([0, 1, 2], other.as_numpy().tolist())
        del other
        gc.collect()
        self.assertIsNone(gone())

    def test_dlpack_of_bfloat16(self):
        source = Tensor("x", np.array([[0x3F80, 0x4000]], np.uint16))
        source._dtype = datatypes.BF16
        tensor = Tensor.from_dlpack("y", source.to_dlpack())
        self.assertEqual(14, tensor.triton_dtype())
        with self.assertRaisesRegex(TritonModelException, "^Tensor dtype is BF16 and cannot be converted to NumPy. Use "):
            tensor.as_numpy()
        again = Tensor.from_dlpack("z", tensor)
        self.assertEqual([[0x3F80, 0x4000]], again._array.tolist())

    def test_dlpack_refusals(self):
        with self.assertRaisesRegex(TritonModelException, "^DLPack does not have support for string tensors.$"):
            Tensor("x", peer.texts("a")).to_dlpack()
        for value in (None, 1, [1], "x"):
            with self.assertRaisesRegex(TritonModelException, "^Provided tensor is not supported. Tensor must be a DLPack"):
                Tensor.from_dlpack("x", value)
        with self.assertRaisesRegex(TritonModelException, "^DLPack tensor is not contiguous. Only contiguous DLPack tensors"):
            Tensor.from_dlpack("x", np.zeros((4, 4))[:, ::2])
        with self.assertRaisesRegex(TritonModelException, "^Tensor name cannot be"):
            Tensor.from_dlpack("", np.zeros(2))
        with self.assertRaisesRegex(TritonModelException, "^Dtype is invalid.$"):
            Tensor.from_dlpack("x", np.zeros(2, np.complex64))

        class Elsewhere:
            device = 2

            def __dlpack__(self):
                raise AssertionError()

            def __dlpack_device__(self):
                return (self.device, 0)

        with self.assertRaisesRegex(TritonModelException, "when GPU is not available$"):
            Tensor.from_dlpack("x", Elsewhere())
        Elsewhere.device = 8
        with self.assertRaisesRegex(TritonModelException, "^DLDevice type 8 is not support by Python backend.$"):
            Tensor.from_dlpack("x", Elsewhere())
        capsule = Tensor("x", np.zeros(2)).to_dlpack()
        Tensor.from_dlpack("y", capsule)
        with self.assertRaises(TritonModelException):
            Tensor.from_dlpack("y", capsule)


class RequestTest(unittest.TestCase):
    def request(self, **more):
        arguments = dict(model_name="m", requested_output_names=["O"], inputs=[])
        arguments.update(more)
        return InferenceRequest(**arguments)

    def test_accessors_and_defaults(self):
        tensor = Tensor("x", np.zeros(1))
        request = self.request(inputs=[tensor])
        self.assertEqual([tensor], request.inputs())
        self.assertEqual("", request.request_id())
        self.assertEqual(0, request.correlation_id())
        self.assertEqual(0, request.flags())
        self.assertEqual(0, request.timeout())
        self.assertEqual("{}", request.parameters())
        self.assertEqual({"O"}, request.requested_output_names())
        self.assertIsNone(request.trace().get_context())
        self.assertFalse(request.is_cancelled())
        request.set_flags(3)
        self.assertEqual(3, request.flags())
        request = InferenceRequest("id", 7, [tensor], ("A", "B"), "m", 2, 1, 99, PreferredMemory(
            pb_utils.TRITONSERVER_MEMORY_CPU), pb_utils.InferenceTrace(), {"a": 1, "b": "x", "c": True})
        self.assertEqual(("id", 7, 1, 99), (request.request_id(), request.correlation_id(), request.flags(), request.timeout()))
        self.assertEqual('{"a": 1, "b": "x", "c": true}', request.parameters())
        self.assertEqual("seven", self.request(correlation_id="seven").correlation_id())
        self.assertEqual(set(), self.request(requested_output_names=[]).requested_output_names())
        self.assertIs(tensor, pb_utils.get_input_tensor_by_name(request, "x"))
        self.assertIsNone(pb_utils.get_input_tensor_by_name(request, "y"))

    def test_wrong_arguments(self):
        for more in (
            {"inputs": None}, {"inputs": "x"}, {"inputs": [1]}, {"inputs": 1}, {"requested_output_names": None},
            {"requested_output_names": [None]}, {"requested_output_names": [1]}, {"model_name": None}, {"model_name": 1},
            {"model_version": None}, {"model_version": "1"}, {"model_version": 1.5}, {"request_id": None}, {"request_id": 1},
            {"flags": None}, {"flags": "1"}, {"flags": -1}, {"timeout": None}, {"timeout": 1.5}, {"preferred_memory": 1},
            {"trace": 1}, {"unknown": 1}, {"correlation_id": None}, {"preferred_memory": None}, {"trace": None},
        ):
            with self.assertRaises(TypeError, msg=str(more)):
                self.request(**more)
        for missing in ("inputs", "requested_output_names", "model_name"):
            arguments = dict(model_name="m", requested_output_names=["O"], inputs=[])
            del arguments[missing]
            with self.assertRaises(TypeError):
                InferenceRequest(**arguments)

    def test_none_is_no_boolean(self):
        request = InferenceRequest(inputs=[], requested_output_names=[], model_name="m")
        seen = []

        def called(*arguments):
            seen.append(arguments[1])

        calls = types.SimpleNamespace(exec=called, async_exec=called, unload_model=called)
        self.addCleanup(setattr, runtime, "runner", runtime.runner)
        runtime.runner = types.SimpleNamespace(calls=calls)
        for action in (lambda: request.exec(None), lambda: request.exec(decoupled=None),
                       lambda: request.async_exec(decoupled=None), lambda: pb_utils.unload_model("m", None)):
            with self.assertRaisesRegex(TypeError, r"^(decoupled|unload_dependents): NoneType \(expected: bool\)$"):
                action()
        self.assertEqual([], seen)
        request.exec(np.bool_(True))
        request.async_exec()
        pb_utils.unload_model("m", 1)
        self.assertEqual([True, False, True], seen)

    def test_texts_of_refusals(self):
        for more, text in (
            ({"inputs": [None]}, "Input tensor for request with id '' and model name 'm' should not be empty."),
            ({"requested_output_names": [""]},
             "Requested output name for request with id '' and model name 'm' should not be empty."),
            ({"correlation_id": 1.5}, "Correlation ID must be integer or string"),
            ({"correlation_id": [1]}, "Correlation ID must be integer or string"),
            ({"parameters": {1: 1}}, "Expect parameters keys to have type str, found type <class 'int'>"),
            ({"parameters": {"a": 1.5}}, "Expect parameters values to have type bool/int/str, found type <class 'float'>"),
            ({"parameters": {"a": None}},
             "Expect parameters values to have type bool/int/str, found type <class 'NoneType'>"),
            ({"parameters": {"a": [1]}}, "Expect parameters values to have type bool/int/str, found type <class 'list'>"),
        ):
            with self.assertRaises(TritonModelException) as caught:
                self.request(**more)
            self.assertEqual(text, str(caught.exception))
        with self.assertRaisesRegex(TritonModelException, "^Expect .*, got <class 'list'>$"):
            self.request(parameters=[1])

    def test_sender_of_a_request_made_by_the_model(self):
        sender = self.request().get_response_sender()
        with self.assertRaisesRegex(TritonModelException, "no reference to the decoupled state of the model.$"):
            sender.send(InferenceResponse([]))
        self.assertFalse(sender.is_cancelled())
        with self.assertRaisesRegex(TritonModelException, "^Unable to send response. Unsupported flag provided.$"):
            sender.send(InferenceResponse([]), 2)
        with self.assertRaisesRegex(TritonModelException, "must be provided when the response flags is set to zero.$"):
            sender.send()
        for arguments in ((1,), ("x",), (None, "1"), (None, None), (None, 1.5)):
            with self.assertRaises(TypeError):
                sender.send(*arguments)

    def test_no_constructors(self):
        for kind in (pb_utils.InferenceResponseSender, c_python_backend_utils.ResponseIterator, c_python_backend_utils.Metric):
            with self.assertRaises(TypeError):
                kind()
        gc.collect()


class ResponseTest(unittest.TestCase):
    def test_accessors(self):
        tensor = Tensor("x", np.zeros(1))
        response = InferenceResponse([tensor])
        self.assertEqual([tensor], response.output_tensors())
        self.assertFalse(response.has_error())
        self.assertIsNone(response.error())
        self.assertEqual("{}", response.parameters())
        self.assertIs(tensor, pb_utils.get_output_tensor_by_name(response, "x"))
        self.assertIsNone(pb_utils.get_output_tensor_by_name(response, "y"))
        self.assertEqual([tensor], InferenceResponse((tensor,)).output_tensors())
        self.assertEqual([], InferenceResponse().output_tensors())
        response = InferenceResponse(error=TritonError("e"), parameters={"a": 1})
        self.assertTrue(response.has_error())
        self.assertEqual("e", response.error().message())
        self.assertEqual({"a": 1}, json.loads(response.parameters()))

    def test_wrong_arguments(self):
        for arguments in ((None,), (1,), ("x",), ([1],), (Tensor("x", np.zeros(1)),), ([], "e"), ([], 1)):
            with self.assertRaises(TypeError, msg=str(arguments)):
                InferenceResponse(*arguments)
        with self.assertRaisesRegex(TritonModelException, "^Output tensor for inference response should not be empty.$"):
            InferenceResponse([None])
        for parameters in ({1: 1}, {"a": 1.5}, {"a": None}, {"a": {}}, [1]):
            with self.assertRaises(TritonModelException):
                InferenceResponse([], parameters=parameters)

    def test_errors(self):
        self.assertEqual("t", TritonError("t").message())
        self.assertEqual(TritonError.INTERNAL, TritonError("t").code())
        self.assertEqual("__ErrorCode.INTERNAL", str(TritonError("t").code()))
        for number, name in enumerate(
            "UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED".split()
        ):
            code = getattr(TritonError, name)
            self.assertEqual((number, name), (int(code), code.name))
            self.assertEqual(code, TritonError("t", code).code())
        for arguments in (("t", 5), ("t", None), (None,), (1,), ()):
            with self.assertRaises(TypeError):
                TritonError(*arguments)
        self.assertTrue(issubclass(TritonModelException, Exception))
        with self.assertRaises(TypeError):
            PreferredMemory(0)
        with self.assertRaises(TypeError):
            PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, "0")
        PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 1)


class LoggerTest(unittest.TestCase):
    def test_wrong_arguments(self):
        logger = pb_utils.Logger
        for call in (lambda: logger.log_info(5), lambda: logger.log(None), lambda: logger.log("x", 1),
                     lambda: logger.log("x", None), lambda: logger.log_error(None), lambda: logger.log("x", "INFO")):
            with self.assertRaises(TypeError):
                call()
        self.assertFalse(hasattr(logger, "log_warning"))
        self.assertEqual(4, len({logger.INFO, logger.WARNING, logger.ERROR, logger.VERBOSE}))


class ModelConfigTest(unittest.TestCase):
    def config(self, **more):
        return ModelConfig(dict({"name": "m", "max_batch_size": 0, "input": [], "output": []}, **more))

    def refused(self, text, action):
        with self.assertRaises(ValueError) as caught:
            action()
        self.assertEqual(text, str(caught.exception))

    def test_as_dict_is_live(self):
        config = self.config()
        config.as_dict()["x"] = 1
        self.assertEqual(1, config.as_dict()["x"])
        self.assertEqual({"name": "j"}, ModelConfig('{"name": "j"}').as_dict())

    def test_max_batch_size(self):
        config = self.config(max_batch_size=4)
        config.set_max_batch_size(8)
        self.assertEqual(8, config.as_dict()["max_batch_size"])
        self.refused("configuration specified max_batch_size 8, but in auto-complete-config function for model 'm' specified "
                     "max_batch_size 2", lambda: config.set_max_batch_size(2))

    def test_dynamic_batching(self):
        config = self.config()
        config.set_dynamic_batching()
        self.assertEqual({}, config.as_dict()["dynamic_batching"])
        kept = self.config(dynamic_batching={"max_queue_delay_microseconds": 5})
        kept.set_dynamic_batching()
        self.assertEqual(5, kept.as_dict()["dynamic_batching"]["max_queue_delay_microseconds"])
        self.refused("Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config function for "
                     "model 'm' tries to set scheduling_choice as 'dynamic_batching'",
                     self.config(sequence_batching={}).set_dynamic_batching)
        with self.assertRaises(ValueError):
            self.config(ensemble_scheduling={}).set_dynamic_batching()

    def test_add_input(self):
        config = self.config()
        tensor = {"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True}
        config.add_input(tensor)
        config.add_input(dict(tensor))
        self.assertEqual([tensor], config.as_dict()["input"])
        end = " in auto-complete-config function for model 'm' "
        self.refused("input 'I'" + end + "contains property other than 'name', 'data_type', 'dims' and 'optional'.",
                     lambda: config.add_input(dict(tensor, shape=[4])))
        self.refused("input" + end + "is missing 'name' property.",
                     lambda: config.add_input({"data_type": "TYPE_FP32", "dims": [4]}))
        self.refused("input 'I'" + end + "is missing 'data_type' property.",
                     lambda: config.add_input({"name": "I", "dims": [4]}))
        self.refused("input 'I'" + end + "is missing 'dims' property.",
                     lambda: config.add_input({"name": "I", "data_type": "TYPE_FP32"}))
        self.refused("unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'I', model provides "
                     "TYPE_INT8", lambda: config.add_input(dict(tensor, data_type="TYPE_INT8")))
        self.refused("model 'm', tensor 'I': the model expects dims [5] but the model configuration specifies dims [4]",
                     lambda: config.add_input(dict(tensor, dims=[5])))
        self.refused("model 'm', tensor 'I': the model expects dims (4,) but the model configuration specifies dims [4]",
                     lambda: config.add_input(dict(tensor, dims=(4,))))
        self.refused("model 'm', tensor 'I': the model expects optional False but the model configuration specifies optional "
                     "True", lambda: config.add_input(dict(tensor, optional=False)))

    def test_fills_gaps(self):
        config = self.config(input=[{"name": "I", "data_type": "TYPE_INVALID", "dims": []}])
        config.add_input({"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True})
        self.assertEqual([{"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True}], config.as_dict()["input"])

    def test_add_output(self):
        config = self.config()
        config.add_output({"name": "O", "data_type": "TYPE_FP32", "dims": [4]})
        end = " in auto-complete-config function for model 'm' "
        self.refused("output 'O'" + end + "contains property other than 'name', 'data_type' and 'dims'.",
                     lambda: config.add_output({"name": "O", "data_type": "TYPE_FP32", "dims": [4], "optional": True}))
        self.refused("output" + end + "is missing 'name' property.", lambda: config.add_output({}))
        self.refused("unable to load model 'm', configuration expects datatype TYPE_FP32 for output 'O', model provides "
                     "TYPE_INT8", lambda: config.add_output({"name": "O", "data_type": "TYPE_INT8", "dims": [4]}))

    def test_model_transaction_policy(self):
        config = self.config()
        config.set_model_transaction_policy({"decoupled": True})
        self.assertEqual({"decoupled": True}, config.as_dict()["model_transaction_policy"])
        config.set_model_transaction_policy({"decoupled": True})
        self.refused("trying to change decoupled property in auto-complete-config for model 'm', which is already set to 'True'.",
                     lambda: config.set_model_transaction_policy({"decoupled": False}))
        self.refused("model transaction property in auto-complete-config function for model 'm' contains property other than "
                     "'decoupled'.", lambda: config.set_model_transaction_policy({"other": True}))


class ErrorTextTest(unittest.TestCase):
    def text(self, action):
        try:
            action()
        except BaseException as error:
            return errors.short_text(error), errors.long_text(error)
        raise AssertionError()

    def test_innermost_frame_first(self):
        def inner():
            raise ValueError("wrong")

        def outer():
            inner()

        short, long = self.text(outer)
        lines = short.split("\n")
        self.assertEqual(["ValueError: wrong", "", "At:"], lines[:3])
        self.assertRegex(lines[3], r"^  .*test_api\.py\(\d+\): inner$")
        self.assertRegex(lines[4], r"^  .*test_api\.py\(\d+\): outer$")
        self.assertTrue(short.endswith("\n"))
        self.assertIn("Traceback", long)

    def test_empty_and_chained(self):
        def empty():
            raise ValueError()

        def chained():
            try:
                {}["nothing"]
            except KeyError as error:
                raise RuntimeError("outer") from error

        self.assertTrue(self.text(empty)[0].startswith("ValueError: <EMPTY MESSAGE>\n"))
        short, long = self.text(chained)
        self.assertTrue(short.startswith("RuntimeError: outer\n\nAt:\n"))
        self.assertNotIn("KeyError", short)
        self.assertIn("KeyError: 'nothing'", long)

    def test_notes_and_own_frames(self):
        def noted():
            error = ValueError("x")
            error.__notes__ = ["one", "two"]
            raise error

        self.assertIn("ValueError: x\n__notes__ (len=2):\none\ntwo\n\nAt:\n", self.text(noted)[0])
        short, _ = self.text(lambda: Tensor("", np.zeros(1)))
        self.assertNotIn("c_python_backend_utils", short)
        self.assertEqual("ValueError: x", errors.short_text(ValueError("x")))

    def test_broken_messages(self):
        class Broken(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        self.assertTrue(errors.short_text(Broken()).startswith("Broken: <MESSAGE"))
        self.assertTrue(errors.long_text(Broken()))

    def test_odd_messages(self):
        class Odd(str):
            def __len__(self):
                raise RuntimeError("no length")

            __add__ = __radd__ = __getitem__ = encode = __len__

        class Broken:
            def __str__(self):
                raise RuntimeError("no text")

        class OddError(Exception):
            def __str__(self):
                return Odd("a message")

        error = OddError()
        self.assertEqual("OddError: a message", errors.short_text(error))
        self.assertTrue(errors.long_text(error))
        error.__notes__ = [Broken(), Odd("a note")]
        self.assertEqual("OddError: a message\n__notes__ (len=2):\n<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>\na note",
                         errors.short_text(error))

        class NumberError(Exception):
            def __str__(self):
                return 1

        self.assertTrue(errors.short_text(NumberError()).startswith("NumberError: <MESSAGE"))

        class EqualError(Exception):
            def __eq__(self, other):
                raise RuntimeError("not comparable")

            def __len__(self):
                return 0

        first = EqualError()
        first.__cause__ = second = EqualError()
        second.__cause__ = ImportError("x")
        self.assertTrue(errors.import_hint(first))

    def test_long_texts_are_cut(self):
        def fail():
            raise ValueError("start" + "x" * (1 << 20) + "end")

        def dive(depth):
            if depth:
                dive_again(depth - 1)
            raise ValueError("deep")

        def dive_again(depth):
            dive(depth)

        short, long = self.text(fail)
        self.assertTrue(short.startswith("ValueError: startxxx"))
        self.assertRegex(short, r"xxx … \(\d+ characters are left out\)\n\nAt:\n  .*: fail\n")
        self.assertLessEqual(len(short), 64 << 10)
        self.assertTrue(long.startswith("Traceback (most recent call last):\n"))
        self.assertTrue(long.endswith("xxxend"))
        left_out = int(re.search(r" … \((\d+) characters are left out\) …\n", long).group(1))
        self.assertEqual(256 << 10, len(long) + 64 - len(" … (%d characters are left out) …\n" % left_out))
        short, long = self.text(lambda: dive(400))
        self.assertTrue(short.startswith("ValueError: deep\n\nAt:\n"))
        self.assertLessEqual(len(short), 64 << 10)

        error = ValueError("message")
        error.__notes__ = ["note" * 100000]
        short = errors.short_text(error)
        self.assertTrue(short.startswith("ValueError: message\n__notes__ (len=1):\nnotenote"))
        self.assertLessEqual(len(short), 64 << 10)


if __name__ == "__main__":
    unittest.main()
