package dev.nereid.grpc.wire;

import org.jspecify.annotations.Nullable;

/** Provides each thread with a reusable array for small responses. Safe for use by any thread. */
public final class ResponseArrays {
    /** What a small response takes, with the fields besides its outputs. */
    private static final int BYTES = InferResponseMessage.SMALL_BYTES + 1024;

    private final ThreadLocal<Holder> holders = ThreadLocal.withInitial(Holder::new);

    /** Holds one thread's array. Confined to that thread. */
    private static final class Holder {
        private byte @Nullable [] array;
    }

    /** Takes the array of this thread, or a new one if that is taken. Owned by the caller until it is given back. */
    public byte[] take() {
        Holder place = holders.get();
        byte[] array = place.array;
        place.array = null;
        return array == null ? new byte[BYTES] : array;
    }

    /** Keeps an array that this thread took. */
    public void giveBack(byte[] array) {
        holders.get().array = array;
    }
}
