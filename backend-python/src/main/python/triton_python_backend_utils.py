"""The module that models of the Python backend import, mostly as ``pb_utils``.

It has the classes of ``c_python_backend_utils`` and the functions below, from the moment a model file is imported.
"""

from typing import Any, Dict, List, Optional, Union

import numpy as np

from c_python_backend_utils import (
    TRITONSERVER_MEMORY_CPU,
    TRITONSERVER_MEMORY_GPU,
    TRITONSERVER_REQUEST_RELEASE_ALL,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
    InferenceResponse,
    InferenceResponseSender,
    InferenceTrace,
    Logger,
    Metric,
    MetricFamily,
    MetricKind,
    PreferredMemory,
    ResponseIterator,
    Tensor,
    TritonError,
    TritonModelException,
    is_model_ready,
    load_model,
    unload_model,
)
from nereid_python import bytestensor as _bytestensor
from nereid_python import datatypes as _datatypes
from nereid_python import runtime as _runtime

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1

#: Data types of configurations to NumPy's types. There is none for TYPE_BF16.
TRITON_STRING_TO_NUMPY: Dict[str, Any] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Optional[Tensor]:
    """Returns the input of this name, or None."""
    exact = type(inference_request) is InferenceRequest
    for tensor in inference_request._inputs if exact else inference_request.inputs():
        if (tensor._name if type(tensor) is Tensor else tensor.name()) == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Optional[Tensor]:
    """Returns the output of this name, or None."""
    exact = type(inference_response) is InferenceResponse
    for tensor in inference_response._outputs if exact else inference_response.output_tensors():
        if (tensor._name if type(tensor) is Tensor else tensor.name()) == name:
            return tensor
    return None


def get_input_config_by_name(model_config: Dict[str, Any], name: str) -> Optional[Dict[str, Any]]:
    """Returns the input of this name of a parsed configuration, or None."""
    return _tensor_config(model_config, "input", name)


def get_output_config_by_name(model_config: Dict[str, Any], name: str) -> Optional[Dict[str, Any]]:
    """Returns the output of this name of a parsed configuration, or None."""
    return _tensor_config(model_config, "output", name)


def _tensor_config(model_config: Dict[str, Any], kind: str, name: str) -> Optional[Dict[str, Any]]:
    if kind in model_config:
        for properties in model_config[kind]:
            if properties["name"] == name:
                return properties
    return None


def using_decoupled_model_transaction_policy(model_config: Dict[str, Any]) -> bool:
    """Returns whether a parsed configuration is that of a decoupled model."""
    policy = model_config.get("model_transaction_policy") or {}
    return bool(policy.get("decoupled", False))


def triton_to_numpy_type(data_type: int) -> Any:
    """Returns NumPy's type of a number of a data type, or None."""
    return _datatypes.numpy_type(data_type)


def numpy_to_triton_type(data_type: Any) -> Optional[int]:
    """Returns the number of the data type of a NumPy type, or None."""
    if isinstance(data_type, np.dtype):
        return _datatypes.number_of(data_type)
    if isinstance(data_type, type) and (issubclass(data_type, np.generic) or data_type is bool):
        try:
            return _datatypes.number_of(np.dtype(data_type))
        except TypeError:
            return None
    return None


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """Returns NumPy's type of a data type of configurations, such as ``TYPE_FP32``."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def serialize_byte_tensor(input_tensor: "np.ndarray") -> Any:
    """Returns the elements of a BYTES tensor, each after its length (4 bytes, little endian), in C order.

    The result is ``()`` for no elements, and None for other types.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    return _bytestensor.encode(input_tensor)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> "np.ndarray":
    """Returns a one-dimensional array of the elements (``bytes``) of a serialized BYTES tensor."""
    return _bytestensor.decode(encoded_tensor, 0, len(encoded_tensor), (-1,) if len(encoded_tensor) else (0,))


def get_model_dir() -> str:
    """Returns the directory of the model's version."""
    return _runtime.required().model_dir


