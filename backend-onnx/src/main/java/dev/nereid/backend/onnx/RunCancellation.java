package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtExecution;
import dev.nereid.spi.InferenceRequest;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Terminates a run when all of its requests are cancelled. Lock-free: one counter.
 *
 * <p>Owner threads: {@link #watch} and {@link #isComplete} belong to the instance, {@link #run} to the thread that
 * cancels a request. Each request counts down at most once; the thread that brings the counter to zero stops the run.
 * That may happen after the run has ended, or even during the next one: the run's id ensures that another run is never
 * stopped.
 */
final class RunCancellation implements Runnable {
    private final List<InferenceRequest> requests;
    private final OrtExecution execution;
    private final long runId;
    private final AtomicInteger remaining;

    RunCancellation(List<InferenceRequest> requests, OrtExecution execution, long runId) {
        this.requests = requests;
        this.execution = execution;
        this.runId = runId;
        this.remaining = new AtomicInteger(requests.size());
    }

    /** Registers for the cancellation of every request. */
    void watch() {
        for (InferenceRequest request : requests) {
            request.onCancel(this);
        }
    }

    /** Counts one cancelled request. */
    @Override
    public void run() {
        if (remaining.decrementAndGet() == 0) {
            execution.terminate(runId);
        }
    }

    /** Returns whether every request was cancelled. */
    boolean isComplete() {
        return remaining.get() == 0;
    }
}
