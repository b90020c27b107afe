"""Tensors and responses to and from frames."""

import weakref
from typing import Any, Dict, List, Optional, Set

import numpy as np

from c_python_backend_utils import InferenceResponse, Tensor, TritonModelException

from . import protocol
from .memory import IncomingSlot, LentSlot, Memory, MemoryRefused
from .protocol import I64, RESULT, SHAPES, TENSOR, TENSOR_SIZE, TENSORS, U32

#: The largest tensor that goes into a frame where shared memory is used up.
INLINE_MAXIMUM = 64 << 20

_new = Tensor.__new__
_PACK = tuple(layout.pack for layout in TENSORS)
_unpack_tensor = TENSOR.unpack_from
_pack_result = RESULT.pack
_PADDING = tuple(b"\0" * count for count in range(8))


def check_length(length: int) -> None:
    """Raises if a frame would be too long."""
    if length > protocol.FRAME_LIMIT:
        raise TritonModelException(
            "A message to the server of %d bytes is too long: it may have %d bytes." % (length, protocol.FRAME_LIMIT)
        )


class Codec:
    """Encodes and decodes tensors of one process."""

    def __init__(self, memory: Memory, release: Any, inline_limit: int) -> None:
        self._memory = memory
        self._release = release
        self.inline_limit = inline_limit
        self.forked = False

    def take_tensor(self, data: Any, base: int, position: int, name: Optional[str], names: Any) -> tuple:
        """Returns the tensor at ``position`` of the frame at ``base``, and the position behind it."""
        index, dtype, rank, segment, offset, size = _unpack_tensor(data, position)
        position += TENSOR_SIZE
        tensor = _new(Tensor)
        tensor._dtype = dtype
        tensor._shape = SHAPES[rank].unpack_from(data, position)
        position += rank << 3
        tensor._array = None
        if segment == 0:
            tensor._slot = None
            tensor._data = data
            tensor._offset = offset = base + offset
            position = offset + size
        else:
            try:
                found = self._memory.segment(segment)
                tensor._slot = IncomingSlot(found, offset, size, self._release)
                tensor._data = found.view
                tensor._offset = offset
            except MemoryRefused:
                # The memory cannot be mapped. The caller sees that there is no data.
                self._release(segment, offset)
                tensor._slot = tensor._data = None
        tensor._size = size
        if names is not None:
            tensor._name = names[index]
        else:
            tensor._name = str(data[position:position + index], "utf-8")
            position += index
        return tensor, position

    def put_tensor(
        self,
        parts: List[bytes],
        position: int,
        index: int,
        tensor: Tensor,
        held: List[Any],
        moves: Optional[List[Any]] = None,
    ) -> int:
        """Adds a tensor to the parts of a frame that has ``position`` bytes so far; returns the new length.

        A tensor in a slot of the server is passed on by its place; ``held`` keeps the slot until the frame is sent. It
        also gets the slots that were allocated, for ``give_up``. With ``moves``, an array over a lent slot is not copied
        yet: ``finish_moves`` does that if it has to.
        """
        shape = tensor._shape
        rank = len(shape)
        data = tensor._data
        if data is None:
            array = tensor._array
            size = array.nbytes
            if size > self.inline_limit and not self.forked:
                lent = array.base
                if moves is not None and type(lent) is LentSlot and lent.move is None and lent.is_whole(array):
                    lent.move = moved = [False]
                    place = (lent.segment.ident, lent.offset)
                    moves.append((moved, weakref.ref(lent), len(parts), index, tensor._dtype, shape, place))
                    parts.append(
                        _PACK[rank](index, tensor._dtype, rank, lent.segment.ident, lent.offset, size, *shape)
                    )
                    return position + TENSOR_SIZE + (rank << 3)
                slot = self._allocate(size)
                if slot is not None:
                    segment, offset = slot
                    held.append((segment.ident, offset))
                    np.copyto(np.ndarray(shape, array.dtype, segment.view, offset), array)
                    parts.append(
                        _PACK[rank](index, tensor._dtype, rank, segment.ident, offset, size, *shape)
                    )
                    return position + TENSOR_SIZE + (rank << 3)
            chunk = array.tobytes()
        else:
            size = tensor._size
            start = tensor._offset
            slot = tensor._slot
            if slot is not None and not self.forked:
                held.append(slot)
                parts.append(
                    _PACK[rank](index, tensor._dtype, rank, slot.segment.ident, slot.offset, size, *shape)
                )
                return position + TENSOR_SIZE + (rank << 3)
            if size > self.inline_limit and not self.forked:
                slot = self._allocate(size)
                if slot is not None:
                    segment, offset = slot
                    held.append((segment.ident, offset))
                    segment.view[offset:offset + size] = memoryview(data)[start:start + size]
                    parts.append(
                        _PACK[rank](index, tensor._dtype, rank, segment.ident, offset, size, *shape)
                    )
                    return position + TENSOR_SIZE + (rank << 3)
            chunk = bytes(data[start:start + size])
        position += TENSOR_SIZE + (rank << 3)
        padding = -position & 7
        position += padding
        parts.append(_PACK[rank](index, tensor._dtype, rank, 0, position, size, *shape))
        if padding:
            parts.append(_PADDING[padding])
        parts.append(chunk)
        return position + size

    def _allocate(self, size: int) -> Any:
        """Returns a slot, or None for a tensor that goes into the frame since there is no memory."""
        try:
            return self._memory.allocate(size)
        except MemoryRefused:
            if size > INLINE_MAXIMUM:
                raise
            return None

    def undo_moves(self, moves: List[Any]) -> None:
        """Takes all lent slots back that a frame would have named, which is not sent."""
        for moved, reference, _, _, _, _, place in moves:
            lent = reference()
            if moved[0] or lent is None:
                self._memory.release(*place)
            else:
                lent.move = None

    def give_up(self, held: List[Any]) -> None:
        """Takes the slots back that were allocated for a frame that is not sent."""
        for slot in held:
            if type(slot) is tuple:
                self._memory.release(*slot)
        del held[:]

    def finish_moves(self, parts: List[bytes], moves: List[Any], held: List[Any]) -> None:
        """Copies the arrays over lent slots that the model still holds; all others belong to the server now."""
        for moved, reference, at, index, dtype, shape, _ in moves:
            lent = reference()
            if moved[0] or lent is None:
                continue
            lent.move = None
            size = lent.size
            segment, offset = self._memory.allocate(size)
            held.append((segment.ident, offset))
            source = np.ndarray((size,), np.uint8, lent.segment.view, lent.offset)
            np.copyto(np.ndarray((size,), np.uint8, segment.view, offset), source)
            rank = len(shape)
            parts[at] = _PACK[rank](index, dtype, rank, segment.ident, offset, size, *shape)

    def put_named_tensor(self, parts: List[bytes], position: int, tensor: Tensor, held: List[Any]) -> int:
        """Adds a tensor, followed by its name."""
        name = tensor._name.encode("utf-8", "replace")
        position = self.put_tensor(parts, position, len(name), tensor, held)
        parts.append(name)
        return position + len(name)

    def put_response(
        self,
        parts: List[bytes],
        position: int,
        response: InferenceResponse,
        flags: int,
        wanted: Optional[Set[str]],
        indexes: Dict[str, int],
        unknown: Any,
        held: List[Any],
        moves: Optional[List[Any]] = None,
    ) -> int:
        """Adds a response: its error, or the outputs that the client wants."""
        error = response._error
        if error is not None:
            text = error._message.encode("utf-8", "replace")
            parts.append(RESULT.pack(2, flags, 0, 0, error._code.value) + U32.pack(len(text)) + text)
            return position + RESULT.size + 4 + len(text)
        at = len(parts)
        parts.append(b"")
        position += RESULT.size
        count = 0
        limit = self.inline_limit
        for tensor in response._outputs:
            name = tensor._name
            index = indexes.get(name)
            if index is None:
                unknown(name)
            elif wanted is None or name in wanted:
                count += 1
                if tensor._data is None and tensor._array.nbytes <= limit:
                    # As put_tensor() does, without a call.
                    array = tensor._array
                    shape = tensor._shape
                    rank = len(shape)
                    position += TENSOR_SIZE + (rank << 3)
                    padding = -position & 7
                    if padding:
                        position += padding
                    chunk = array.tobytes()
                    size = len(chunk)
                    parts.append(_PACK[rank](index, tensor._dtype, rank, 0, position, size, *shape))
                    if padding:
                        parts.append(_PADDING[padding])
                    parts.append(chunk)
                    position += size
                else:
                    position = self.put_tensor(parts, position, index, tensor, held, moves)
        values = response._values
        if values:
            position = put_parameters(parts, position, values)
            parts[at] = RESULT.pack(1, flags, count, len(values), 0)
        else:
            parts[at] = _pack_result(1, flags, count, 0, 0)
        return position


def put_parameters(parts: List[bytes], position: int, values: Dict[str, Any]) -> int:
    """Adds parameters: name, kind (u8), value."""
    for name, value in values.items():
        encoded = protocol.text(name)
        if isinstance(value, bool):
            encoded += b"\1" + (b"\1" if value else b"\0")
        elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            encoded += b"\2" + I64.pack(value)
        else:
            encoded += b"\3" + protocol.text(str(value))
        parts.append(encoded)
        position += len(encoded)
    return position


