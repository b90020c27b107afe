package dev.nereid.backend.onnx.ort;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

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
