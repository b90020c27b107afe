package dev.nereid.grpc;

import inference.GRPCInferenceServiceGrpc;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Delays the responses of all methods with one response but {@code ModelInfer}, so that tests can see how clients time out.
 * Immutable; blocks no thread.
 */
final class DelayedResponses implements ServerInterceptor {
    private static final String INFER =
            GRPCInferenceServiceGrpc.getModelInferMethod().getFullMethodName();

    private final Duration delay;
    private final ScheduledExecutorService timer;

    /**
     * Creates the interceptor.
     *
     * @param delay how long each response waits
     * @param timer sends them then
     */
    DelayedResponses(Duration delay, ScheduledExecutorService timer) {
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
        Delayed<Q, R> delayed = new Delayed<>(call);
        return new SimpleForwardingServerCallListener<>(next.startCall(delayed, headers)) {
            @Override
            public void onCancel() {
                delayed.drop();
                super.onCancel();
            }
        };
    }

    /** A call whose response waits. Written by the thread that responds, then by the timer. */
    private final class Delayed<Q, R> extends SimpleForwardingServerCall<Q, R> {
        private final List<Runnable> steps = new ArrayList<>(3);
        private volatile @Nullable Future<?> sending;

        Delayed(ServerCall<Q, R> call) {
            super(call);
        }

        @Override
        public void sendHeaders(Metadata headers) {
            steps.add(() -> super.sendHeaders(headers));
        }

        @Override
        public void sendMessage(R message) {
            steps.add(() -> super.sendMessage(message));
        }

        @Override
        public void close(Status status, Metadata trailers) {
            steps.add(() -> super.close(status, trailers));
            sending = timer.schedule(this::send, delay.toNanos(), TimeUnit.NANOSECONDS);
        }

        private void send() {
            if (!isCancelled()) {
                steps.forEach(Runnable::run);
            }
        }

        /** Forgets a response for which the client does not wait any more. */
        private void drop() {
            Future<?> waiting = sending;
            if (waiting != null) {
                waiting.cancel(false);
            }
        }
    }
}
