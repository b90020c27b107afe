package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Deadline and forwarded headers of one gRPC call. Immutable.
 *
 * @param deadlineNanos when the client loses interest, on the scale of {@link System#nanoTime()}
 * @param headers the headers that become parameters of the requests
 * @param encoding how responses are compressed; empty for not at all
 */
public record CallContext(OptionalLong deadlineNanos, ForwardedHeaders headers, Optional<String> encoding) {
    /**
     * Says whether an error follows from the deadline of the client. Such a call has no response: the transport ends it
     * as well, a moment later.
     *
     * @param error the error of a request
     * @param nowNanos the time, on the scale of {@link System#nanoTime()}
     */
    public boolean isExpired(InferenceException error, long nowNanos) {
        return error.code() == ErrorCode.CANCELLED
                && deadlineNanos.isPresent()
                && nowNanos - deadlineNanos.getAsLong() >= 0;
    }
}
