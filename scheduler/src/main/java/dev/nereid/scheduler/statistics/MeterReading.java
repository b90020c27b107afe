package dev.nereid.scheduler.statistics;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.api.statistics.ResponseStatistics;
import java.util.List;
import java.util.Map;

/**
 * A snapshot of the statistics of a model. Immutable.
 *
 * @param executions the counts of executions
 * @param inferences the durations of requests
 * @param responses the responses that backends reported, by their index in the request
 * @param failures the number of failed requests by reason, without the reasons for which none failed
 * @param micros the durations of requests as metrics report them
 * @param inputCopies the inputs of batches that were joined by a copy
 * @param gpus the executions of instances on GPUs, by GPU
 */
public record MeterReading(
        ExecutionStatistics executions,
        InferenceTimings inferences,
        List<ResponseStatistics> responses,
        Map<FailureReason, Long> failures,
        MicrosCounters micros,
        long inputCopies,
        List<GpuCounters> gpus) {
    /** Checks and copies the components. */
    public MeterReading {
        requireNonNull(executions, "executions");
        requireNonNull(inferences, "inferences");
        responses = List.copyOf(responses);
        failures = Map.copyOf(failures);
        requireNonNull(micros, "micros");
        gpus = List.copyOf(gpus);
    }
}
