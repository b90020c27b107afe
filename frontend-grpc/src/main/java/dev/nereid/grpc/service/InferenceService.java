package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ServerMetadata;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelConfigRequest;
import inference.ModelConfigResponse;
import inference.ModelMetadataRequest;
import inference.ModelMetadataResponse;
import inference.ModelMetadataResponse.TensorMetadata;
import inference.ModelReadyRequest;
import inference.ModelReadyResponse;
import inference.ServerLiveResponse;
import inference.ServerMetadataResponse;
import inference.ServerReadyResponse;
import io.grpc.MethodDescriptor;
import io.grpc.ServerMethodDefinition;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServiceDescriptor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** The service {@code inference.GRPCInferenceService}. Safe for use by any thread. */
public final class InferenceService {
    private final InferenceServer server;

    private InferenceService(InferenceServer server) {
        this.server = server;
    }

    /**
     * Returns the service. Calls of the protocol's other methods end with {@code UNIMPLEMENTED}.
     *
     * @param longTasks runs what takes an event loop too long
     */
    public static ServerServiceDefinition of(
            InferenceServer server, List<ServerMethodDefinition<?, ?>> inference, Executor longTasks) {
        InferenceService service = new InferenceService(server);
        List<ServerMethodDefinition<?, ?>> present = new ArrayList<>(service.methods());
        present.addAll(RepositoryMethods.of(server));
        present.addAll(StatisticsMethods.of(server.models()));
        present.addAll(SharedMemoryMethods.of(server.sharedMemory(), longTasks));
        present.addAll(inference);
        Map<String, ServerMethodDefinition<?, ?>> methods = new LinkedHashMap<>();
        for (MethodDescriptor<?, ?> method :
                GRPCInferenceServiceGrpc.getServiceDescriptor().getMethods()) {
            methods.put(method.getFullMethodName(), UnaryMethod.unimplemented(method));
        }
        for (ServerMethodDefinition<?, ?> method : present) {
            methods.put(method.getMethodDescriptor().getFullMethodName(), method);
        }
        return service(GRPCInferenceServiceGrpc.getServiceDescriptor(), methods.values());
    }

    /** Builds a service of these methods that has the generated one's description, for reflection, too. */
    static ServerServiceDefinition service(
            ServiceDescriptor generated, Iterable<ServerMethodDefinition<?, ?>> methods) {
        ServiceDescriptor.Builder descriptor =
                ServiceDescriptor.newBuilder(generated.getName()).setSchemaDescriptor(generated.getSchemaDescriptor());
        methods.forEach(method -> descriptor.addMethod(method.getMethodDescriptor()));
        ServerServiceDefinition.Builder service = ServerServiceDefinition.builder(descriptor.build());
        methods.forEach(service::addMethod);
        return service.build();
    }

    private List<ServerMethodDefinition<?, ?>> methods() {
        return List.of(
                UnaryMethod.of(
                        GRPCInferenceServiceGrpc.getServerLiveMethod(),
                        _ -> ServerLiveResponse.newBuilder()
                                .setLive(running().isLive())
                                .build()),
                UnaryMethod.of(
                        GRPCInferenceServiceGrpc.getServerReadyMethod(),
                        _ -> ServerReadyResponse.newBuilder()
                                .setReady(running().isReady())
                                .build()),
                UnaryMethod.async(GRPCInferenceServiceGrpc.getModelReadyMethod(), this::modelReady),
                UnaryMethod.of(GRPCInferenceServiceGrpc.getServerMetadataMethod(), _ -> serverMetadata()),
                UnaryMethod.of(GRPCInferenceServiceGrpc.getModelMetadataMethod(), this::modelMetadata),
                UnaryMethod.of(GRPCInferenceServiceGrpc.getModelConfigMethod(), this::modelConfig));
    }

    /** Returns the server, unless it is stopping: then it does not report its health. */
    private InferenceServer running() {
        if (server.isExiting()) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server exiting");
        }
        return server;
    }

    /** Says whether a model can serve. A request without a name is an error: it names no model. */
    private CompletionStage<ModelReadyResponse> modelReady(ModelReadyRequest request) {
        ModelRef model = ModelRef.parse(request.getName(), request.getVersion());
        CompletionStage<Boolean> check = request.getName().isEmpty()
                ? server.models().checkReady(model).thenApply(ModelCatalog.Readiness::isReady)
                : checkReady(server, model);
        return check.thenApply(
                isReady -> ModelReadyResponse.newBuilder().setReady(isReady).build());
    }

    /** Checks whether a model can serve. An unknown or unloaded model cannot, which is not an error. */
    static CompletionStage<Boolean> checkReady(InferenceServer server, ModelRef model) {
        return server.models().checkReady(model).handle((readiness, failure) -> {
            if (failure == null) {
                return readiness.isReady();
            }
            Throwable cause =
                    failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
            if (cause instanceof InferenceException error && isUnknown(error)) {
                return false;
            }
            throw new CompletionException(cause);
        });
    }

    private static boolean isUnknown(InferenceException error) {
        return error.code() == ErrorCode.NOT_FOUND || error.code() == ErrorCode.UNAVAILABLE;
    }

    /** Returns whether a model can serve, as far as that is known, as {@link #checkReady} does. */
    static boolean isReady(InferenceServer server, ModelRef model) {
        try {
            return server.models().isReady(model);
        } catch (InferenceException error) {
            if (isUnknown(error)) {
                return false;
            }
            throw error;
        }
    }

    private ServerMetadataResponse serverMetadata() {
        ServerMetadata info = server.metadata();
        return ServerMetadataResponse.newBuilder()
                .setName(info.name())
                .setVersion(info.version())
                .addAllExtensions(info.extensions())
                .build();
    }

    private ModelMetadataResponse modelMetadata(ModelMetadataRequest request) {
        ModelMetadata model = server.models().metadata(ModelRef.parse(request.getName(), request.getVersion()));
        return ModelMetadataResponse.newBuilder()
                .setName(model.name())
                .addAllVersions(model.versions().stream().map(String::valueOf).toList())
                .setPlatform(model.platform())
                .addAllInputs(tensors(model, model.inputs()))
                .addAllOutputs(tensors(model, model.outputs()))
                .build();
    }

    private static List<TensorMetadata> tensors(ModelMetadata model, List<TensorSpec> specs) {
        List<TensorMetadata> tensors = new ArrayList<>(specs.size());
        for (TensorSpec spec : specs) {
            TensorMetadata.Builder tensor = TensorMetadata.newBuilder()
                    .setName(spec.name())
                    .setDatatype(spec.type().name());
            Shape shape = model.maxBatchSize() > 0 ? spec.dims().prepend(Shape.VARIABLE) : spec.dims();
            for (long dim : shape.toArray()) {
                tensor.addShape(dim);
            }
            tensors.add(tensor.build());
        }
        return tensors;
    }

    private ModelConfigResponse modelConfig(ModelConfigRequest request) {
        ModelRef model = ModelRef.parse(request.getName(), request.getVersion());
        return ModelConfigResponse.newBuilder()
                .setConfig(server.models().config(model))
                .build();
    }
}
