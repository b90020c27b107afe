"""Shared memory: segments of the server, slots of tensors in both directions.

The server creates each segment and sends its path. Slots of incoming segments are given out by the server and released
here; slots of outgoing segments are given out here and released by the server.
"""

import collections
import mmap
import os
import sys
import threading
import time
import weakref
from typing import Callable, Deque, Dict, List, Optional, Tuple

import numpy as np

MOST_LENT = 8
SMALLEST_SLOT = 4096
SMALLEST_SEGMENT = 1 << 20
IDLE_SECONDS = 10.0
_MAP_FIXED = 0x10

#: Slots that tensors or arrays of this process lie in, by their identity.
LIVE_SLOTS: "Dict[int, weakref.ref]" = {}


def live_slots() -> list:
    """Returns the slots that tensors or arrays of this process lie in: as long as they are held, none is used again."""
    slots = [reference() for reference in list(LIVE_SLOTS.values())]
    return [slot for slot in slots if slot is not None]


def slot_size_of(size: int) -> int:
    """Returns the size of the slot for a tensor: a power of two, and above 1 MiB also its quarters in between."""
    if size <= SMALLEST_SLOT:
        return SMALLEST_SLOT
    bits = (size - 1).bit_length()
    if size <= SMALLEST_SEGMENT:
        return 1 << bits
    step = 1 << (bits - 3)
    return -(-size // step) * step


class Segment:
    """Shared memory that both processes map."""

    __slots__ = ("ident", "size", "outgoing", "mapping", "view", "address", "slot_size", "used", "idle_since")

    def __init__(self, ident: int, path: str, size: int, outgoing: bool) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if sys.version_info >= (3, 13):
                self.mapping = mmap.mmap(descriptor, size, trackfd=False)
            else:
                self.mapping = mmap.mmap(descriptor, size)  # keeps a duplicate of the descriptor
        finally:
            os.close(descriptor)
        self.view = memoryview(self.mapping)
        self.address = np.frombuffer(self.view, np.uint8).__array_interface__["data"][0]
        self.ident = ident
        self.size = size
        self.outgoing = outgoing
        self.slot_size = 0
        self.used = 0
        self.idle_since = 0.0

    def close(self) -> None:
        """Unmaps the memory, or leaves that to the collector while an array of it is alive."""
        try:
            self.view.release()
            self.mapping.close()
        except BufferError:
            pass


class Privacy:
    """Gives a forked process its own copy of the arrays over lent slots, at their addresses.

    Made before the fork, since a forked process should load no library.
    """

    def __init__(self) -> None:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        self._map = libc.mmap
        self._map.restype = ctypes.c_void_p
        self._map.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        self._move = ctypes.memmove
        self._copy = ctypes.string_at

    def take(self, slots: "List[LentSlot]") -> bool:
        """Copies the slots in place. Returns whether all were copied."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        for slot in slots:
            address = slot.segment.address + slot.offset
            size = -(-slot.size // mmap.PAGESIZE) * mmap.PAGESIZE
            content = self._copy(address, slot.size)
            if self._map(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != address:
                return False
            self._move(address, content, slot.size)
        return True


class IncomingSlot:
    """Part of an incoming segment that the server does not use again before this object is collected."""

    __slots__ = ("segment", "offset", "size", "release", "__weakref__")

    def __init__(self, segment: Segment, offset: int, size: int, release: Callable[[int, int], None]) -> None:
        self.segment = segment
        self.offset = offset
        self.size = size
        self.release = release
        LIVE_SLOTS[id(self)] = weakref.ref(self)

    def __del__(self) -> None:
        LIVE_SLOTS.pop(id(self), None)
        self.release(self.segment.ident, self.offset)


class LentSlot:
    """Outgoing slot under an array that the model has got for an input.

    If the model returns that array, and nothing else holds it, the slot goes to the server as it is. Otherwise the slot
    is free again when the last array over it is collected.
    """

    __slots__ = ("segment", "offset", "size", "memory", "move", "__array_interface__", "__weakref__")

    def __init__(self, segment: Segment, offset: int, size: int, memory: "Memory") -> None:
        self.segment = segment
        self.offset = offset
        self.size = size
        self.memory = memory
        self.move: Optional[List[bool]] = None
        LIVE_SLOTS[id(self)] = weakref.ref(self)

    def array(self, shape: Tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns the array over the slot; its base is this object."""
        self.__array_interface__ = {
            "data": (self.segment.address + self.offset, False), "shape": shape, "typestr": dtype.str, "version": 3,
        }
        return np.asarray(self)

    def is_whole(self, array: np.ndarray) -> bool:
        """Returns whether an array starts at the slot's start, and has all its bytes."""
        start = array.__array_interface__["data"][0]
        return array.nbytes == self.size and start == self.segment.address + self.offset

    def __del__(self) -> None:
        LIVE_SLOTS.pop(id(self), None)
        move = self.move
        if move is not None:
            move[0] = True
            self.memory.moved()
        else:
            self.memory.take_back(self)


class MemoryRefused(Exception):
    """There is no more shared memory, or it cannot be mapped."""

    def __init__(self, size: int) -> None:
        super().__init__("Failed to increase the shared memory pool size to %d bytes." % size)


class Memory:
    """Segments of this process, and the allocator of outgoing slots. Thread-safe."""

    def __init__(
        self, want: Callable[[int], None], wait: Callable[[Callable[[], bool]], None],
        give_back: Callable[[List[int]], None] = lambda idents: None,
    ) -> None:
        self._want = want
        self._wait = wait
        self._give_back = give_back
        self._lock = threading.RLock()
        self._segments: Dict[int, Segment] = {}
        self._free: Dict[int, Deque[Tuple[Segment, int]]] = {}
        # By the size of slots: how often SEGMENT_WANTED has brought none, and how often a segment.
        self._refusals: Dict[int, int] = {}
        self._given: Dict[int, int] = {}
        self._unmapped: Dict[int, Tuple[str, int]] = {}
        self._forked = False
        self.lent = 0

    def after_fork(self) -> None:
        """Leaves all slots to the parent process: this one neither gives them out nor takes them back."""
        self._forked = True
        self._lock = threading.RLock()
        self._free = {}

    def lend(self, size: int) -> Optional[LentSlot]:
        """Returns an outgoing slot for an array of the model, if one is free and few are lent."""
        slot_size = slot_size_of(size)
        if self.lent >= MOST_LENT or not self._free.get(slot_size):  # in a forked process there are none
            return None
        with self._lock:
            free = self._free.get(slot_size)
            if not free:
                return None
            segment, offset = free.pop()
            segment.used += 1
            self.lent += 1
        return LentSlot(segment, offset, size, self)

    def moved(self) -> None:
        """Notes that a slot is lent no more."""
        with self._lock:
            self.lent -= 1

    def take_back(self, slot: LentSlot) -> None:
        """Takes a slot back that was lent; called by its finalizer."""
        if self._forked:
            return
        self.moved()
        self.release(slot.segment.ident, slot.offset)

    def segment(self, ident: int) -> Segment:
        """Returns a segment; tries again to map an incoming one that could not be mapped."""
        segment = self._segments.get(ident)
        if segment is None:
            path, size = self._unmapped[ident]
            try:
                segment = Segment(ident, path, size, False)
            except (OSError, ValueError, MemoryError):
                raise MemoryRefused(size) from None
            with self._lock:
                self._segments[ident] = segment
                self._unmapped.pop(ident, None)
        return segment

    def add(self, ident: int, path: str, size: int, outgoing: bool, slot_size: int) -> None:
        """Maps a segment; an outgoing one is cut into slots of one size.

        What cannot be mapped (limits of address space or descriptors) is tried again when a tensor needs it, or returned.
        """
        try:
            segment = Segment(ident, path, size, outgoing)
        except (OSError, ValueError, MemoryError) as error:
            sys.stderr.write("shared memory of %d bytes cannot be mapped: %s\n" % (size, error))
            if outgoing:
                self._give_back([ident])
                self.refuse(slot_size)
            else:
                with self._lock:
                    self._unmapped[ident] = (path, size)
            return
        with self._lock:
            self._segments[ident] = segment
            if outgoing:
                segment.slot_size = slot_size
                segment.idle_since = time.monotonic()
                free = self._free.setdefault(slot_size, collections.deque())
                for offset in range(0, size - slot_size + 1, slot_size):
                    free.append((segment, offset))
                self._given[slot_size] = self._given.get(slot_size, 0) + 1

    def refuse(self, slot_size: int) -> None:
        """Notes that there is no segment for slots of this size."""
        with self._lock:
            self._refusals[slot_size] = self._refusals.get(slot_size, 0) + 1

    def remove(self, ident: int) -> None:
        """Unmaps an incoming segment that the server takes back. Outgoing ones are returned by ``idle`` alone."""
        with self._lock:
            self._unmapped.pop(ident, None)
            segment = self._segments.get(ident)
            if segment is None or segment.outgoing:
                return
            del self._segments[ident]
        segment.close()

    def allocate(self, size: int) -> Tuple[Segment, int]:
        """Returns an outgoing slot of at least ``size`` bytes; asks the server for a segment if none is free."""
        slot_size = slot_size_of(size)
        refused = False
        while True:
            with self._lock:
                free = self._free.get(slot_size)
                if free:
                    segment, offset = free.pop()
                    segment.used += 1
                    return segment, offset
                refusals, given = self._refusals.get(slot_size), self._given.get(slot_size)
            self._want(slot_size)
            self._wait(
                lambda: self._refusals.get(slot_size) != refusals or self._given.get(slot_size) != given
                or bool(self._free.get(slot_size))
            )
            if self._refusals.get(slot_size) != refusals and self._given.get(slot_size) == given:
                if self._free.get(slot_size):
                    continue
                if refused:
                    raise MemoryRefused(max(slot_size, SMALLEST_SEGMENT))
                # Idle segments with slots of other sizes count too: they go, and the server is asked once more.
                refused = True
                returned = self.idle(now=float("inf"))
                if not returned:
                    raise MemoryRefused(max(slot_size, SMALLEST_SEGMENT))
                self._give_back(returned)

    def release(self, ident: int, offset: int) -> None:
        """Takes an outgoing slot back from the server."""
        if self._forked:
            return
        with self._lock:
            segment = self._segments.get(ident)
            if segment is None:
                return
            self._free[segment.slot_size].append((segment, offset))
            segment.used -= 1
            if segment.used == 0:
                segment.idle_since = time.monotonic()

    def idle(self, now: Optional[float] = None) -> List[int]:
        """Gives up the outgoing segments that have not been used for a while, and returns their numbers."""
        limit = (time.monotonic() if now is None else now) - IDLE_SECONDS
        returned = []
        with self._lock:
            for segment in list(self._segments.values()):
                if segment.outgoing and segment.used == 0 and segment.idle_since <= limit:
                    free = self._free.get(segment.slot_size, ())
                    self._free[segment.slot_size] = collections.deque(s for s in free if s[0] is not segment)
                    del self._segments[segment.ident]
                    returned.append(segment)
        for segment in returned:
            segment.close()
        return [segment.ident for segment in returned]

    def has_outgoing(self) -> bool:
        """Returns whether an outgoing segment is mapped."""
        return any(segment.outgoing for segment in list(self._segments.values()))
