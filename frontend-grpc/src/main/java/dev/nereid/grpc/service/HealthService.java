package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import io.grpc.ServerServiceDefinition;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** The service {@code grpc.health.v1.Health} for the server and each model. Safe for use by any thread. */
public final class HealthService {
    private final InferenceServer server;
    private final Set<String> services;
    private final HealthWatchers watchers;

    /** Creates the service. The timer checks for changes while there are watchers; it must outlive the service. */
    public HealthService(InferenceServer server, Set<String> services, Executor timer) {
        this.server = server;
        this.services = services;
        this.watchers = new HealthWatchers(this::status, timer);
    }

    public ServerServiceDefinition definition() {
        return InferenceService.service(
                HealthGrpc.getServiceDescriptor(),
                List.of(UnaryMethod.async(HealthGrpc.getCheckMethod(), this::check), watchers.definition()));
    }

    /** Reports to all watchers that the server stops, and ends their calls. */
    public void stop() {
        watchers.stop();
    }

    private CompletionStage<HealthCheckResponse> check(HealthCheckRequest request) {
        String name = request.getService();
        CompletionStage<Boolean> check;
        if (isServer(name)) {
            check = CompletableFuture.completedStage(server.isReady());
        } else if (isModel(name)) {
            check = InferenceService.checkReady(server, ModelRef.latest(name));
        } else {
            throw new InferenceException(ErrorCode.NOT_FOUND, "unknown service '" + Quoted.text(name) + "'");
        }
        return check.thenApply(isHealthy ->
                HealthCheckResponse.newBuilder().setStatus(status(isHealthy)).build());
    }

    /** Returns the status for watchers, who learn of a check that takes longer with one of the next polls. */
    private ServingStatus status(String name) {
        if (isServer(name)) {
            return status(server.isReady());
        }
        return isModel(name)
                ? status(InferenceService.isReady(server, ModelRef.latest(name)))
                : ServingStatus.SERVICE_UNKNOWN;
    }

    private boolean isServer(String name) {
        return name.isEmpty() || services.contains(name);
    }

    private boolean isModel(String name) {
        return server.models().index().stream().map(ModelStatus::name).anyMatch(name::equals);
    }

    private static ServingStatus status(boolean isHealthy) {
        return isHealthy ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    }
}
