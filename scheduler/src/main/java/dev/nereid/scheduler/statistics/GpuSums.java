package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.MicrosCounters;
import java.util.concurrent.TimeUnit;

/** Sums up the executions of a model on one GPU. Guarded by the lock of its meter. */
final class GpuSums {
    private final ComputeSums requests = new ComputeSums();
    private long success;
    private long inferences;
    private long executions;
    private long requestMicros;
    private long queueMicros;

    void add(ExecutionTally tally) {
        if (tally.executedItems > 0) {
            executions++;
        }
        if (tally.successes > 0) {
            success += tally.successes;
            inferences += tally.items;
            requests.add(tally, tally.successes);
            requestMicros += tally.requestMicros;
            queueMicros += tally.queueMicros;
        }
    }

    /** Adds to the inference time of an execution that was added before. */
    void addInfer(ExecutionTally tally, long nanos) {
        requests.addInfer(nanos, tally.successes);
        requestMicros += tally.successes * TimeUnit.NANOSECONDS.toMicros(nanos);
    }

    GpuCounters read(int gpu) {
        MicrosCounters micros = new MicrosCounters(
                requestMicros, queueMicros, requests.inputMicros, requests.inferMicros, requests.outputMicros, 0, 0);
        return new GpuCounters(gpu, success, inferences, executions, micros);
    }
}
