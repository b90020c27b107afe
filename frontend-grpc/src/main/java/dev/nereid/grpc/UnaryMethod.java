package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.StatusRuntimeException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A method that answers one message with another, at once, on the event loop, or later. Immutable.
 *
 * @param <Q> the type of requests
 * @param <R> the type of responses
 */
final class UnaryMethod<Q, R> implements ServerCallHandler<Parsed<Q>, R> {
    /** Messages of control methods lie on the heap; only one that brings the files of a model is long. */
    private static final long MAX_MESSAGE =
            Math.max(4L << 20, Runtime.getRuntime().maxMemory() / 8);

    private final Function<Q, CompletionStage<R>> answer;

    private UnaryMethod(Function<Q, CompletionStage<R>> answer) {
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
        return later(method, request -> CompletableFuture.completedStage(answer.apply(request)));
    }

    /**
     * Makes a method that takes its time.
     *
     * @param <Q> the type of requests
     * @param <R> the type of responses
     * @param method the generated description of the method
     * @param answer what it does, without blocking; throws or fails with {@link InferenceException} to fail the call
     */
    static <Q, R> ServerMethodDefinition<?, ?> later(
            MethodDescriptor<Q, R> method, Function<Q, CompletionStage<R>> answer) {
        return ServerMethodDefinition.create(reading(method), new UnaryMethod<>(answer));
    }

    /** Returns the description of a method whose requests, if they are none, are told from those that are. */
    static <Q, R> MethodDescriptor<Parsed<Q>, R> reading(MethodDescriptor<Q, R> method) {
        Parsed.Parser<Q> parser = stream -> {
            try {
                return method.parseRequest(new BoundedInput(stream, MAX_MESSAGE));
            } catch (StatusRuntimeException _) {
                throw GrpcErrors.malformed();
            }
        };
        return method.toBuilder(Parsed.marshaller(parser), method.getResponseMarshaller())
                .build();
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

    /** One call. Confined to the event loop of its connection, but for the answer, which may come on any thread. */
    private static final class Listener<Q, R> extends ServerCall.Listener<Parsed<Q>> {
        private final ServerCall<Parsed<Q>, R> call;
        private final Function<Q, CompletionStage<R>> answer;
        private @Nullable Parsed<Q> request;
        private boolean asked;
        private boolean isReading;
        private boolean isHalfClosed;

        Listener(ServerCall<Parsed<Q>, R> call, Function<Q, CompletionStage<R>> answer) {
            this.call = call;
            this.answer = answer;
        }

        @Override
        public void onMessage(Parsed<Q> message) {
            if (message instanceof Parsed.Later<Q> later) {
                if (isReading || request != null) {
                    later.bytes().close(); // gRPC cancels a call with a second message
                    return;
                }
                isReading = true;
                InferMessages.read(later, call.getAttributes(), Function.identity(), this::taken);
            } else {
                request = message;
            }
        }

        /** Goes on with a message that a worker has read. */
        private void taken(InferMessages.Result<Q> result) {
            isReading = false;
            request = switch (result) {
                case InferMessages.Done<Q>(Q message) -> new Parsed.Ok<>(message);
                case InferMessages.Failed<Q>(InferenceException error) -> new Parsed.Failed<>(error);
            };
            if (isHalfClosed) {
                onHalfClose();
            }
        }

        @Override
        public void onHalfClose() {
            if (isReading) {
                isHalfClosed = true;
                return;
            }
            if (asked) {
                return;
            }
            asked = true;
            CompletionStage<R> response;
            try {
                response = answer.apply(Parsed.message(request));
            } catch (InferenceException error) {
                GrpcErrors.fail(call, error);
                return;
            }
            response.whenComplete(this::end);
        }

        private void end(@Nullable R response, @Nullable Throwable failure) {
            if (response != null) {
                call.sendHeaders(new Metadata());
                call.sendMessage(response);
                GrpcErrors.succeed(call);
            } else {
                GrpcErrors.fail(call, GrpcErrors.error(failure));
            }
        }
    }
}
