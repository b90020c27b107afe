package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ResponseReport;
import java.util.ArrayList;
import java.util.List;

/** Statistics of decoupled responses by index. Guarded by the lock of its meter. */
final class ResponseSums {
    private final List<OfIndex> byIndex = new ArrayList<>();

    /** Statistics of the responses with one index. */
    private static final class OfIndex {
        private final RunningTiming infer = new RunningTiming();
        private final RunningTiming output = new RunningTiming();
        private final RunningTiming success = new RunningTiming();
        private final RunningTiming fail = new RunningTiming();
        private final RunningTiming empty = new RunningTiming();
        private final RunningTiming cancel = new RunningTiming();

        ResponseStatistics read() {
            return new ResponseStatistics(
                    infer.read(), output.read(), success.read(), fail.read(), empty.read(), cancel.read());
        }
    }

    /** Throws unless the times of a report are in order. */
    static void check(ResponseReport report) {
        long start = report.startNanos();
        if (report.outputStartNanos().isPresent()) {
            long output = report.outputStartNanos().getAsLong();
            require(output - start >= 0, "Response start cannot happen after compute output start");
            require(report.endNanos() - output >= 0, "Compute output start cannot happen after response end");
        } else {
            require(report.endNanos() - start >= 0, "Response start cannot happen after response end");
        }
    }

    private static void require(boolean inOrder, String text) {
        if (!inOrder) {
            throw new BackendException(ErrorCode.INVALID_ARGUMENT, text);
        }
    }

    /** Adds a checked report of a response, by the response's index in the request, from 0. */
    void add(int index, ResponseReport report) {
        while (byIndex.size() <= index) {
            byIndex.add(new OfIndex());
        }
        OfIndex sums = byIndex.get(index);
        long whole = report.endNanos() - report.startNanos();
        if (report.error().isPresent() && report.error().get() == ErrorCode.CANCELLED) {
            sums.cancel.add(1, whole);
            return;
        }
        long output = report.outputStartNanos().isPresent()
                ? report.endNanos() - report.outputStartNanos().getAsLong()
                : 0;
        sums.infer.add(1, whole - output);
        if (report.error().isPresent()) {
            sums.output.add(output > 0 ? 1 : 0, output);
            sums.fail.add(1, whole);
        } else if (report.outputStartNanos().isPresent()) {
            sums.output.add(1, output);
            sums.success.add(1, whole);
        } else {
            sums.empty.add(1, whole);
        }
    }

    List<ResponseStatistics> read() {
        return byIndex.stream().map(OfIndex::read).toList();
    }
}
