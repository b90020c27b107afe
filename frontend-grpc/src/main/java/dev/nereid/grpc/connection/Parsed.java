package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import dev.nereid.grpc.wire.GrpcErrors;
import io.grpc.MethodDescriptor.Marshaller;
import java.io.IOException;
import java.io.InputStream;
import org.jspecify.annotations.Nullable;

/**
 * Result of parsing a request's bytes. Immutable.
 *
 * <p>A marshaller that throws would end the call with a status without a message, so failures are values.
 *
 * @param <T> the type of the request
 */
public sealed interface Parsed<T> {
    /**
     * A request.
     *
     * @param <T> the type of the request
     */
    record Ok<T>(T message) implements Parsed<T> {}

    /**
     * A request that a worker parses because it is large or compressed.
     *
     * @param <T> the type of the request
     * @param bytes the request as received; owned by the holder
     * @param parser reads it, on a worker
     */
    record Deferred<T>(LargeMessage bytes, Parser<T> parser) implements Parsed<T> {
        /** Reads the request. The caller goes on to own its bytes. */
        T read() {
            return parser.parse(bytes.stream());
        }
    }

    /**
     * Bytes that could not be parsed as a request.
     *
     * @param <T> the type of the request
     */
    record Failed<T>(InferenceException error) implements Parsed<T> {}

    /**
     * Returns the request of a unary call.
     *
     * @param request the request; {@code null} if the client sent none
     * @throws InferenceException if there is none
     */
    static <T> T message(@Nullable Parsed<T> request) {
        return switch (request) {
            case Ok<T>(T message) -> message;
            case Failed<T>(InferenceException error) -> throw error;
            case Deferred<T> _ -> throw new IllegalStateException("request: not read (expected: read by a worker)");
            case null -> throw InferenceException.clientError("Half-closed without a request");
        };
    }

    /**
     * Returns a marshaller that reads requests and defers large or compressed ones to workers. Parsers throw {@link
     * InferenceException}.
     *
     * @param parser reads a request on an event loop
     * @param worker reads one on a worker
     * @param max the maximum length of a request that an event loop reads
     * @param memory counts deferred requests; {@code null} if they are counted later
     */
    static <T> Marshaller<Parsed<T>> marshaller(
            Parser<T> parser, Parser<T> worker, int max, @Nullable TransportMemory memory) {
        return new Marshaller<>() {
            @Override
            public InputStream stream(Parsed<T> value) {
                throw new UnsupportedOperationException("a server does not write requests");
            }

            @Override
            public Parsed<T> parse(InputStream stream) {
                try {
                    LargeMessage large = LargeMessage.detachIfLarge(stream, max, memory);
                    if (large != null) {
                        return new Deferred<>(large, worker);
                    }
                    return new Ok<>(parser.parse(stream));
                } catch (InferenceException error) {
                    return new Failed<>(error);
                } catch (IOException _) {
                    return new Failed<>(GrpcErrors.malformed());
                } catch (OutOfMemoryError error) {
                    return new Failed<>(GrpcErrors.outOfMemory(error));
                }
            }
        };
    }

    /**
     * Reads a request.
     *
     * @param <T> the type of the request
     */
    interface Parser<T> {
        /**
         * Reads a request.
         *
         * @throws InferenceException if the bytes are no such request
         */
        T parse(InputStream stream);
    }
}
