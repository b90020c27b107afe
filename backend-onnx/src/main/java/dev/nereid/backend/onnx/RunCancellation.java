package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtExecution;
import dev.nereid.spi.InferenceRequest;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Terminates a run when all of its requests are cancelled. Lock-free: one counter.
 *
 * <p>Owner threads: {@link #watch} and {@link #isComplete} belong to the instance, {@link #run} to whoever withdraws a
 * request. Each request counts down once at most; whoever brings the counter to zero stops the run. That may come after
 * the run has ended, or even while the next one runs: the ticket names the run, so that another one is never stopped.
 */
final class RunCancellation implements Runnable {
    private final List<InferenceRequest> requests;
    private final OrtExecution execution;
    private final long runId;
    private final AtomicInteger wanted;

    RunCancellation(List<InferenceRequest> requests, OrtExecution execution, long ticket) {
        this.requests = requests;
        this.execution = execution;
        this.runId = ticket;
        this.wanted = new AtomicInteger(requests.size());
    }

    /** Asks every request to tell when it is withdrawn. */
    void watch() {
        for (InferenceRequest request : requests) {
            request.onCancel(this);
        }
    }

    /** Counts one withdrawn request. */
    @Override
    public void run() {
        if (wanted.decrementAndGet() == 0) {
            execution.terminate(runId);
        }
    }

    /** Tells whether every request was withdrawn. */
    boolean isComplete() {
        return wanted.get() == 0;
    }
}
