package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.ComputeTimings;
import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.MicrosCounters;
import java.util.concurrent.TimeUnit;

/** Sums of input, inference and output times. Guarded by the lock of its meter. */
final class ComputeSums {
    final RunningTiming input = new RunningTiming();
    final RunningTiming infer = new RunningTiming();
    final RunningTiming output = new RunningTiming();
    long inputMicros;
    long inferMicros;
    long outputMicros;

    /** Adds the parts of an execution, a number of times. */
    void add(ExecutionTally tally, long times) {
        input.add(times, times * tally.inputNanos);
        infer.add(times, times * tally.inferNanos);
        output.add(times, times * tally.outputNanos);
        inputMicros += times * TimeUnit.NANOSECONDS.toMicros(tally.inputNanos);
        inferMicros += times * TimeUnit.NANOSECONDS.toMicros(tally.inferNanos);
        outputMicros += times * TimeUnit.NANOSECONDS.toMicros(tally.outputNanos);
    }

    /** Adds to the inference time of an execution that was added before, a number of times. */
    void addInfer(long nanos, long times) {
        infer.add(0, times * nanos);
        inferMicros += times * TimeUnit.NANOSECONDS.toMicros(nanos);
    }

    ComputeTimings read() {
        return new ComputeTimings(input.read(), infer.read(), output.read());
    }

    /** Sums up the executions of a model on one GPU. Guarded by the lock of its meter. */
    static final class OfGpu {
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
                    requestMicros,
                    queueMicros,
                    requests.inputMicros,
                    requests.inferMicros,
                    requests.outputMicros,
                    0,
                    0);
            return new GpuCounters(gpu, success, inferences, executions, micros);
        }
    }
}
