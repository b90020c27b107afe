package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Figures of a model version that only metrics report. Immutable.
 *
 * @param failures the number of failed requests by reason; holds every reason
 * @param micros the durations of requests
 * @param cached whether responses of the model are cached
 * @param pending the number of requests in the queue
 * @param loadSeconds the duration of the version's load, in seconds
 * @param inputCopies the inputs of batches that were joined by a copy; inputs of a single request, and outputs of the
 *     same requests in one order, are passed on as they lie
 * @param gpus the executions of instances on GPUs, by GPU; empty for a version without such
 */
public record MetricCounters(
        Map<FailureReason, Long> failures,
        MicrosCounters micros,
        boolean cached,
        int pending,
        double loadSeconds,
        long inputCopies,
        List<GpuCounters> gpus) {
    /** Checks and copies the components; reasons that are missing count zero. */
    public MetricCounters {
        EnumMap<FailureReason, Long> all = new EnumMap<>(FailureReason.class);
        for (FailureReason reason : FailureReason.values()) {
            all.put(reason, failures.getOrDefault(reason, 0L));
        }
        failures = Map.copyOf(all);
        requireNonNull(micros, "micros");
        gpus = List.copyOf(gpus);
    }
}
