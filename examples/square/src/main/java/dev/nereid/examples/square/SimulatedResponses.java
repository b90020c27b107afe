package dev.nereid.examples.square;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.ResponseSender;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/** Sends responses with delays and failures, and reports their times. Confined to the instance's thread. */
final class SimulatedResponses {
    /** Makes the responses. */
    interface Source {
        InferenceResponse next();
    }

    private final SquareModel model;
    private final LongSupplier nanoTime;

    SimulatedResponses(SquareModel model, LongSupplier nanoTime) {
        this.model = model;
        this.nanoTime = nanoTime;
    }

    /** Sends a number of responses, or ends early where the request is cancelled. The caller ends the sender. */
    void send(ResponseSender sender, int count, Source source) {
        for (int i = 0; i < count; i++) {
            long start = nanoTime.getAsLong();
            if (sender.isCancelled()) {
                await(model.cancelNanos());
                sender.report(ResponseReport.failed(start, nanoTime.getAsLong(), ErrorCode.CANCELLED));
                return;
            }
            await(model.inferNanos());
            if (model.isEmpty(i, count)) {
                sender.report(ResponseReport.empty(start, nanoTime.getAsLong()));
                continue;
            }
            long outputStart = nanoTime.getAsLong();
            await(model.outputNanos());
            if (model.isFailure(i, count)) {
                sender.sendError(new BackendException(ErrorCode.UNKNOWN, "simulated failure")); // reports itself
            } else {
                sender.send(source.next());
                sender.report(ResponseReport.of(start, outputStart, nanoTime.getAsLong()));
            }
        }
    }

    /** Waits, unless the thread is interrupted. */
    private void await(long nanos) {
        if (nanos == 0) {
            return;
        }
        long start = nanoTime.getAsLong();
        for (long left = nanos; left > 0; left = nanos - (nanoTime.getAsLong() - start)) {
            if (Thread.currentThread().isInterrupted()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "execution was interrupted");
            }
            LockSupport.parkNanos(this, left);
        }
    }
}
