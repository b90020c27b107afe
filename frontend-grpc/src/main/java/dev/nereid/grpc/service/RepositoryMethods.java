package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelRepositoryParameter;
import inference.RepositoryIndexRequest;
import inference.RepositoryIndexResponse;
import inference.RepositoryModelLoadRequest;
import inference.RepositoryModelLoadResponse;
import inference.RepositoryModelUnloadRequest;
import inference.RepositoryModelUnloadResponse;
import io.grpc.ServerMethodDefinition;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/** Handles the methods that list, load and unload models. Safe for use by any thread. */
final class RepositoryMethods {
    private static final String CONFIG = "config";
    private static final String FILE_PREFIX = "file:";
    private static final String FORCE = "force";
    private static final String UNLOAD_DEPENDENTS = "unload_dependents";

    private final InferenceServer server;

    private RepositoryMethods(InferenceServer server) {
        this.server = server;
    }

    static List<ServerMethodDefinition<?, ?>> of(InferenceServer server) {
        RepositoryMethods methods = new RepositoryMethods(server);
        return List.of(
                UnaryMethod.async(GRPCInferenceServiceGrpc.getRepositoryIndexMethod(), methods::index),
                UnaryMethod.asyncWithFiles(GRPCInferenceServiceGrpc.getRepositoryModelLoadMethod(), methods::load),
                UnaryMethod.async(GRPCInferenceServiceGrpc.getRepositoryModelUnloadMethod(), methods::unload));
    }

    private CompletionStage<RepositoryIndexResponse> index(RepositoryIndexRequest request) {
        checkRepository(request.getRepositoryName());
        return server.control().index().thenApply(statuses -> describe(statuses, request.getReady()));
    }

    private static RepositoryIndexResponse describe(List<ModelStatus> statuses, boolean isReadyOnly) {
        RepositoryIndexResponse.Builder response = RepositoryIndexResponse.newBuilder();
        for (ModelStatus status : statuses) {
            if (!isReadyOnly || status.state() == ModelStatus.State.READY) {
                RepositoryIndexResponse.ModelIndex.Builder model =
                        response.addModelsBuilder().setName(status.name()).setReason(status.reason());
                status.version().ifPresent(version -> model.setVersion(Long.toString(version)));
                if (status.state() != ModelStatus.State.UNKNOWN) { // a model that was never loaded has no state
                    model.setState(status.state().name());
                }
            }
        }
        return response.build();
    }

    private CompletionStage<RepositoryModelLoadResponse> load(RepositoryModelLoadRequest request) {
        checkRepository(request.getRepositoryName());
        Optional<String> config = Optional.empty();
        Map<String, ByteBuffer> files = new HashMap<>();
        boolean isForced = false;
        for (Map.Entry<String, ModelRepositoryParameter> parameter :
                request.getParametersMap().entrySet()) {
            String name = parameter.getKey();
            ModelRepositoryParameter value = parameter.getValue();
            if (name.equals(CONFIG)) {
                check(value.hasStringParam(), "load parameter '" + Quoted.text(name) + "', expected string_param.");
                config = Optional.of(value.getStringParam());
            } else if (name.startsWith(FILE_PREFIX)) {
                check(value.hasBytesParam(), "load parameter '" + Quoted.text(name) + "', expected bytes_param.");
                files.put(
                        name.substring(FILE_PREFIX.length()),
                        value.getBytesParam().asReadOnlyByteBuffer());
            } else if (name.equals(FORCE)) {
                check(value.hasBoolParam(), "load parameter '" + FORCE + "', expected bool_param.");
                isForced = value.getBoolParam();
            } else {
                throw new InferenceException(
                        ErrorCode.INVALID_ARGUMENT, "unrecognized load parameter '" + Quoted.text(name) + "'.");
            }
        }
        return server.control()
                .load(new ModelControl.Load(request.getModelName(), config, files, isForced))
                .thenApply(_ -> RepositoryModelLoadResponse.getDefaultInstance());
    }

    private CompletionStage<RepositoryModelUnloadResponse> unload(RepositoryModelUnloadRequest request) {
        checkRepository(request.getRepositoryName());
        boolean dependents = false;
        ModelRepositoryParameter value = request.getParametersMap().get(UNLOAD_DEPENDENTS);
        if (value != null) {
            check(value.hasBoolParam(), "'" + UNLOAD_DEPENDENTS + "' parameter, expected bool_param.");
            dependents = value.getBoolParam();
        }
        return server.control()
                .unload(request.getModelName(), dependents)
                .thenApply(_ -> RepositoryModelUnloadResponse.getDefaultInstance());
    }

    private static void checkRepository(String name) {
        if (!name.isEmpty()) {
            throw new InferenceException(ErrorCode.UNSUPPORTED, "'repository_name' specification is not supported");
        }
    }

    private static void check(boolean isOfType, String what) {
        if (!isOfType) {
            throw new InferenceException(ErrorCode.INVALID_ARGUMENT, "invalid value type for " + what);
        }
    }
}
