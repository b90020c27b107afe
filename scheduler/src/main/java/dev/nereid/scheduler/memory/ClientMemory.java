package dev.nereid.scheduler.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;

/**
 * Accesses shared memory of clients, which may disappear during an access. An access to lost memory throws an
 * {@link InternalError}, at once or a little later. Static functions only.
 *
 * <p>Other code of the server passes such memory on and does not access it. A backend accesses it only if its traits
 * allow that ({@link dev.nereid.spi.BackendTraits#withClientMemory}), and only in an execution of one request, so that
 * a fault fails that request alone.
 */
public final class ClientMemory {
    private static final Object FAULT_LOCK = new Object();

    private ClientMemory() {}

    /**
     * Copies from or to memory of a client.
     *
     * @param target the destination; at least as large
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the memory is gone
     */
    public static void copy(MemorySegment from, MemorySegment target) {
        try {
            MemorySegment.copy(from, 0, target, 0, from.byteSize());
            awaitFaults();
        } catch (InternalError e) { // of a mapped file that was truncated
            throw lostError();
        }
    }

    public static boolean isClientMemory(MemorySegment memory) {
        return memory.isMapped();
    }

    /** Creates the error for a request with truncated shared memory. */
    public static InferenceException lostError() {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "shared memory of the request was truncated (expected: a segment of constant size while it is used)");
    }

    /**
     * Throws the error of an earlier failed access of this thread. Compiled code goes on after such an access, and the
     * virtual machine throws when the thread passes a safepoint; the return from native code is one.
     */
    public static void awaitFaults() {
        boolean held = Thread.holdsLock(FAULT_LOCK);
        assert !held : "FAULT_LOCK: held (expected: private to this class)";
    }
}
