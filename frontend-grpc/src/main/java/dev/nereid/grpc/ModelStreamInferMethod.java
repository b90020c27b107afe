package dev.nereid.grpc;

import dev.nereid.api.InferenceServer;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;

/** The method {@code ModelStreamInfer}: its own way to read and write messages, and its calls. Safe for use by any thread. */
final class ModelStreamInferMethod implements ServerCallHandler<Parsed<InferMessage>, InferResponseMessage> {
    private static final Metadata.Key<String> STRICT =
            Metadata.Key.of("triton_grpc_error", Metadata.ASCII_STRING_MARSHALLER);

    private final InferenceServer server;
    private final InferCalls calls;
    private final StreamOutbox.Limits limits;
    private final Executor eventLoops;
    private final Stopping stopping;

    /**
     * Creates the method.
     *
     * @param server whom to ask
     * @param calls what it has in common with the unary method
     * @param limits how much may wait for a client
     * @param eventLoops go on with what takes another thread too long
     * @param stopping says when requests are refused
     */
    ModelStreamInferMethod(
            InferenceServer server,
            InferCalls calls,
            StreamOutbox.Limits limits,
            Executor eventLoops,
            Stopping stopping) {
        this.server = server;
        this.calls = calls;
        this.limits = limits;
        this.eventLoops = eventLoops;
        this.stopping = stopping;
    }

    /** Returns the method with its handler. */
    ServerMethodDefinition<?, ?> definition() {
        MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> method =
                GRPCInferenceServiceGrpc.getModelStreamInferMethod().toBuilder(
                                InferMarshaller.requests(server.memory(), calls.transport()),
                                InferMarshaller.responses())
                        .build();
        return ServerMethodDefinition.create(method, this);
    }

    @Override
    public ServerCall.Listener<Parsed<InferMessage>> startCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call, Metadata headers) {
        ModelStreamInferCall stream =
                new ModelStreamInferCall(call, this, calls.origin(headers), "true".equals(headers.get(STRICT)));
        stream.begin();
        return stream;
    }

    InferenceServer server() {
        return server;
    }

    CallAssembler assembler() {
        return calls.assembler();
    }

    TransportMemory transport() {
        return calls.transport();
    }

    LongSupplier nanoTime() {
        return calls.nanoTime();
    }

    ResponseCompressor compression() {
        return calls.compression();
    }

    StreamOutbox.Limits limits() {
        return limits;
    }

    Executor eventLoops() {
        return eventLoops;
    }

    /** Refuses a request if the server takes none any more. */
    void checkRuns() {
        if (stopping.hasBegun()) {
            throw Stopping.refusal();
        }
    }
}
