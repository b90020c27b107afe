package dev.nereid.server;

import dev.nereid.api.BestEffort;
import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.server.options.SupervisionOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tracks fatal errors, ended threads, a full heap and failed GPUs, which make the server not live. Safe for use by any
 * thread.
 */
final class Health implements FatalErrorHandler {
    private static final Logger LOG = LoggerFactory.getLogger(Health.class);

    private final SupervisionOptions options;
    private final GpuAccess gpus;
    private final HeapWatch heap = new HeapWatch(JvmHeap::new, this);
    private volatile boolean failed;

    /** Whether a permanent thread has ended. Nothing starts another one. */
    private volatile boolean threadEnded;

    Health(SupervisionOptions options, GpuAccess gpus) {
        this.options = options;
        this.gpus = gpus;
    }

    @Override
    public void onFatalError(OutOfMemoryError error) {
        failed = !options.liveAfterFatalErrors();
        options.fatalErrors().onFatalError(error);
    }

    /** Makes the server not live for good, even if it is to stay live after fatal errors: what the thread did is not done. */
    @Override
    public void onThreadEnded(String thread) {
        threadEnded = true; // first: there may be no memory for the rest
        LOG.atError().addKeyValue("thread", thread).log("permanent thread has ended: the server is not live any more");
        BestEffort.run("end of a thread", () -> options.fatalErrors().onThreadEnded(thread));
    }

    /** Returns the watch of the heap. */
    HeapWatch heap() {
        return heap;
    }

    /** Returns whether the server is live. */
    boolean isGood() {
        return !failed && !threadEnded && !heap.isFull() && gpus.failure().isEmpty();
    }
}
