package dev.nereid.grpc;

import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;

/** The method {@code ModelStreamInfer}: its own way to read and write messages, and its calls. Safe for use by any thread. */
final class ModelStreamInferMethod implements ServerCallHandler<Parsed<InferMessage>, InferResponseMessage> {
    private static final Metadata.Key<String> STRICT =
            Metadata.Key.of("triton_grpc_error", Metadata.ASCII_STRING_MARSHALLER);

    private final StreamContext context;

    ModelStreamInferMethod(StreamContext context) {
        this.context = context;
    }

    /** Returns the method with its handler. */
    ServerMethodDefinition<?, ?> definition() {
        MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> method =
                GRPCInferenceServiceGrpc.getModelStreamInferMethod().toBuilder(
                                InferMarshaller.requests(
                                        context.server().memory(),
                                        context.dependencies().transport()),
                                InferMarshaller.responses())
                        .build();
        return ServerMethodDefinition.create(method, this);
    }

    @Override
    public ServerCall.Listener<Parsed<InferMessage>> startCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call, Metadata headers) {
        ModelStreamInferCall stream = new ModelStreamInferCall(
                call, context, context.dependencies().origin(headers), "true".equals(headers.get(STRICT)));
        stream.begin();
        return stream;
    }
}
