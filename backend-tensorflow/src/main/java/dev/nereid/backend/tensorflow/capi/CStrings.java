package dev.nereid.backend.tensorflow.capi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Converts strings to and from C strings. Stateless. */
final class CStrings {
    private CStrings() {}

    /** Reads the zero-terminated UTF-8 text at {@code address}; a null pointer is the empty text. */
    @SuppressWarnings("restricted")
    static String read(long address) {
        return address == 0
                ? ""
                : MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** Returns the address of a zero-terminated copy of {@code text} that lives as long as {@code arena}. */
    static long write(Arena arena, String text) {
        return arena.allocateFrom(text).address();
    }
}
