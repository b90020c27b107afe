package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;

/**
 * Accesses shared memory of clients, which may disappear during an access. Whoever touches what is gone gets an
 * {@link InternalError}, at once or a little later; here is where the server touches it. Static functions only.
 */
public final class ClientMemory {
    private static final Object NOTHING = new Object();

    private ClientMemory() {}

    /**
     * Copies from or to memory of a client.
     *
     * @param from the content
     * @param to where to copy it; at least as large
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the memory is gone
     */
    public static void copy(MemorySegment from, MemorySegment to) {
        try {
            MemorySegment.copy(from, 0, to, 0, from.byteSize());
            awaitFaults();
        } catch (InternalError e) {
            throw lostError();
        }
    }

    /** Says whether memory may belong to a client. */
    public static boolean isClientMemory(MemorySegment memory) {
        return memory.isMapped();
    }

    /** What a client is told whose memory went away. */
    public static InferenceException lostError() {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "shared memory of the request went away (expected: a segment that is not cut off while it is used)");
    }

    /**
     * Has this thread throw the error of an access that failed before. Compiled code goes on after such an access, and
     * the virtual machine throws when the thread passes a safepoint; the return from native code is one.
     */
    public static void awaitFaults() {
        boolean held = Thread.holdsLock(NOTHING);
        assert !held : "a lock that nobody else can see";
    }
}
