package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.StatusRuntimeException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A method that answers one message with another, at once, on the event loop. Immutable.
 *
 * @param <Q> the type of requests
 * @param <R> the type of responses
 */
final class UnaryMethod<Q, R> implements ServerCallHandler<Parsed<Q>, R> {
    private final Function<Q, R> answer;

    private UnaryMethod(Function<Q, R> answer) {
        this.answer = answer;
    }

    /**
     * Makes a method.
     *
     * @param <Q> the type of requests
     * @param <R> the type of responses
     * @param method the generated description of the method
     * @param answer what it does; throws {@link InferenceException} to fail the call
     */
    static <Q, R> ServerMethodDefinition<?, ?> of(MethodDescriptor<Q, R> method, Function<Q, R> answer) {
        Parsed.Parser<Q> parser = stream -> {
            try {
                return method.parseRequest(stream);
            } catch (StatusRuntimeException _) {
                throw GrpcErrors.malformed();
            }
        };
        return ServerMethodDefinition.create(
                method.toBuilder(Parsed.marshaller(parser), method.getResponseMarshaller())
                        .build(),
                new UnaryMethod<>(answer));
    }

    /** Makes a method that does not exist yet: it refuses every call without looking at it. */
    static <Q, R> ServerMethodDefinition<?, ?> unimplemented(MethodDescriptor<Q, R> method) {
        InferenceException error = new InferenceException(
                ErrorCode.UNSUPPORTED, "Method " + method.getFullMethodName() + " is unimplemented");
        return ServerMethodDefinition.create(method, (call, _) -> {
            GrpcErrors.fail(call, error);
            return new ServerCall.Listener<>() {};
        });
    }

    @Override
    public ServerCall.Listener<Parsed<Q>> startCall(ServerCall<Parsed<Q>, R> call, Metadata headers) {
        call.request(2);
        return new Listener<>(call, answer);
    }

    /** One call. Confined to the event loop of its connection. */
    private static final class Listener<Q, R> extends ServerCall.Listener<Parsed<Q>> {
        private final ServerCall<Parsed<Q>, R> call;
        private final Function<Q, R> answer;
        private @Nullable Parsed<Q> request;
        private boolean ended;

        Listener(ServerCall<Parsed<Q>, R> call, Function<Q, R> answer) {
            this.call = call;
            this.answer = answer;
        }

        @Override
        public void onMessage(Parsed<Q> message) {
            request = message;
        }

        @Override
        public void onHalfClose() {
            if (ended) {
                return;
            }
            ended = true;
            try {
                R response = answer.apply(message());
                call.sendHeaders(new Metadata());
                call.sendMessage(response);
                GrpcErrors.succeed(call);
            } catch (InferenceException error) {
                GrpcErrors.fail(call, error);
            }
        }

        private Q message() {
            return switch (request) {
                case Parsed.Ok<Q>(Q message) -> message;
                case Parsed.Failed<Q>(InferenceException error) -> throw error;
                case null -> throw new InferenceException(ErrorCode.INTERNAL, "Half-closed without a request");
            };
        }
    }
}
