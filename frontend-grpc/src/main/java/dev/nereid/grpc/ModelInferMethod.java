package dev.nereid.grpc;

import dev.nereid.api.InferenceServer;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;

/** The method {@code ModelInfer}: its own way to read and write messages, and its calls. Safe for use by any thread. */
final class ModelInferMethod implements ServerCallHandler<Parsed<InferMessage>, InferResponseMessage> {
    private final InferenceServer server;
    private final InferCalls calls;
    private final ResponseArrays arrays = new ResponseArrays();

    ModelInferMethod(InferenceServer server, InferCalls calls) {
        this.server = server;
        this.calls = calls;
    }

    /** Returns the method with its handler. */
    ServerMethodDefinition<?, ?> definition() {
        MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> method =
                GRPCInferenceServiceGrpc.getModelInferMethod().toBuilder(
                                InferMarshaller.requests(server.memory(), calls.transport()),
                                InferMarshaller.responses())
                        .build();
        return ServerMethodDefinition.create(method, this);
    }

    @Override
    public ServerCall.Listener<Parsed<InferMessage>> startCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call, Metadata headers) {
        // A second message is asked for so that its arrival can be refused.
        call.request(2);
        return new ModelInferCall(call, server, calls, arrays, calls.origin(headers));
    }
}
