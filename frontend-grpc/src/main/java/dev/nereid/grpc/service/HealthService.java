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
import java.util.concurrent.Executor;

/** The service {@code grpc.health.v1.Health} for the server and each model. Safe for use by any thread. */
public final class HealthService {
    private final InferenceServer server;
    private final Set<String> services;
    private final HealthWatchers watchers;

    /**
     * Creates the service.
     *
     * @param server the server whose health is reported
     * @param services the names of services with the health of the server
     * @param timer the thread that checks for changes while there are watchers; must outlive the service
     */
    public HealthService(InferenceServer server, Set<String> services, Executor timer) {
        this.server = server;
        this.services = services;
        this.watchers = new HealthWatchers(this::status, timer);
    }

    /** Returns the service with its methods. */
    public ServerServiceDefinition definition() {
        return InferenceService.service(
                HealthGrpc.getServiceDescriptor(),
                List.of(UnaryMethod.of(HealthGrpc.getCheckMethod(), this::check), watchers.definition()));
    }

    /** Reports to all watchers that the server stops, and ends their calls. */
    public void stop() {
        watchers.stop();
    }

    private HealthCheckResponse check(HealthCheckRequest request) {
        ServingStatus status = status(request.getService());
        if (status == ServingStatus.SERVICE_UNKNOWN) {
            throw new InferenceException(
                    ErrorCode.NOT_FOUND, "unknown service '" + Quoted.text(request.getService()) + "'");
        }
        return HealthCheckResponse.newBuilder().setStatus(status).build();
    }

    private ServingStatus status(String name) {
        boolean isHealthy;
        if (name.isEmpty() || services.contains(name)) {
            isHealthy = server.isReady();
        } else if (server.models().index().stream().map(ModelStatus::name).noneMatch(name::equals)) {
            return ServingStatus.SERVICE_UNKNOWN;
        } else {
            isHealthy = InferenceService.isReady(server, ModelRef.latest(name));
        }
        return isHealthy ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    }
}
