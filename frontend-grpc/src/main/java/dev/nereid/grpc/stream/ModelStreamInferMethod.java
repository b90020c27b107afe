package dev.nereid.grpc.stream;

import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.service.InferMarshaller;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferResponseMessage;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;

/** The method {@code ModelStreamInfer}: marshalling and call handling. Safe for use by any thread. */
public final class ModelStreamInferMethod implements ServerCallHandler<Parsed<InferMessage>, InferResponseMessage> {
    private static final Metadata.Key<String> STRICT =
            Metadata.Key.of("triton_grpc_error", Metadata.ASCII_STRING_MARSHALLER);

    private final StreamContext context;

    public ModelStreamInferMethod(StreamContext context) {
        this.context = context;
    }

    public ServerMethodDefinition<?, ?> definition() {
        MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> method =
                GRPCInferenceServiceGrpc.getModelStreamInferMethod().toBuilder(
                                InferMarshaller.requests(
                                        context.server().memory(),
                                        context.dependencies().transportMemory()),
                                InferMarshaller.responses())
                        .build();
        return ServerMethodDefinition.create(method, this);
    }

    @Override
    public ServerCall.Listener<Parsed<InferMessage>> startCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call, Metadata headers) {
        ModelStreamInferCall stream = new ModelStreamInferCall(
                call, context, context.dependencies().callContext(headers), "true".equals(headers.get(STRICT)));
        stream.start();
        return stream;
    }
}
