package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.ComputeTimings;
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
}
