package dev.nereid.grpc.service;

import dev.nereid.grpc.wire.GrpcErrors;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import java.time.Duration;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Delays responses, to test timeouts of clients. Applies to all methods with one response but {@code ModelInfer}.
 * Immutable; blocks no thread.
 */
public final class DelayedResponses implements ServerInterceptor {
    private static final String INFER =
            GRPCInferenceServiceGrpc.getModelInferMethod().getFullMethodName();

    private final Duration delay;
    private final ScheduledExecutorService timer;

    /** Creates the interceptor. The timer sends the responses after the delay. */
    public DelayedResponses(Duration delay, ScheduledExecutorService timer) {
        this.delay = delay;
        this.timer = timer;
    }

    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        var method = call.getMethodDescriptor();
        if (method.getType() != MethodType.UNARY || method.getFullMethodName().equals(INFER)) {
            return next.startCall(call, headers);
        }
        AtomicReference<@Nullable Future<?>> sending = new AtomicReference<>();
        ServerCall<Q, R> delayed = GrpcErrors.postponed(call, send -> {
            if (call.isCancelled()) {
                return;
            }
            Future<?> waiting = timer.schedule(send, delay.toNanos(), TimeUnit.NANOSECONDS);
            sending.set(waiting);
            if (call.isCancelled()) { // onCancel may have run before the response was scheduled
                waiting.cancel(false);
            }
        });
        return new SimpleForwardingServerCallListener<>(next.startCall(delayed, headers)) {
            @Override
            public void onCancel() {
                Future<?> waiting = sending.get();
                if (waiting != null) {
                    waiting.cancel(false);
                }
                super.onCancel();
            }
        };
    }
}
