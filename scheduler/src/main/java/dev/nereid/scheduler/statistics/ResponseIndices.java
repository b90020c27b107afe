package dev.nereid.scheduler.statistics;

import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ResponseReport;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * Assigns the responses of one request to a decoupled model to indices of the statistics. Guarded by the lock of its
 * owner.
 *
 * <p>The server counts failed responses; the backend reports the others, in order. Responses beyond the last index
 * share the last index.
 */
public final class ResponseIndices {
    /** The index of the next response, failed or not. */
    private int sent;

    /** The indices of failed responses; {@code null} as long as there are none. */
    private @Nullable BitSet failed;

    /** The index of the next response that the backend reports. */
    private int reports;

    /** The time at which the last failed response was added, or the stream was created. */
    private long lastNanos;

    /** Begins with the first response, at a time. */
    public ResponseIndices(long nowNanos) {
        lastNanos = nowNanos;
    }

    /** Takes the index of a response that the backend reports. */
    public void add() {
        if (sent < ModelMeter.MAX_INDICES) {
            sent++;
        }
    }

    /** Takes the index of a failed response, and counts it. Called before its delivery. */
    public void addFailed(ErrorCode code, long nowNanos, ModelMeter meter) {
        meter.responded(sent, ResponseReport.failed(lastNanos, nowNanos, code));
        lastNanos = nowNanos;
        if (failed == null) {
            failed = new BitSet();
        }
        failed.set(sent);
        add();
    }

    /** Returns the index of the next report, which skips failed responses. */
    public int nextReport() {
        if (failed != null) {
            reports = failed.nextClearBit(reports);
        }
        return reports++;
    }
}
