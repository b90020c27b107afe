package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.Refusals;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;

/** Refuses new calls while the front end shuts down. Safe for use by any thread. */
public final class ShutdownInterceptor implements ServerInterceptor {
    private final Refusals refusals;
    private volatile boolean started;

    public ShutdownInterceptor(Refusals refusals) {
        this.refusals = refusals;
    }

    /** Refuses all calls from now on. */
    public void start() {
        started = true;
    }

    /** Says whether all calls are refused. */
    public boolean isStarted() {
        return started;
    }

    /** Returns the error of refused calls. */
    public static InferenceException refusal() {
        return InferenceException.refusal(
                ErrorCode.UNAVAILABLE,
                RefusalCause.NOT_READY,
                "GRPC server is shutting down and has stopped accepting new requests.");
    }

    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        if (!started) {
            return next.startCall(call, headers);
        }
        return RequestFailures.refuse(call, refusals, refusal());
    }
}