class ModelConfig:
    """A configuration that ``auto_complete_config`` completes."""

    def __init__(self, model_config: Union[str, Dict[str, Any]]) -> None:
        import json

        self._model_config: Dict[str, Any] = json.loads(model_config) if isinstance(model_config, str) else model_config

    def as_dict(self) -> Dict[str, Any]:
        """Returns the configuration itself, not a copy."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Sets the largest batch size; a larger configured one is an error."""
        configured = self._model_config.get("max_batch_size", 0)
        if configured > max_batch_size:
            raise ValueError(
                "configuration specified max_batch_size %s, but in auto-complete-config function for model '%s' "
                "specified max_batch_size %s" % (configured, self._name(), max_batch_size)
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Turns dynamic batching on; other scheduling that is configured is an error."""
        found = None
        for choice in ("sequence_batching", "ensemble_scheduling"):
            if choice in self._model_config:
                found = choice
        if found is not None:
            raise ValueError(
                "Configuration specified scheduling_choice as '%s', but auto-complete-config function for model '%s' "
                "tries to set scheduling_choice as 'dynamic_batching'" % (found, self._name())
            )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: Dict[str, Any]) -> None:
        """Adds an input with ``name``, ``data_type``, ``dims`` and perhaps ``optional``, or completes that of the name."""
        self._check(input, "input", ("name", "data_type", "dims", "optional"), "'name', 'data_type', 'dims' and 'optional'")
        self._add("input", input)

    def add_output(self, output: Dict[str, Any]) -> None:
        """Adds an output with ``name``, ``data_type`` and ``dims``, or completes that of the name."""
        self._check(output, "output", ("name", "data_type", "dims"), "'name', 'data_type' and 'dims'")
        self._add("output", output)

    def set_model_transaction_policy(self, transaction_policy_dict: Dict[str, Any]) -> None:
        """Sets ``{"decoupled": bool}``; a different configured one is an error."""
        for name in transaction_policy_dict:
            if name != "decoupled":
                raise ValueError(
                    "model transaction property in auto-complete-config function for model '%s' contains property "
                    "other than 'decoupled'." % self._name()
                )
        if "model_transaction_policy" not in self._model_config:
            self._model_config["model_transaction_policy"] = {}
        elif "decoupled" in transaction_policy_dict:
            configured = self._model_config["model_transaction_policy"].get("decoupled", False)
            if configured != transaction_policy_dict["decoupled"]:
                raise ValueError(
                    "trying to change decoupled property in auto-complete-config for model '%s', which is already set "
                    "to '%s'." % (self._name(), configured)
                )
        self._model_config["model_transaction_policy"].update(transaction_policy_dict)

    def _name(self) -> str:
        return self._model_config.get("name", "")

    def _check(self, tensor: Dict[str, Any], kind: str, allowed: tuple, listed: str) -> None:
        model = self._name()
        if "name" not in tensor:
            others = [name for name in tensor if name not in allowed]
            if others:
                raise ValueError(
                    "%s '%s' in auto-complete-config function for model '%s' contains property other than %s."
                    % (kind, "", model, listed)
                )
            raise ValueError(
                "%s in auto-complete-config function for model '%s' is missing 'name' property." % (kind, model)
            )
        for name in tensor:
            if name not in allowed:
                raise ValueError(
                    "%s '%s' in auto-complete-config function for model '%s' contains property other than %s."
                    % (kind, tensor["name"], model, listed)
                )
        for name in ("data_type", "dims"):
            if name not in tensor:
                raise ValueError(
                    "%s '%s' in auto-complete-config function for model '%s' is missing '%s' property."
                    % (kind, tensor["name"], model, name)
                )

    def _add(self, kind: str, tensor: Dict[str, Any]) -> None:
        model = self._name()
        tensors: List[Dict[str, Any]] = self._model_config.setdefault(kind, [])
        for configured in tensors:
            if configured.get("name") != tensor["name"]:
                continue
            data_type = configured.get("data_type", "TYPE_INVALID")
            if data_type == "TYPE_INVALID":
                configured["data_type"] = tensor["data_type"]
            elif data_type != tensor["data_type"]:
                raise ValueError(
                    "unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s"
                    % (model, data_type, kind, tensor["name"], tensor["data_type"])
                )
            dims = configured.get("dims", [])
            if not dims:
                configured["dims"] = tensor["dims"]
            elif dims != tensor["dims"]:
                raise ValueError(
                    "model '%s', tensor '%s': the model expects dims %s but the model configuration specifies dims %s"
                    % (model, tensor["name"], tensor["dims"], dims)
                )
            if "optional" in tensor:
                optional = configured.get("optional")
                if optional is None:
                    configured["optional"] = tensor["optional"]
                elif optional != tensor["optional"]:
                    raise ValueError(
                        "model '%s', tensor '%s': the model expects optional %s but the model configuration specifies "
                        "optional %s" % (model, tensor["name"], tensor["optional"], optional)
                    )
            return
        tensors.append(dict(tensor))
