package dev.nereid.scheduler.statistics;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.api.statistics.ResponseStatistics;
import java.util.List;
import java.util.Map;

/**
 * A snapshot of the statistics of a model. Immutable.
 *
 * @param lastInferenceMillis when the last execution ended, in milliseconds since the epoch; 0 if there was none
 * @param inferenceCount the items of all requests that were executed successfully
 * @param executionCount the number of executed batches
 * @param inferences the durations of requests and of their parts
 * @param batches the executions by their batch sizes, in rising order
 * @param responses the responses that backends reported, by their indices in their requests
 * @param failures the number of failed requests by reason, without reasons of no failure
 * @param micros the durations of requests for metrics
 */
public record MeterReading(
        long lastInferenceMillis,
        long inferenceCount,
        long executionCount,
        InferenceTimings inferences,
        List<BatchStatistics> batches,
        List<ResponseStatistics> responses,
        Map<FailureReason, Long> failures,
        MicrosCounters micros) {
    /** Checks and copies the components. */
    public MeterReading {
        requireNonNull(inferences, "inferences");
        batches = List.copyOf(batches);
        responses = List.copyOf(responses);
        failures = Map.copyOf(failures);
        requireNonNull(micros, "micros");
    }
}
