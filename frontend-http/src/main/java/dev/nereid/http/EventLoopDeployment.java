package dev.nereid.http;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.ThreadingModel;
import io.vertx.core.VerticleBase;
import io.vertx.core.Vertx;
import io.vertx.core.internal.ContextInternal;
import java.util.function.Function;

/**
 * Starts servers on event loops. Static functions only. A class beside {@link HttpFrontend}, so that the latter can be
 * loaded with a Vert.x that lacks the types used here, and can report that.
 */
final class EventLoopDeployment {
    private EventLoopDeployment() {}

    /** Starts a server on each of {@code count} event loops; returns the deployment that releases the event loops. */
    static Future<String> of(Vertx vertx, int count, Function<ContextInternal, Future<?>> server) {
        return vertx.deployVerticle(
                () -> new VerticleBase() {
                    @Override
                    public Future<?> start() {
                        return server.apply((ContextInternal) context);
                    }
                },
                new DeploymentOptions().setInstances(count).setThreadingModel(ThreadingModel.EVENT_LOOP));
    }
}
