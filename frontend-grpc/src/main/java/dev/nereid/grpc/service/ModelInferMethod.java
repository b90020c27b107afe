package dev.nereid.grpc.service;

import dev.nereid.api.InferenceServer;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferResponseMessage;
import dev.nereid.grpc.wire.ResponseArrays;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;

/** The method {@code ModelInfer}: marshalling and call handling. Safe for use by any thread. */
public final class ModelInferMethod implements ServerCallHandler<Parsed<InferMessage>, InferResponseMessage> {
    private final InferenceServer server;
    private final InferCallDependencies dependencies;
    private final ResponseArrays arrays = new ResponseArrays();

    public ModelInferMethod(InferenceServer server, InferCallDependencies dependencies) {
        this.server = server;
        this.dependencies = dependencies;
    }

    public ServerMethodDefinition<?, ?> definition() {
        MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> method =
                GRPCInferenceServiceGrpc.getModelInferMethod().toBuilder(
                                InferMarshaller.requests(server.memory(), dependencies.transportMemory()),
                                InferMarshaller.responses())
                        .build();
        return ServerMethodDefinition.create(method, this);
    }

    @Override
    public ServerCall.Listener<Parsed<InferMessage>> startCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call, Metadata headers) {
        // A second message is requested so that its arrival can be refused.
        call.request(2);
        return new ModelInferCall(call, server, dependencies, arrays, dependencies.callContext(headers));
    }
}
