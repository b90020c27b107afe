package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import io.grpc.MethodDescriptor.Marshaller;
import java.io.InputStream;
import org.jspecify.annotations.Nullable;

/**
 * What became of the bytes of a request. Immutable.
 *
 * <p>A marshaller that throws would end the call with a status that says nothing, so failures are values.
 *
 * @param <T> the type of the request
 */
sealed interface Parsed<T> {
    /**
     * A request.
     *
     * @param <T> the type of the request
     * @param message the request
     */
    record Ok<T>(T message) implements Parsed<T> {}

    /**
     * Bytes that are no request.
     *
     * @param <T> the type of the request
     * @param error what to tell the client
     */
    record Failed<T>(InferenceException error) implements Parsed<T> {}

    /**
     * Returns the request of a call that takes one.
     *
     * @param <T> the type of the request
     * @param request the request; none if the client sent none
     * @throws InferenceException if there is none
     */
    static <T> T message(@Nullable Parsed<T> request) {
        return switch (request) {
            case Ok<T>(T message) -> message;
            case Failed<T>(InferenceException error) -> throw error;
            case null -> throw InferenceException.clientMistake("Half-closed without a request");
        };
    }

    /** Makes a marshaller for requests, which are only ever read, of a parser that throws {@link InferenceException}. */
    static <T> Marshaller<Parsed<T>> marshaller(Parser<T> parser) {
        return new Marshaller<>() {
            @Override
            public InputStream stream(Parsed<T> value) {
                throw new UnsupportedOperationException("a server does not write requests");
            }

            @Override
            public Parsed<T> parse(InputStream stream) {
                try {
                    return new Ok<>(parser.parse(stream));
                } catch (InferenceException error) {
                    return new Failed<>(error);
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
