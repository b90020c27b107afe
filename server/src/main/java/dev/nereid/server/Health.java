package dev.nereid.server;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.server.options.SupervisionOptions;

/** Tracks fatal errors, a full heap and failed GPUs, which make the server not live. Safe for use by any thread. */
final class Health implements FatalErrorHandler {
    private final SupervisionOptions options;
    private final GpuAccess gpus;
    private final HeapWatch heap = new HeapWatch(JvmHeap::new, this);
    private volatile boolean failed;

    Health(SupervisionOptions options, GpuAccess gpus) {
        this.options = options;
        this.gpus = gpus;
    }

    @Override
    public void onFatalError(OutOfMemoryError error) {
        failed = !options.liveAfterFatalErrors();
        options.fatalErrors().onFatalError(error);
    }

    /** Returns the watch of the heap. */
    HeapWatch heap() {
        return heap;
    }

    /** Returns whether the server is live. */
    boolean isGood() {
        return !failed && !heap.isFull() && gpus.failure().isEmpty();
    }
}
