package dev.nereid.scheduler.batch;

import dev.nereid.spi.Fence;
import dev.nereid.spi.ModelClient;
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
     * Returns a client whose responses come to the backend as calls of it do.
     *
     * @param client the client of a model of the backend
     * @return the client that the backend gets in its place
     */
    default ModelClient isolate(ModelClient client) {
        return client;
    }
}
