package dev.nereid.distribution.parity;

import dev.nereid.distribution.errors.InvalidRequest;
import dev.nereid.spi.ErrorCode;

/** The protocols of inference. */
enum Protocol {
    /** HTTP, tensors as JSON both ways. */
    HTTP_JSON,
    /** HTTP, tensors as bytes behind the JSON, both ways. */
    HTTP_BINARY,
    /** One call of {@code ModelInfer}, tensors as raw contents. */
    GRPC,
    /** A stream of {@code ModelStreamInfer} with one request. */
    GRPC_STREAM,
    /** The server's port, called by the program that embeds it. */
    EMBEDDED;

    /** Returns the protocol's form of an error code; not all protocols distinguish all codes. */
    String codeOf(ErrorCode code) {
        return switch (this) {
            case HTTP_JSON, HTTP_BINARY -> Integer.toString(InvalidRequest.httpStatus(code));
            case GRPC, GRPC_STREAM -> InvalidRequest.grpcStatus(code).name();
            case EMBEDDED -> code.name();
        };
    }
}
