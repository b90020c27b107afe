package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.Optional;
import java.util.OptionalLong;

/**
 * Timings of one response of a decoupled model, for {@link ResponseSender#report}. Immutable. All times are on the
 * scale of {@link System#nanoTime()}.
 *
 * @param startNanos when the backend began to work on the response
 * @param outputStartNanos when it had computed the response and began to deliver its outputs; empty if it never came to
 *     that
 * @param endNanos when the response was done
 * @param error what the response failed with; empty if it did not
 */
public record ResponseReport(long startNanos, OptionalLong outputStartNanos, long endNanos, Optional<ErrorCode> error) {
    /** Checks that nothing is {@code null}; whether the times are in order is for the server to say. */
    public ResponseReport {
        requireNonNull(outputStartNanos, "outputStartNanos");
        requireNonNull(error, "error");
    }

    /**
     * Reports a response with outputs.
     *
     * @param startNanos when the backend began to work on it
     * @param outputStartNanos when it began to deliver its outputs
     * @param endNanos when it was done
     * @return the report
     */
    public static ResponseReport of(long startNanos, long outputStartNanos, long endNanos) {
        return new ResponseReport(startNanos, OptionalLong.of(outputStartNanos), endNanos, Optional.empty());
    }

    /**
     * Reports an end without outputs.
     *
     * @param startNanos when the backend began to work on it
     * @param endNanos when it was done
     * @return the report
     */
    public static ResponseReport empty(long startNanos, long endNanos) {
        return new ResponseReport(startNanos, OptionalLong.empty(), endNanos, Optional.empty());
    }

    /**
     * Reports a failure that came before there were outputs.
     *
     * @param startNanos when the backend began to work on it
     * @param endNanos when it failed
     * @param error what with; {@link ErrorCode#CANCELLED} for a request that was withdrawn
     * @return the report
     */
    public static ResponseReport failed(long startNanos, long endNanos, ErrorCode error) {
        return new ResponseReport(startNanos, OptionalLong.empty(), endNanos, Optional.of(error));
    }
}
