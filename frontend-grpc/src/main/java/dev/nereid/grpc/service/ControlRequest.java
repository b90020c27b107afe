package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.wire.EventLoopLimits;
import dev.nereid.grpc.wire.GrpcErrors;
import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.Marshaller;
import io.grpc.StatusRuntimeException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.function.LongConsumer;

/** The request of a control method, parsed when it is needed. Read once at most; confined to one thread at a time. */
final class ControlRequest<Q> {
    /** The maximum length of a request without files: far more than any needs. */
    static final int MAX_BYTES = 64 << 10;

    /** The maximum length of a request with the files of a model. The request lies on the heap. */
    private static final long MAX_FILES_BYTES =
            Math.max(4L << 20, Runtime.getRuntime().maxMemory() / 8);

    private final int byteSize;
    private final Reader<Q> reader;

    private ControlRequest(int byteSize, Reader<Q> reader) {
        this.byteSize = byteSize;
        this.reader = reader;
    }

    /** A byte stream; its available bytes are its whole length. */
    private static final class Bytes extends ByteArrayInputStream implements KnownLength {
        Bytes(byte[] bytes) {
            super(bytes);
        }
    }

    /** Parses a request. */
    private interface Reader<Q> {
        Q read(LongConsumer heap);
    }

    static <Q> Marshaller<Parsed<ControlRequest<Q>>> marshaller(MethodDescriptor<Q, ?> method) {
        return marshaller(stream -> of(bytes(stream, MAX_BYTES), method));
    }

    /**
     * Returns a marshaller for a parser that refuses long requests. The limit is what takes an event loop too long;
     * workers read compressed requests.
     */
    static <T> Marshaller<Parsed<T>> marshaller(Parsed.Parser<T> parser) {
        return Parsed.marshaller(parser, parser, Integer.MAX_VALUE, null);
    }

    /** Returns a marshaller of requests that may contain files. It defers long ones to workers. */
    static <Q> Marshaller<Parsed<ControlRequest<Q>>> marshallerOfFiles(MethodDescriptor<Q, ?> method) {
        return Parsed.marshaller(
                stream -> of(bytes(stream, MAX_FILES_BYTES), method),
                stream ->
                        new ControlRequest<>(0, heap -> parse(method, new BoundedInput(stream, MAX_FILES_BYTES, heap))),
                EventLoopLimits.MAX_PARSED_BYTES,
                null);
    }

    static <Q> ControlRequest<Q> of(byte[] bytes, MethodDescriptor<Q, ?> method) {
        return new ControlRequest<>(bytes.length, _ -> parse(method, new Bytes(bytes)));
    }

    /** Reads all bytes of a message; throws {@link InferenceException} if there are more than the maximum. */
    static byte[] bytes(InputStream stream, long max) {
        try {
            if (stream instanceof KnownLength) {
                int length = stream.available();
                if (length > max) {
                    throw InferenceException.tooLarge("gRPC message exceeds maximum size " + max + ": " + length);
                }
                return stream.readNBytes(length);
            }
            return new BoundedInput(stream, max, _ -> {}).readAllBytes();
        } catch (IOException _) {
            throw GrpcErrors.malformed();
        } catch (StatusRuntimeException refusal) {
            throw GrpcErrors.refused(refusal);
        }
    }

    private static <Q> Q parse(MethodDescriptor<Q, ?> method, InputStream bytes) {
        try {
            return method.parseRequest(bytes);
        } catch (StatusRuntimeException _) {
            throw GrpcErrors.malformed();
        }
    }

    /** Returns the number of bytes that this object has on the heap. */
    int byteSize() {
        return byteSize;
    }

    /**
     * Parses the request.
     *
     * @param heap receives the number of further bytes that the heap is about to hold, besides {@link #byteSize}; may
     *     throw
     * @throws InferenceException if the bytes are no such request, or too many
     */
    Q read(LongConsumer heap) {
        return reader.read(heap);
    }
}
