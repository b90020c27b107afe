package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.Optional;
import java.util.OptionalLong;

/**
 * Timings of one response of a decoupled model, for {@link ResponseSender#report}. Immutable. All times are on the
 * scale of {@link System#nanoTime()}.
 *
 * @param startNanos the start of the work on the response
 * @param outputStartNanos the end of the computation and start of the delivery of outputs; empty if that was not
 *     reached
 * @param endNanos the end of the work on the response
 * @param error the error of a failed response; empty for others
 * @since 1.0
 */
public record ResponseReport(long startNanos, OptionalLong outputStartNanos, long endNanos, Optional<ErrorCode> error) {
    /** Checks that nothing is {@code null}; the server checks whether the times are in order. */
    public ResponseReport {
        requireNonNull(outputStartNanos, "outputStartNanos");
        requireNonNull(error, "error");
    }

    /**
     * Reports a response with outputs.
     *
     * @param startNanos the start of the work on it
     * @param outputStartNanos the start of the delivery of outputs
     * @param endNanos the end of the work on it
     * @return the report
     */
    public static ResponseReport of(long startNanos, long outputStartNanos, long endNanos) {
        return new ResponseReport(startNanos, OptionalLong.of(outputStartNanos), endNanos, Optional.empty());
    }

    /**
     * Reports an end without outputs.
     *
     * @param startNanos the start of the work on it
     * @param endNanos the end of the work on it
     * @return the report
     */
    public static ResponseReport empty(long startNanos, long endNanos) {
        return new ResponseReport(startNanos, OptionalLong.empty(), endNanos, Optional.empty());
    }

    /**
     * Reports a failure before there were outputs.
     *
     * @param startNanos the start of the work on it
     * @param endNanos the time of the failure
     * @param error the error; {@link ErrorCode#CANCELLED} for a request that was cancelled
     * @return the report
     */
    public static ResponseReport failed(long startNanos, long endNanos, ErrorCode error) {
        return new ResponseReport(startNanos, OptionalLong.empty(), endNanos, Optional.of(error));
    }
}
