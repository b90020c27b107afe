"""BYTES tensors: each element is its length (u32, little endian), then its bytes, in C order."""

from typing import Any, List, Sequence

import numpy as np

from .protocol import U32


def encode(array: np.ndarray) -> bytes:
    """Returns the elements of an array of objects or of byte strings in their serialized form."""
    pack = U32.pack
    parts: List[bytes] = []
    append = parts.append
    # ravel() makes a list of the elements in C order for each layout, also for no dimensions.
    for element in array.ravel().tolist():
        if not isinstance(element, bytes):
            element = str(element).encode("utf-8", "replace")
        append(pack(len(element)))
        append(element)
    return b"".join(parts)


def decode(data: Any, offset: int, size: int, shape: Sequence[int]) -> np.ndarray:
    """Returns an array of ``bytes`` objects."""
    data = bytes(data[offset:offset + size])
    unpack = U32.unpack_from
    elements: List[bytes] = []
    append = elements.append
    position = 0
    while position + 4 <= size:
        (length,) = unpack(data, position)
        position += 4
        end = position + length
        append(data[position:end])
        position = end
    if position != size:
        raise ValueError("BYTES tensor of %d bytes ends within an element" % size)
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array.reshape(shape)
