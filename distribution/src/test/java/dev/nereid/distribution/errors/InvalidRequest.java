package dev.nereid.distribution.errors;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.spi.ErrorCode;
import inference.ModelInferRequest;
import io.grpc.Status;
import java.util.Optional;

/**
 * An invalid request, and the expected error over each protocol that can express it. Immutable.
 *
 * @param title the row of the protocol's tables
 * @param http the request over HTTP
 * @param grpc the request over gRPC
 */
public record InvalidRequest(String title, Optional<Http> http, Optional<Grpc> grpc) {
    /**
     * An invalid request over HTTP. Immutable, except the array, which is never changed.
     *
     * @param title the defect
     * @param request the request
     * @param status the status expected
     * @param error the error expected
     */
    public @SuppressWarnings("ArrayRecordComponent") // Never compared.
    record Http(String title, byte[] request, int status, String error) {
        @Override
        public String toString() {
            return title;
        }
    }

    /**
     * A wrong request over gRPC. Immutable.
     *
     * @param title the defect
     * @param request the request
     * @param status the status expected
     * @param error the error expected
     */
    public record Grpc(String title, ModelInferRequest request, Status.Code status, String error) {
        @Override
        public String toString() {
            return title;
        }
    }

    /** A request that is wrong in the same way over both protocols. */
    static InvalidRequest both(String title, ClientRequest request, ErrorCode code, String error) {
        return http(title, request.overHttp(), code, error).andGrpc(request.overGrpc(), code, error);
    }

    /** A request that is wrong over HTTP. */
    public static InvalidRequest http(String title, byte[] request, ErrorCode code, String error) {
        return new InvalidRequest(
                title, Optional.of(new Http(title, request, httpStatus(code), error)), Optional.empty());
    }

    /** A request that is wrong over gRPC. */
    public static InvalidRequest grpc(String title, ModelInferRequest request, ErrorCode code, String error) {
        return new InvalidRequest(title, Optional.empty(), Optional.empty()).andGrpc(request, code, error);
    }

    /** Adds the same defect over gRPC. */
    InvalidRequest andGrpc(ModelInferRequest request, ErrorCode code, String error) {
        return new InvalidRequest(title, http, Optional.of(new Grpc(title, request, grpcStatus(code), error)));
    }

    /** Returns the status of an error code over HTTP. */
    public static int httpStatus(ErrorCode code) {
        return switch (code) {
            case INTERNAL -> 500;
            case NOT_FOUND -> 404;
            case UNAVAILABLE -> 503;
            case UNSUPPORTED -> 501;
            case UNKNOWN, INVALID_ARGUMENT, ALREADY_EXISTS, CANCELLED -> 400;
        };
    }

    /** Returns the status of an error code over gRPC. */
    public static Status.Code grpcStatus(ErrorCode code) {
        return switch (code) {
            case UNKNOWN -> Status.Code.UNKNOWN;
            case INTERNAL -> Status.Code.INTERNAL;
            case NOT_FOUND -> Status.Code.NOT_FOUND;
            case INVALID_ARGUMENT -> Status.Code.INVALID_ARGUMENT;
            case UNAVAILABLE -> Status.Code.UNAVAILABLE;
            case UNSUPPORTED -> Status.Code.UNIMPLEMENTED;
            case ALREADY_EXISTS -> Status.Code.ALREADY_EXISTS;
            case CANCELLED -> Status.Code.CANCELLED;
        };
    }
}
