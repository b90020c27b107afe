package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * Location of the bytes of a tensor. Immutable.
 *
 * <p>A backend is only handed tensors of {@link Kind#HOST} or {@link Kind#PINNED} unless its traits accept other places
 * ({@link BackendTraits#withPlaces}). A backend that asks for pinned memory gets ordinary memory from a server that has
 * no pinned one: the place of the result says which.
 *
 * @param kind the kind of memory
 * @param deviceId the device that owns it, as {@link Device#id()}; 0 for {@link Kind#HOST}
 * @since 1.0
 */
public record MemoryPlace(Kind kind, int deviceId) {
    /** Ordinary memory of the process. */
    public static final MemoryPlace HOST = new MemoryPlace(Kind.HOST, 0);

    /** The kinds of memory. Open: later versions may add constants. */
    public enum Kind {
        /** Ordinary memory of the process. */
        HOST,
        /** Memory of the process that is pinned for fast copies to a device. Readable like {@link #HOST}. */
        PINNED,
        /** Memory of a device. The segment is an address and a size: Java code must not read or write it. */
        GPU
    }

    /** Checks the components. */
    public MemoryPlace {
        requireNonNull(kind, "kind");
        if (deviceId < 0) {
            throw new IllegalArgumentException("deviceId: " + deviceId + " (expected: >= 0)");
        }
    }

    /**
     * Says whether Java code may read and write the memory.
     *
     * @return {@code true} for {@link Kind#HOST} and {@link Kind#PINNED}
     */
    public boolean isHost() {
        return kind == Kind.HOST || kind == Kind.PINNED;
    }
}
