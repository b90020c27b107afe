package dev.nereid.grpc.stream;

import dev.nereid.api.InferenceServer;
import dev.nereid.grpc.connection.ShutdownInterceptor;
import dev.nereid.grpc.service.InferCallDependencies;
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
public record StreamContext(
        InferenceServer server,
        InferCallDependencies dependencies,
        StreamLimits limits,
        Executor eventLoops,
        ShutdownInterceptor shutdown) {
    /** Refuses a request if the server takes none any more. */
    void checkAcceptsRequests() {
        if (shutdown.isStarted()) {
            throw ShutdownInterceptor.refusal();
        }
    }
}
