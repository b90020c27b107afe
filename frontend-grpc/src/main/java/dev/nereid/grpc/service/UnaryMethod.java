package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.grpc.connection.ConnectionLimits;
import dev.nereid.grpc.connection.HeldBytes;
import dev.nereid.grpc.connection.LargeMessageReader;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A unary method that runs a function on the event loop. Immutable.
 *
 * @param <Q> the type of requests
 * @param <R> the type of responses
 */
final class UnaryMethod<Q, R> implements ServerCallHandler<Parsed<ControlRequest<Q>>, R> {
    private final Function<Q, CompletionStage<R>> handler;

    private UnaryMethod(Function<Q, CompletionStage<R>> handler) {
        this.handler = handler;
    }

    /** Creates a method. The handler throws {@link InferenceException} to fail the call. */
    static <Q, R> ServerMethodDefinition<?, ?> of(MethodDescriptor<Q, R> method, Function<Q, R> handler) {
        return async(method, request -> CompletableFuture.completedStage(handler.apply(request)));
    }

    /**
     * Creates a method that responds later. The handler must not block; it throws or fails with
     * {@link InferenceException} to fail the call.
     */
    static <Q, R> ServerMethodDefinition<?, ?> async(
            MethodDescriptor<Q, R> method, Function<Q, CompletionStage<R>> handler) {
        return ServerMethodDefinition.create(parsing(method), new UnaryMethod<>(handler));
    }

    /** Creates a method like {@link #async}, with requests that may contain files. */
    static <Q, R> ServerMethodDefinition<?, ?> asyncWithFiles(
            MethodDescriptor<Q, R> method, Function<Q, CompletionStage<R>> handler) {
        return ServerMethodDefinition.create(
                method.toBuilder(ControlRequest.marshallerOfFiles(method), method.getResponseMarshaller())
                        .build(),
                new UnaryMethod<>(handler));
    }

    /** Returns a method descriptor with a marshaller that returns malformed requests as values. */
    static <Q, R> MethodDescriptor<Parsed<ControlRequest<Q>>, R> parsing(MethodDescriptor<Q, R> method) {
        return method.toBuilder(ControlRequest.marshaller(method), method.getResponseMarshaller())
                .build();
    }

    /** Creates a method that is not implemented: it refuses every call without reading its request. */
    static <Q, R> ServerMethodDefinition<?, ?> unimplemented(MethodDescriptor<Q, R> method) {
        InferenceException error = new InferenceException(
                ErrorCode.UNSUPPORTED, "Method " + method.getFullMethodName() + " is unimplemented");
        return ServerMethodDefinition.create(method, (call, _) -> {
            GrpcErrors.fail(call, error);
            return new ServerCall.Listener<>() {};
        });
    }

    @Override
    public ServerCall.Listener<Parsed<ControlRequest<Q>>> startCall(
            ServerCall<Parsed<ControlRequest<Q>>, R> call, Metadata headers) {
        call.request(2);
        return new Listener<>(call, handler);
    }

    /**
     * One call of a unary method. Confined to the event loop of its connection, except for the response, which may
     * arrive on any thread. The memory of the request is counted until the call has ended and its response has arrived.
     */
    private static final class Listener<Q, R> extends ServerCall.Listener<Parsed<ControlRequest<Q>>>
            implements LargeMessageReader.Callback<ControlRequest<Q>, Q> {
        private final ServerCall<Parsed<ControlRequest<Q>>, R> call;
        private final Function<Q, CompletionStage<R>> handler;
        private final HeldBytes held;
        private final AtomicBoolean ended = new AtomicBoolean();
        private @Nullable Parsed<Supplier<Q>> request;
        private boolean invoked;
        private boolean isReading;
        private boolean isHalfClosed;
        private boolean isOver;

        Listener(ServerCall<Parsed<ControlRequest<Q>>, R> call, Function<Q, CompletionStage<R>> handler) {
            this.call = call;
            this.handler = handler;
            this.held = new HeldBytes(call.getAttributes());
        }

        @Override
        public void onMessage(Parsed<ControlRequest<Q>> message) {
            boolean isSecond = isReading || request != null; // gRPC cancels such a call
            switch (message) {
                case Parsed.Failed<ControlRequest<Q>>(InferenceException error) -> request = new Parsed.Failed<>(error);
                case Parsed.Ok<ControlRequest<Q>>(ControlRequest<Q> small) -> {
                    if (!isSecond) {
                        keep(small);
                    }
                }
                case Parsed.Deferred<ControlRequest<Q>> deferred -> {
                    if (isSecond) {
                        deferred.bytes().close();
                    } else {
                        read(deferred);
                    }
                }
            }
        }

        private void keep(ControlRequest<Q> small) {
            try {
                held.hold(small.byteSize());
                request = new Parsed.Ok<>(() -> small.read(_ -> {}));
            } catch (InferenceException error) {
                request = new Parsed.Failed<>(error);
            }
        }

        private void read(Parsed.Deferred<ControlRequest<Q>> deferred) {
            ConnectionLimits connection = call.getAttributes().get(ConnectionLimits.KEY);
            try {
                if (connection != null) {
                    deferred.bytes().count(connection.memory());
                }
            } catch (InferenceException error) {
                deferred.bytes().close();
                request = new Parsed.Failed<>(error);
                return;
            }
            isReading = true;
            LargeMessageReader.read(deferred, call.getAttributes(), this);
        }

        @Override
        public Q convert(ControlRequest<Q> large) {
            held.hold(large.byteSize());
            return large.read(held::add);
        }

        @Override
        public void onResult(LargeMessageReader.Result<Q> result) {
            isReading = false;
            request = switch (result) {
                case LargeMessageReader.Done<Q>(Q message) -> new Parsed.Ok<>(() -> message);
                case LargeMessageReader.Failed<Q>(InferenceException error) -> new Parsed.Failed<>(error);
            };
            if (isOver) {
                held.clear();
            } else if (isHalfClosed) {
                onHalfClose();
            }
        }

        @Override
        public void discard(Q message) {
            held.clear();
        }

        @Override
        public void onHalfClose() {
            if (isReading) {
                isHalfClosed = true;
                return;
            }
            if (invoked) {
                return;
            }
            invoked = true;
            CompletionStage<R> response;
            try {
                response = handler.apply(Parsed.message(request).get());
            } catch (OutOfMemoryError error) {
                fail(GrpcErrors.outOfMemory(error));
                return;
            } catch (RuntimeException | Error error) {
                fail(GrpcErrors.error(error));
                return;
            }
            response.whenComplete(this::end);
        }

        private void end(@Nullable R response, @Nullable Throwable failure) {
            held.clear();
            if (response != null) {
                if (ended.compareAndSet(false, true)) {
                    call.sendHeaders(new Metadata());
                    call.sendMessage(response);
                    GrpcErrors.succeed(call);
                }
            } else {
                fail(GrpcErrors.error(failure));
            }
        }

        @Override
        public void fail(InferenceException error) {
            held.clear();
            if (ended.compareAndSet(false, true)) {
                RequestFailures.log("", call.getMethodDescriptor().getFullMethodName(), error);
                GrpcErrors.fail(call, error);
            }
        }

        @Override
        public void onCancel() {
            over();
        }

        @Override
        public void onComplete() {
            over();
        }

        /** Drops a request that will not be handled. */
        private void over() {
            isOver = true;
            if (!invoked && !isReading) {
                held.clear();
                request = null;
            }
        }
    }
}
