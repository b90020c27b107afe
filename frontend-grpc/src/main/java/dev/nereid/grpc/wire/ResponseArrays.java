package dev.nereid.grpc.wire;

import org.jspecify.annotations.Nullable;

/** Provides each thread with a reusable array for small responses. Safe for use by any thread. */
public final class ResponseArrays {
    /** The maximum size of a small response with its other fields. */
    private static final int BYTES = InferResponseMessage.SMALL_BYTES + 1024;

    private final ThreadLocal<Holder> holders = ThreadLocal.withInitial(Holder::new);

    /** Holds one thread's array. Confined to that thread. */
    private static final class Holder {
        private byte @Nullable [] array;
    }

    /** Takes the array of this thread, or a new one if that is in use. Owned by the caller until {@link #release}. */
    public byte[] take() {
        Holder holder = holders.get();
        byte[] array = holder.array;
        holder.array = null;
        return array == null ? new byte[BYTES] : array;
    }

    /** Returns an array that this thread took. */
    public void release(byte[] array) {
        holders.get().array = array;
    }
}
