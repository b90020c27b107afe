package dev.nereid.scheduler.batch;

import dev.nereid.spi.Fence;
import java.util.Map;
import java.util.concurrent.Executor;

/** Calls code of a backend outside of its executions. Safe for use by any thread. */
@FunctionalInterface
public interface BackendCallbacks extends Executor {
    /** Runs actions on virtual threads, and calls fences as they are. */
    BackendCallbacks DIRECT = Thread::startVirtualThread;

    /**
     * Runs an action, such as that of {@link dev.nereid.spi.ResponseSender#onReady}. Never on the calling thread.
     *
     * @param action the action, which handles what the backend throws
     */
    @Override
    void execute(Runnable action);

    /**
     * Returns a fence that calls one of the backend.
     *
     * @param fence the fence of an output of the backend
     * @return the fence that is called in its place
     */
    default Fence isolate(Fence fence) {
        return fence;
    }

    /**
     * Finds the threads that are in code of the backend, for reports. Takes milliseconds.
     *
     * @return the threads with their stacks at this moment; empty if they are not known
     */
    default Map<Thread, StackTraceElement[]> threads() {
        return Map.of();
    }
}
