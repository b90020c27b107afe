"""DLPack of memory of the host, by means of NumPy's own capsules."""

import ctypes
from typing import Any, Tuple

import numpy as np

from . import datatypes

CPU = 1
CUDA = 2
CPU_PINNED = 3

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6

_NOT_CONTIGUOUS = (
    "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
)
_NOT_SUPPORTED = (
    "Provided tensor is not supported. Tensor must be a DLPack capsule or have `__dlpack__` and `__dlpack_device__` "
    "attributes."
)
_GPU = "DLPack capsule passed pointer to memory allocated on GPU device, when GPU is not available"

_CODES = {
    1: (_BOOL, 8), 2: (_UINT, 8), 3: (_UINT, 16), 4: (_UINT, 32), 5: (_UINT, 64), 6: (_INT, 8), 7: (_INT, 16),
    8: (_INT, 32), 9: (_INT, 64), 10: (_FLOAT, 16), 11: (_FLOAT, 32), 12: (_FLOAT, 64), 14: (_BFLOAT, 16),
}
_NUMBERS = {code: number for number, code in _CODES.items()}


class Refused(Exception):
    """The object is no tensor that the server takes."""


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_CAPSULE = b"dltensor"


class _Owned(np.ndarray):
    """An array that keeps an object alive."""

    owner: Any = None


class _Memory:
    """Memory at an address as a writable array; keeps its owner alive."""

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


def export(tensor: Any) -> Any:
    """Returns a capsule of the memory of a tensor; it keeps the tensor alive."""
    number = tensor._dtype
    code, bits = _CODES[number]
    kind = np.dtype("u%d" % (bits // 8))
    if tensor._data is None:
        array = tensor._array
        if not array.flags.writeable:
            if array.size:
                array = np.asarray(_Memory(array.__array_interface__["data"][0], array.nbytes, array)).view(kind)
            else:
                array = np.empty(array.shape, array.dtype)
        array = array.reshape(-1).view(kind)
    else:
        if isinstance(tensor._data, (bytes, bytearray)):
            # The memory of the tensor from now on, apart from the copy of as_numpy().
            tensor._data = memoryview(bytearray(tensor._data[tensor._offset:tensor._offset + tensor._size]))
            tensor._offset = 0
        array = np.frombuffer(tensor._data, np.uint8, tensor._size, tensor._offset)
        if array.ctypes.data % kind.itemsize:
            tensor._data = memoryview(array.copy())
            tensor._slot = None
            tensor._offset = 0
            array = np.frombuffer(tensor._data, np.uint8)
        array = array.view(kind)
    owned = array.reshape(tensor._shape).view(_Owned)
    owned.owner = tensor
    capsule = np.ndarray.__dlpack__(owned)
    _DLTensor.from_address(_pointer(capsule, _CAPSULE)).code = code
    return capsule


class _Holder:
    """An object with the methods of DLPack for a bare capsule."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple:
        return (CPU, 0)


def _is_capsule(value: Any) -> bool:
    return type(value).__name__ == "PyCapsule"


def load(value: Any) -> Tuple[np.ndarray, int]:
    """Returns the array of a capsule or of an object with ``__dlpack__``, and the number of its type."""
    if not _is_capsule(value):
        if not (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")):
            raise Refused(_NOT_SUPPORTED)
        device = int(value.__dlpack_device__()[0])
        if device == CUDA:
            raise Refused(_GPU)
        if device not in (CPU, CPU_PINNED):
            raise Refused("DLDevice type %d is not support by Python backend." % device)
        capsule = value.__dlpack__()
        if not _is_capsule(capsule):
            raise Refused(_NOT_SUPPORTED)
    else:
        capsule = value
    if not _is_valid(capsule, _CAPSULE):
        raise Refused(_NOT_SUPPORTED)
    tensor = _DLTensor.from_address(_pointer(capsule, _CAPSULE))
    if tensor.device_type == CUDA:
        raise Refused(_GPU)
    if tensor.device_type not in (CPU, CPU_PINNED):
        raise Refused("DLDevice type %d is not support by Python backend." % tensor.device_type)
    number = _NUMBERS.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if number is None:
        raise Refused("Dtype is invalid.")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        expected = 1
        for size, stride in zip(reversed(shape), reversed([tensor.strides[i] for i in range(tensor.ndim)])):
            if size != 1 and stride != expected and 0 not in shape:
                raise Refused(_NOT_CONTIGUOUS)
            expected *= size
    # NumPy has no bfloat16, and bool only in newer versions: it takes the bits.
    tensor.code = _UINT
    kind = np.dtype("u%d" % (tensor.bits // 8))
    tensor.device_type = CPU
    array = np.from_dlpack(_Holder(capsule)) if hasattr(np, "from_dlpack") else np._from_dlpack(_Holder(capsule))
    if array.size and not array.flags.writeable:
        address = array.__array_interface__["data"][0]
        array = np.asarray(_Memory(address, array.nbytes, array)).view(kind).reshape(shape)
    dtype = datatypes.DTYPES[number]
    return (array if dtype is None else array.view(dtype)), number
