package dev.nereid.grpc.wire;

/** Limits of the work that an event loop does in one step. Constants only. */
public final class EventLoopLimits {
    /**
     * The maximum bytes of raw tensors that an event loop copies. They are still in the cache then. The copy takes 0.1
     * to 0.2 ms of the millisecond that one step of an event loop may take.
     */
    public static final int MAX_COPIED_BYTES = 1 << 20;

    /** The maximum bytes that an event loop parses value by value. */
    public static final int MAX_PARSED_BYTES = 256 << 10;

    private EventLoopLimits() {}
}
