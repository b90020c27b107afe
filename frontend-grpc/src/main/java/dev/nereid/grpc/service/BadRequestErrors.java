package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;

/**
 * Reports client errors as INVALID_ARGUMENT that the reference server reports as INTERNAL. Immutable. Installed only if
 * the server's options require it.
 */
public final class BadRequestErrors implements ServerInterceptor {
    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        return next.startCall(
                new SimpleForwardingServerCall<>(call) {
                    @Override
                    public void close(Status status, Metadata trailers) {
                        super.close(status(status), trailers);
                    }
                },
                headers);
    }

    private static Status status(Status status) {
        return status.getCause() instanceof InferenceException error && error.isClientError()
                ? Status.INVALID_ARGUMENT.withDescription(status.getDescription())
                : status;
    }
}
