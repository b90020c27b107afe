package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.Refusals;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;

/** Refuses calls that come on open connections while the front end closes. Safe for use by any thread. */
final class Stopping implements ServerInterceptor {
    private final Refusals refusals;
    private volatile boolean begun;

    Stopping(Refusals refusals) {
        this.refusals = refusals;
    }

    /** Refuses everything from now on. */
    void begin() {
        begun = true;
    }

    /** Says whether everything is refused. */
    boolean hasBegun() {
        return begun;
    }

    /** Returns what is said to those who are refused. */
    static InferenceException refusal() {
        return InferenceException.refusal(
                ErrorCode.UNAVAILABLE,
                RefusalCause.NOT_READY,
                "GRPC server is shutting down and has stopped accepting new requests.");
    }

    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        if (!begun) {
            return next.startCall(call, headers);
        }
        return RequestFailures.refuse(call, refusals, refusal());
    }
}
