package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;

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

    /** Reads {@code count} texts; {@code address} is an array of pointers to them. */
    @SuppressWarnings("restricted")
    static List<String> readAll(long address, int count) {
        MemorySegment pointers = MemorySegment.ofAddress(address).reinterpret(count * JAVA_LONG.byteSize());
        return pointers.elements(JAVA_LONG)
                .map(pointer -> read(pointer.get(JAVA_LONG, 0)))
                .toList();
    }

    /** Returns the address of an array with the addresses of copies of {@code texts}, as {@link #write}. */
    static long writeAll(Arena arena, Collection<String> texts) {
        return arena.allocateFrom(
                        JAVA_LONG,
                        texts.stream().mapToLong(text -> write(arena, text)).toArray())
                .address();
    }

    /** Returns the address of a zero-terminated copy of {@code text} that lives as long as {@code arena}. */
    static long write(Arena arena, String text) {
        return arena.allocateFrom(text).address();
    }

    /**
     * Returns the address of {@code path} as a C string. The encoding is that of {@code platform}'s C API; the string
     * lives as long as {@code arena}.
     */
    static long writePath(Arena arena, Path path, NativePlatform platform) {
        String text = path.toAbsolutePath().toString();
        return platform.widePaths()
                ? arena.allocateFrom(text, StandardCharsets.UTF_16LE).address()
                : arena.allocateFrom(text).address();
    }
}
