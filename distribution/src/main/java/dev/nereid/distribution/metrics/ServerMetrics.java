package dev.nereid.distribution.metrics;

import dev.nereid.api.BestEffort;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelStatus;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot.InfoDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/** Metrics of the server and its JVM in the Prometheus text format. Immutable; safe for use by any thread. */
final class ServerMetrics {
    private static final byte[] NOTHING = {};

    private final PrometheusTextFormatWriter writer =
            PrometheusTextFormatWriter.builder().build();
    private final PrometheusRegistry jvm = JvmMetrics.registry();
    private final InferenceServer server;
    private final Optional<CpuMetrics> processors;
    private final Optional<GpuMetrics> gpus;
    private final boolean latencies;
    private final List<ConnectionCounts> connections;

    ServerMetrics(
            InferenceServer server,
            Optional<CpuMetrics> processors,
            Optional<GpuMetrics> gpus,
            boolean latencies,
            List<ConnectionCounts> connections) {
        this.server = server;
        this.processors = processors;
        this.gpus = gpus;
        this.latencies = latencies;
        this.connections = connections;
    }

    /** Returns the current text. Takes some milliseconds: not for an event loop. */
    byte[] text() {
        ModelMetrics models = new ModelMetrics(
                get("statistics of models", List.of(), () -> server.models().statistics()),
                latencies,
                gpu -> gpus.isPresent() ? server.memory().gpuUuid(gpu) : Optional.empty());
        List<MetricSnapshot> snapshots = new ArrayList<>();
        add(snapshots, "build", () -> List.of(build()));
        add(snapshots, "tensor memory", () -> List.of(tensorMemory(), tensorMemoryLimit()));
        add(snapshots, "model versions", () -> List.of(modelVersions()));
        add(snapshots, "connections", () -> List.of(openConnections(), refusedConnections()));
        add(snapshots, "JVM", jvm::scrape);
        add(snapshots, "gauges of models", models::gauges);
        add(snapshots, "loads", () -> LoadMetrics.of(server.models().loadCounts()));
        add(
                snapshots,
                "loads on demand",
                () -> server.demand().map(DemandMetrics::of).orElse(List.of()));
        add(snapshots, "processors", () -> processors.map(CpuMetrics::gauges).orElse(List.of()));
        add(snapshots, "pinned memory", this::pinnedMemory);
        add(snapshots, "GPUs", () -> gpus.map(GpuMetrics::gauges).orElse(List.of()));
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        write(text, "gauges", () -> written(snapshots));
        write(text, "counters of models", models::counters);
        write(text, "counters of GPUs", () -> gpus.map(GpuMetrics::counters).orElse(NOTHING));
        write(text, "refusals", () -> RefusalMetrics.text(server.refusals()));
        write(
                text,
                "overdue executions",
                () -> ModelUseMetrics.overdue(server.models().overdueExecutions()));
        write(
                text,
                "faults",
                () -> FaultMetrics.text(
                        server.models().overdueControl(), server.models().faults()));
        write(
                text,
                "executors of models",
                () -> ModelUseMetrics.executors(server.models().executors()));
        write(
                text,
                "responses of models",
                () -> ModelUseMetrics.responses(server.models().heldResponses()));
        write(text, "sequences", () -> SequenceMetrics.text(server.models().sequences()));
        return text.toByteArray();
    }

    /** Adds the metrics of a source; none if it fails; the other sources keep theirs. */
    private static void add(
            List<MetricSnapshot> snapshots, String source, Supplier<? extends Iterable<? extends MetricSnapshot>> of) {
        get(source, List.<MetricSnapshot>of(), of).forEach(snapshots::add);
    }

    /** Writes the metrics of a source; none if it fails; the other sources keep theirs. */
    private static void write(ByteArrayOutputStream text, String source, Supplier<byte[]> of) {
        text.writeBytes(get(source, NOTHING, of));
    }

    private static <T> T get(String source, T otherwise, Supplier<? extends T> of) {
        return BestEffort.get("metrics: " + source, otherwise, of);
    }

    private byte[] written(List<MetricSnapshot> snapshots) {
        ByteArrayOutputStream figures = new ByteArrayOutputStream();
        try {
            writer.write(figures, MetricSnapshots.of(snapshots.toArray(MetricSnapshot[]::new)));
        } catch (IOException e) {
            throw new UncheckedIOException(e); // not thrown by a stream in memory
        }
        return PlainNumbers.in(figures.toString(StandardCharsets.UTF_8)).getBytes(StandardCharsets.UTF_8);
    }

    private List<MetricSnapshot> pinnedMemory() {
        return server.memory()
                .pinnedUse()
                .map(pinned -> List.of(
                        Snapshots.gauge(
                                "nv_pinned_memory_pool_total_bytes",
                                "Pinned memory pool total memory size, in bytes",
                                (double) pinned.totalBytes()),
                        Snapshots.gauge(
                                "nv_pinned_memory_pool_used_bytes",
                                "Pinned memory pool used memory size, in bytes",
                                (double) pinned.usedBytes())))
                .orElse(List.of());
    }

    private MetricSnapshot build() {
        return InfoSnapshot.builder()
                .name("nereid_build")
                .help("The version of the server.")
                .dataPoint(InfoDataPointSnapshot.builder()
                        .labels(Labels.of("version", server.metadata().version()))
                        .build())
                .build();
    }

    private MetricSnapshot tensorMemory() {
        return Snapshots.gauge("nereid_tensor_memory_used_bytes", "Allocated memory of inputs and outputs.", (double)
                server.memory().bytesInUse());
    }

    private MetricSnapshot tensorMemoryLimit() {
        return Snapshots.gauge("nereid_tensor_memory_limit_bytes", "Memory that inputs and outputs may take.", (double)
                server.memory().limit());
    }

    private MetricSnapshot openConnections() {
        return Snapshots.gauge(
                "nereid_connections_open",
                "Open connections by port.",
                connections,
                counts -> Labels.of("port", counts.port()),
                counts -> counts.open().getAsLong());
    }

    private MetricSnapshot refusedConnections() {
        return Snapshots.counter(
                "nereid_connections_refused",
                "Connections that were closed at once because of the limit, by port.",
                connections,
                counts -> Labels.of("port", counts.port()),
                counts -> counts.refused().getAsLong());
    }

    private MetricSnapshot modelVersions() {
        List<ModelStatus> index = server.models().index();
        return Snapshots.gauge(
                "nereid_model_versions",
                "Versions of models by their state; without unloaded ones.",
                List.of(ModelStatus.State.values()),
                state -> Labels.of("state", state.name()),
                state -> index.stream()
                        .filter(status -> status.state() == state && !status.isUnloaded())
                        .count());
    }
}
