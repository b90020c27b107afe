package dev.nereid.backend.python.process;

import java.util.concurrent.TimeUnit;

/**
 * Bounds the lines of an output that are passed on. Confined to one thread.
 *
 * <p>A budget of lines and bytes is filled up at a constant rate. Where it is used up, lines are left out and counted
 * for at least a second: then their number is due, and lines pass again.
 */
final class OutputLimit {
    static final int LINES_PER_SECOND = 200;
    static final int BYTES_PER_SECOND = 64 << 10;

    /** How many lines pass at once after a time without any, as at the load of a model. */
    static final int MAX_LINES = 2000;

    static final int MAX_BYTES = 512 << 10;

    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private double lines = MAX_LINES;
    private double bytes = MAX_BYTES;
    private long filled;
    private long leftOutSince;
    private long leftOutLines;
    private long leftOutBytes;

    OutputLimit(long nowNanos) {
        filled = nowNanos;
    }

    /** Returns whether lines were left out that are not reported. */
    boolean hasLeftOut() {
        return leftOutLines > 0;
    }

    /** Returns whether the lines that were left out are to be reported. */
    boolean isReportDue(long nowNanos) {
        return leftOutLines > 0 && nowNanos - leftOutSince >= SECOND;
    }

    /** Returns the report of the lines that were left out, and counts from 0. */
    String report() {
        String report = "… " + leftOutLines + (leftOutLines == 1 ? " line (" : " lines (") + leftOutBytes
                + (leftOutBytes == 1 ? " byte" : " bytes") + ") of output left out";
        leftOutLines = 0;
        leftOutBytes = 0;
        return report;
    }

    /** Takes a line of shown bytes and {@code more} others. Returns whether it passes; one that does not is counted. */
    boolean tryPass(long nowNanos, int shown, long more) {
        if (leftOutLines == 0) {
            double seconds = Math.max(0, nowNanos - filled) / (double) SECOND;
            filled = nowNanos;
            lines = Math.min(MAX_LINES, lines + seconds * LINES_PER_SECOND);
            bytes = Math.min(MAX_BYTES, bytes + seconds * BYTES_PER_SECOND);
            if (lines >= 1 && bytes >= shown) {
                lines--;
                bytes -= shown;
                return true;
            }
            leftOutSince = nowNanos;
        }
        leftOutLines++;
        leftOutBytes += shown + more;
        return false;
    }
}
