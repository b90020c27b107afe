"""Data types of tensors: the server's numbers, and those of NumPy."""

from typing import Any, Dict, List, Optional

import numpy as np

BOOL = 1
BYTES = 13
BF16 = 14

NAMES = (
    "INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64",
    "BYTES", "BF16",
)

_NUMPY_TYPES: List[Any] = [
    None, np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64, np.float16,
    np.float32, np.float64, np.object_, None,
]

DTYPES: List[Optional[np.dtype]] = [None if kind is None else np.dtype(kind) for kind in _NUMPY_TYPES]

#: NumPy's type (in the byte order of the machine) to the server's number.
NUMBERS: Dict[np.dtype, int] = {dtype: number for number, dtype in enumerate(DTYPES) if dtype is not None}
NUMBERS[np.dtype("longlong")] = 9
NUMBERS[np.dtype("ulonglong")] = 5


def number_of(dtype: np.dtype) -> Optional[int]:
    """Returns the server's number of a NumPy type, or None."""
    number = NUMBERS.get(dtype)
    if number is None and dtype.kind == "S":
        return BYTES
    return number


def numpy_type(number: int) -> Any:
    """Returns NumPy's type of a server's number, or None."""
    if isinstance(number, int) and 0 < number < len(_NUMPY_TYPES):
        return _NUMPY_TYPES[number]
    return None
