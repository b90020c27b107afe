package dev.nereid.grpc.stream;

import dev.nereid.api.InferenceServer;
import dev.nereid.grpc.connection.ShutdownInterceptor;
import dev.nereid.grpc.service.InferCallDependencies;
import java.util.concurrent.Executor;

/**
 * Dependencies that all calls of ModelStreamInfer share. Immutable; the components are safe for use by any thread.
 *
 * @param server runs the requests
 * @param dependencies the dependencies shared with ModelInfer
 * @param eventLoops continue writing that would occupy another thread too long
 * @param shutdown reports whether requests are refused
 */
public record StreamContext(
        InferenceServer server,
        InferCallDependencies dependencies,
        StreamLimits limits,
        Executor eventLoops,
        ShutdownInterceptor shutdown) {
    /** Refuses a request while the server shuts down. */
    void checkAcceptsRequests() {
        if (shutdown.isStarted()) {
            throw ShutdownInterceptor.refusal();
        }
    }
}
