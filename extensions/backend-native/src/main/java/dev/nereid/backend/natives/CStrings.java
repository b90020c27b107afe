package dev.nereid.backend.natives;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.List;

/** Converts strings to and from C strings. Stateless. */
public final class CStrings {
    private CStrings() {}

    /** Reads the zero-terminated UTF-8 text at {@code address}; a null pointer is the empty text. */
    @SuppressWarnings("restricted")
    public static String read(long address) {
        return address == 0
                ? ""
                : MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** Reads {@code count} texts; {@code address} is an array of pointers to them. */
    @SuppressWarnings("restricted")
    public static List<String> readAll(long address, int count) {
        MemorySegment pointers = MemorySegment.ofAddress(address).reinterpret(count * JAVA_LONG.byteSize());
        return pointers.elements(JAVA_LONG)
                .map(pointer -> read(pointer.get(JAVA_LONG, 0)))
                .toList();
    }

    /** Returns the address of a zero-terminated copy of {@code text} that lives as long as {@code arena}. */
    public static long write(Arena arena, String text) {
        return arena.allocateFrom(text).address();
    }

    /** Returns the address of an array with the addresses of copies of {@code texts}, as {@link #write}. */
    public static long writeAll(Arena arena, Collection<String> texts) {
        return arena.allocateFrom(
                        JAVA_LONG,
                        texts.stream().mapToLong(text -> write(arena, text)).toArray())
                .address();
    }
}
