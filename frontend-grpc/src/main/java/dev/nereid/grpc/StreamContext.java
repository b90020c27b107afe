package dev.nereid.grpc;

import dev.nereid.api.InferenceServer;
import java.util.concurrent.Executor;

/**
 * Dependencies that all calls of ModelStreamInfer share. Immutable; the components are safe for use by any thread.
 *
 * @param server infers
 * @param dependencies the dependencies shared with ModelInfer
 * @param limits the limits of each stream
 * @param eventLoops go on with what takes another thread too long
 * @param shutdown says when requests are refused
 */
record StreamContext(
        InferenceServer server, InferCalls dependencies, StreamLimits limits, Executor eventLoops, Stopping shutdown) {
    /** Refuses a request if the server takes none any more. */
    void checkAcceptsRequests() {
        if (shutdown.hasBegun()) {
            throw Stopping.refusal();
        }
    }
}
