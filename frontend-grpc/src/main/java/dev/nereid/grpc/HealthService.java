package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import io.grpc.ServerServiceDefinition;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import java.util.List;
import java.util.Set;

/**
 * The service {@code grpc.health.v1.Health}: the health of the server, under no name or that of a service, and of each
 * model under its own name. Safe for use by any thread.
 */
final class HealthService {
    private final InferenceServer server;
    private final Set<String> services;

    private HealthService(InferenceServer server, Set<String> services) {
        this.server = server;
        this.services = services;
    }

    /**
     * Returns the service.
     *
     * @param server whose health it tells
     * @param services the names of services that are as healthy as the server
     */
    static ServerServiceDefinition of(InferenceServer server, Set<String> services) {
        HealthService service = new HealthService(server, services);
        return InferenceService.service(
                HealthGrpc.getServiceDescriptor(),
                List.of(
                        UnaryMethod.of(HealthGrpc.getCheckMethod(), service::check),
                        UnaryMethod.unimplemented(HealthGrpc.getWatchMethod())));
    }

    private HealthCheckResponse check(HealthCheckRequest request) {
        ServingStatus status = isHealthy(request.getService()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
        return HealthCheckResponse.newBuilder().setStatus(status).build();
    }

    private boolean isHealthy(String name) {
        if (name.isEmpty() || services.contains(name)) {
            return server.isReady();
        }
        if (server.models().index().stream().map(ModelStatus::name).noneMatch(name::equals)) {
            throw new InferenceException(ErrorCode.NOT_FOUND, "unknown service '" + name + "'");
        }
        return InferenceService.isReady(server, ModelRef.latest(name));
    }
}
