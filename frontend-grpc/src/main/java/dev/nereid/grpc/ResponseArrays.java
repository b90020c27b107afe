package dev.nereid.grpc;

import org.jspecify.annotations.Nullable;

/**
 * For each thread that answers, an array in which it writes one small response after the other: the transport has
 * copied a response before the next one is written, and what is written again and again stays in the processor's cache.
 * Safe for use by any thread.
 */
final class ResponseArrays {
    /** What a small response takes, with the fields besides its outputs. */
    private static final int BYTES = InferResponseMessage.SMALL_BYTES + 1024;

    private final ThreadLocal<Place> places = ThreadLocal.withInitial(Place::new);

    /** Where a thread keeps its array. Confined to that thread. */
    private static final class Place {
        private byte @Nullable [] array;
    }

    /** Takes the array of this thread, or a new one if that is taken. Owned by the caller until it is given back. */
    byte[] take() {
        Place place = places.get();
        byte[] array = place.array;
        place.array = null;
        return array == null ? new byte[BYTES] : array;
    }

    /** Keeps an array that this thread took. */
    void giveBack(byte[] array) {
        places.get().array = array;
    }
}
