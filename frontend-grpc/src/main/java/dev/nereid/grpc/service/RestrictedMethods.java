package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.Refusals;
import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ApiGroup;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.spi.ErrorCode;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.health.v1.HealthGrpc;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Refuses calls to restricted methods that lack the required header. Immutable. */
public final class RestrictedMethods implements ServerInterceptor {
    private static final String PREFIX = "triton-grpc-protocol-";

    private static final String HEALTH_PREFIX = HealthGrpc.SERVICE_NAME + "/";

    /** The groups by full method names, which the transport has, so that the lookup costs a call almost nothing. */
    private static final Map<String, ApiGroup> GROUPS = ofFullNames(Map.ofEntries(
            Map.entry("ServerLive", ApiGroup.HEALTH),
            Map.entry("ServerReady", ApiGroup.HEALTH),
            Map.entry("ModelReady", ApiGroup.HEALTH),
            Map.entry("ServerMetadata", ApiGroup.METADATA),
            Map.entry("ModelMetadata", ApiGroup.METADATA),
            Map.entry("ModelInfer", ApiGroup.INFERENCE),
            Map.entry("ModelStreamInfer", ApiGroup.INFERENCE),
            Map.entry("ModelConfig", ApiGroup.MODEL_CONFIG),
            Map.entry("ModelStatistics", ApiGroup.STATISTICS),
            Map.entry("RepositoryIndex", ApiGroup.MODEL_REPOSITORY),
            Map.entry("RepositoryModelLoad", ApiGroup.MODEL_REPOSITORY),
            Map.entry("RepositoryModelUnload", ApiGroup.MODEL_REPOSITORY),
            Map.entry("SystemSharedMemoryStatus", ApiGroup.SHARED_MEMORY),
            Map.entry("SystemSharedMemoryRegister", ApiGroup.SHARED_MEMORY),
            Map.entry("SystemSharedMemoryUnregister", ApiGroup.SHARED_MEMORY),
            Map.entry("CudaSharedMemoryStatus", ApiGroup.SHARED_MEMORY),
            Map.entry("CudaSharedMemoryRegister", ApiGroup.SHARED_MEMORY),
            Map.entry("CudaSharedMemoryUnregister", ApiGroup.SHARED_MEMORY),
            Map.entry("TraceSetting", ApiGroup.TRACE),
            Map.entry("LogSettings", ApiGroup.LOGGING)));

    private final ApiAccess access;
    private final Refusals refusals;

    public RestrictedMethods(ApiAccess access, Refusals refusals) {
        this.access = access;
        this.refusals = refusals;
    }

    /** Returns the API group of a method; empty for methods outside the inference protocol. */
    static Optional<ApiGroup> group(String fullMethodName) {
        if (fullMethodName.startsWith(HEALTH_PREFIX)) {
            return Optional.of(ApiGroup.HEALTH);
        }
        return Optional.ofNullable(GROUPS.get(fullMethodName));
    }

    private static Map<String, ApiGroup> ofFullNames(Map<String, ApiGroup> groups) {
        return groups.entrySet().stream()
                .collect(Collectors.toUnmodifiableMap(
                        entry -> GRPCInferenceServiceGrpc.SERVICE_NAME + "/" + entry.getKey(), Map.Entry::getValue));
    }

    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        Optional<String> missing = group(call.getMethodDescriptor().getFullMethodName())
                .flatMap(group -> access.missingHeader(group, name -> header(headers, name)));
        if (missing.isEmpty()) {
            return next.startCall(call, headers);
        }
        InferenceException error = InferenceException.refusal(
                ErrorCode.UNAVAILABLE,
                RefusalCause.RESTRICTED,
                "This protocol is restricted, expecting header '" + PREFIX + missing.get() + "'");
        return RequestFailures.refuse(call, refusals, error);
    }

    private static @Nullable String header(Metadata headers, String name) {
        try {
            return headers.get(Metadata.Key.of(PREFIX + name, Metadata.ASCII_STRING_MARSHALLER));
        } catch (IllegalArgumentException _) {
            return null; // a name that no header can have
        }
    }
}
