package dev.nereid.grpc.wire;

/** Limits of the work that an event loop does in one step. Constants only. */
public final class EventLoopLimits {
    /**
     * Copies of raw tensors of so much are left to the event loop, where the bytes are still in the cache: they take 0.1 to
     * 0.2 ms, of the millisecond that a step of an event loop may take.
     */
    public static final int MAX_COPIED_BYTES = 1 << 20;

    /** So much is parsed by the event loop, value by value. */
    public static final int MAX_PARSED_BYTES = 256 << 10;

    private EventLoopLimits() {}
}
