package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.TensorMemory;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.Marshaller;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.InputStream;
import java.util.function.Function;

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
                                marshaller(server.memory(), calls.transport()), new ResponseMarshaller())
                        .build();
        return ServerMethodDefinition.create(method, this);
    }

    /** Returns what reads requests, and leaves those to workers that take long. */
    static Marshaller<Parsed<InferMessage>> marshaller(TensorMemory memory, TransportMemory transport) {
        return Parsed.marshaller(
                parser(memory), stream -> parse(stream, memory), EventLoopLimits.MAX_COPIED_BYTES, transport);
    }

    /** Returns what reads requests, as {@link #parse} does; each event loop knows those that it has read. */
    static Parsed.Parser<InferMessage> parser(TensorMemory memory) {
        ThreadLocal<KnownHeads> heads = ThreadLocal.withInitial(KnownHeads::new);
        return stream -> parse(stream, memory, heads.get()::read);
    }

    /** Reads a request, whose bytes stay where they are until the stream is closed. */
    static InferMessage parse(InputStream stream, TensorMemory memory) {
        return parse(stream, memory, InferMessageReader::read);
    }

    private static InferMessage parse(
            InputStream stream, TensorMemory memory, Function<MessageBytes, InferMessage> reader) {
        MessageBytes bytes = bytes(stream, memory);
        try {
            return reader.apply(bytes);
        } catch (InferenceException error) {
            bytes.close();
            throw error;
        }
    }

    private static MessageBytes bytes(InputStream stream, TensorMemory memory) {
        try {
            return MessageBytes.of(stream, memory);
        } catch (IOException _) {
            throw GrpcErrors.malformed();
        } catch (StatusRuntimeException refusal) {
            throw GrpcErrors.refused(refusal);
        }
    }

    @Override
    public ServerCall.Listener<Parsed<InferMessage>> startCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call, Metadata headers) {
        // A second message is asked for so that its arrival can be refused.
        call.request(2);
        return new ModelInferCall(call, server, calls, arrays, calls.origin(headers));
    }

    /** Responses are streams already, and only ever written. */
    static final class ResponseMarshaller implements Marshaller<InferResponseMessage> {
        @Override
        public InputStream stream(InferResponseMessage response) {
            return response;
        }

        @Override
        public InferResponseMessage parse(InputStream stream) {
            throw new UnsupportedOperationException("a server does not read responses");
        }
    }
}
