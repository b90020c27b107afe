package dev.nereid.grpc.service;

import dev.nereid.api.memory.TensorMemory;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.TransportMemory;
import dev.nereid.grpc.wire.EventLoopLimits;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferMessageReader;
import dev.nereid.grpc.wire.InferResponseMessage;
import dev.nereid.grpc.wire.RequestHeaderCache;
import io.grpc.MethodDescriptor.Marshaller;
import java.io.InputStream;

/** Marshals the requests and responses of ModelInfer and ModelStreamInfer. Static functions only. */
public final class InferMarshaller {
    private static final Marshaller<InferResponseMessage> RESPONSES = new Marshaller<>() {
        @Override
        public InputStream stream(InferResponseMessage response) {
            return response; // a stream already
        }

        @Override
        public InferResponseMessage parse(InputStream stream) {
            throw new UnsupportedOperationException("a server does not read responses");
        }
    };

    private InferMarshaller() {}

    /**
     * Returns a marshaller that reads requests, and defers large ones to workers; {@code transport} counts these.
     * Messages that are not in direct memory are copied to {@code memory}.
     */
    public static Marshaller<Parsed<InferMessage>> requests(TensorMemory memory, TransportMemory transport) {
        return Parsed.marshaller(
                cachingParser(memory),
                stream -> InferMessageReader.read(stream, memory),
                EventLoopLimits.MAX_COPIED_BYTES,
                transport);
    }

    /** Returns a parser of requests with a header cache for each event loop. */
    private static Parsed.Parser<InferMessage> cachingParser(TensorMemory memory) {
        ThreadLocal<RequestHeaderCache> caches = ThreadLocal.withInitial(RequestHeaderCache::new);
        return stream -> InferMessageReader.read(stream, memory, caches.get()::read);
    }

    public static Marshaller<InferResponseMessage> responses() {
        return RESPONSES;
    }
}
