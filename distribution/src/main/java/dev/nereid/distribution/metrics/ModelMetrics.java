package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ModelVersionTags;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Metrics of models under the names of the reference server. The series of a version end when it is unloaded.
 * Immutable.
 */
final class ModelMetrics {
    private static final String FAILURES = "nv_inference_request_failure";

    /** Counters of executions, which have a series for each GPU. */
    private static final List<Counter> EXECUTION_COUNTERS = List.of(
            new Counter(
                    "nv_inference_request_success",
                    "Number of successful inference requests, all batch sizes",
                    model -> model.inferences().success().count(),
                    GpuCounters::success),
            new Counter(
                    "nv_inference_count",
                    "Number of inferences performed (does not include cached requests)",
                    model -> model.executions().inferenceCount(),
                    GpuCounters::inferences),
            new Counter(
                    "nv_inference_exec_count",
                    "Number of model executions performed (does not include cached requests)",
                    model -> model.executions().executionCount(),
                    GpuCounters::executions),
            new Counter(
                    "nv_inference_request_duration_us",
                    "Cumulative inference request duration in microseconds (includes cached requests)",
                    model -> model.metrics().micros().request(),
                    gpu -> gpu.micros().request()),
            new Counter(
                    "nv_inference_queue_duration_us",
                    "Cumulative inference queuing duration in microseconds (includes cached requests)",
                    model -> model.metrics().micros().queue(),
                    gpu -> gpu.micros().queue()),
            new Counter(
                    "nv_inference_compute_input_duration_us",
                    "Cumulative compute input duration in microseconds (does not include cached requests)",
                    model -> model.metrics().micros().computeInput(),
                    gpu -> gpu.micros().computeInput()),
            new Counter(
                    "nv_inference_compute_infer_duration_us",
                    "Cumulative compute inference duration in microseconds (does not include cached requests)",
                    model -> model.metrics().micros().computeInfer(),
                    gpu -> gpu.micros().computeInfer()),
            new Counter(
                    "nv_inference_compute_output_duration_us",
                    "Cumulative inference compute output duration in microseconds (does not include cached requests)",
                    model -> model.metrics().micros().computeOutput(),
                    gpu -> gpu.micros().computeOutput()));

    private static final List<Counter> COUNTERS = List.of(new Counter(
            "nereid_batch_input_copies_total",
            "Number of inputs of batches that were joined by a copy",
            model -> model.metrics().inputCopies()));

    private static final List<Counter> CACHE_COUNTERS = List.of(
            new Counter(
                    "nv_cache_num_hits_per_model",
                    "Number of cache hits per model",
                    model -> model.inferences().cacheHit().count()),
            new Counter(
                    "nv_cache_num_misses_per_model",
                    "Number of cache misses per model",
                    model -> model.inferences().cacheMiss().count()),
            new Counter(
                    "nv_cache_hit_duration_per_model",
                    "Total cache hit duration per model, in microseconds",
                    model -> model.metrics().micros().cacheHit()),
            new Counter(
                    "nv_cache_miss_duration_per_model",
                    "Total cache miss duration per model, in microseconds",
                    model -> model.metrics().micros().cacheMiss()));

    private final List<ModelStatistics> models;
    private final boolean latencies;
    private final IntFunction<Optional<String>> gpuUuids;

    /**
     * Creates metrics of models.
     *
     * @param latencies whether to include counters of request durations
     * @param gpuUuids the identity of each GPU that is to have separate series
     */
    ModelMetrics(List<ModelStatistics> models, boolean latencies, IntFunction<Optional<String>> gpuUuids) {
        this.models = List.copyOf(models);
        this.gpuUuids = gpuUuids;
        this.latencies = latencies;
    }

    private record Counter(
            String name,
            String help,
            ToLongFunction<ModelStatistics> value,
            @Nullable ToLongFunction<GpuCounters> ofGpu) {
        Counter(String name, String help, ToLongFunction<ModelStatistics> value) {
            this(name, help, value, null);
        }

        boolean isLatency() {
            return name.contains("_duration_");
        }
    }

    List<MetricSnapshot> gauges() {
        return List.of(
                gauge(
                        "nv_inference_pending_request_count",
                        "Instantaneous number of pending requests awaiting execution per-model.",
                        model -> model.metrics().pending()),
                gauge(
                        "nv_model_load_duration_secs",
                        "Model load time in seconds",
                        model -> model.metrics().loadSeconds()));
    }

    private MetricSnapshot gauge(String name, String help, ToDoubleFunction<ModelStatistics> value) {
        return Snapshots.gauge(name, help, models, ModelMetrics::snapshotLabels, value);
    }

    private static Labels snapshotLabels(ModelStatistics model) {
        Labels.Builder labels = Labels.builder();
        labels(model).forEach(labels::label);
        return labels.build();
    }

    /** Returns the counters; a family without samples is omitted. */
    byte[] counters() {
        CounterText text = new CounterText();
        if (models.isEmpty()) {
            return text.toByteArray();
        }
        write(EXECUTION_COUNTERS, models, text);
        write(COUNTERS, models, text);
        List<ModelStatistics> cached =
                models.stream().filter(model -> model.metrics().cached()).toList();
        if (!cached.isEmpty()) {
            write(CACHE_COUNTERS, cached, text);
        }
        text.family(FAILURES, "Number of failed inference requests, all batch sizes");
        for (ModelStatistics model : models) {
            Map<String, String> labels = labels(model);
            for (FailureReason reason : FailureReason.values()) {
                labels.put("reason", reason.name());
                text.sample(FAILURES, labels, model.metrics().failures().getOrDefault(reason, 0L));
            }
        }
        return text.toByteArray();
    }

    private void write(List<Counter> counters, List<ModelStatistics> counted, CounterText text) {
        for (Counter counter : counters) {
            if (counter.isLatency() && !latencies) {
                continue;
            }
            text.family(counter.name(), counter.help());
            for (ModelStatistics model : counted) {
                long ofGpus = counter.ofGpu() == null ? 0 : writeGpus(counter.name(), counter.ofGpu(), model, text);
                text.sample(counter.name(), labels(model), counter.value().applyAsLong(model) - ofGpus);
            }
        }
    }

    /** Writes the part of the instances on each GPU; returns their sum. */
    private long writeGpus(String name, ToLongFunction<GpuCounters> value, ModelStatistics model, CounterText text) {
        long sum = 0;
        for (GpuCounters gpu : model.metrics().gpus()) {
            Optional<String> uuid = gpuUuids.apply(gpu.gpu());
            if (uuid.isPresent()) {
                Map<String, String> labels = labels(model);
                labels.put(GpuMetrics.LABEL, uuid.get());
                text.sample(name, labels, value.applyAsLong(gpu));
                sum += value.applyAsLong(gpu);
            }
        }
        return sum;
    }

    private static Map<String, String> labels(ModelStatistics model) {
        return labels(model.model());
    }

    /**
     * Returns the labels of a model version, with its tags under valid label names. Names that begin with two underscores
     * are reserved, so the names of tags have one.
     */
    static Map<String, String> labels(ModelVersionTags model) {
        Map<String, String> labels = new LinkedHashMap<>();
        labels.put("model", model.name());
        labels.put("version", Long.toString(model.version()));
        model.tags()
                .forEach((key, value) -> labels.putIfAbsent(
                        "_" + key.replaceAll("[^a-zA-Z0-9_]", "_").replaceFirst("^_+", ""), value));
        return labels;
    }
}
