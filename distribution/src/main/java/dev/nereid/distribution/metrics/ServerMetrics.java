package dev.nereid.distribution.metrics;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelStatus;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot.InfoDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/** Metrics of the server and its JVM in the Prometheus text format. Immutable; safe for use by any thread. */
final class ServerMetrics {
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
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        ModelMetrics models = new ModelMetrics(
                server.models().statistics(),
                latencies,
                gpu -> gpus.isPresent() ? server.memory().gpuUuid(gpu) : Optional.empty());
        MetricSnapshots.Builder snapshots = MetricSnapshots.builder()
                .metricSnapshot(build())
                .metricSnapshot(tensorMemory())
                .metricSnapshot(tensorMemoryLimit())
                .metricSnapshot(modelVersions())
                .metricSnapshot(openConnections())
                .metricSnapshot(refusedConnections());
        jvm.scrape().forEach(snapshots::metricSnapshot);
        models.gauges().forEach(snapshots::metricSnapshot);
        LoadMetrics.of(server.models().loadCounts()).forEach(snapshots::metricSnapshot);
        server.demand().ifPresent(demand -> DemandMetrics.of(demand).forEach(snapshots::metricSnapshot));
        processors.ifPresent(cpu -> cpu.gauges().forEach(snapshots::metricSnapshot));
        server.memory().pinnedUse().ifPresent(pinned -> {
            snapshots.metricSnapshot(gauge(
                    "nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size," + " in bytes", (double)
                            pinned.totalBytes()));
            snapshots.metricSnapshot(gauge(
                    "nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in" + " bytes", (double)
                            pinned.usedBytes()));
        });
        gpus.ifPresent(gpu -> gpu.gauges().forEach(snapshots::metricSnapshot));
        try {
            ByteArrayOutputStream figures = new ByteArrayOutputStream();
            writer.write(figures, snapshots.build());
            text.write(PlainNumbers.in(figures.toString(StandardCharsets.UTF_8)).getBytes(StandardCharsets.UTF_8));
            text.write(models.counters());
            if (gpus.isPresent()) {
                text.write(gpus.get().counters());
            }
            text.write(RefusalMetrics.text(server.refusals()));
            text.write(OverdueMetrics.text(server.models().overdueExecutions()));
            text.write(FaultMetrics.text(
                    server.models().overdueControl(), server.models().faults()));
            text.write(SequenceMetrics.text(server.models().sequences()));
        } catch (IOException e) {
            throw new UncheckedIOException(e); // not thrown by a stream in memory
        }
        return text.toByteArray();
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
        return gauge("nereid_tensor_memory_used_bytes", "Allocated memory of inputs and outputs.", (double)
                server.memory().bytesInUse());
    }

    private MetricSnapshot tensorMemoryLimit() {
        return gauge("nereid_tensor_memory_limit_bytes", "Memory that inputs and outputs may take.", (double)
                server.memory().limit());
    }

    private MetricSnapshot openConnections() {
        GaugeSnapshot.Builder gauge =
                GaugeSnapshot.builder().name("nereid_connections_open").help("Open connections by port.");
        connections.forEach(
                counts -> gauge.dataPoint(point((double) counts.open().getAsLong(), Labels.of("port", counts.port()))));
        return gauge.build();
    }

    private MetricSnapshot refusedConnections() {
        CounterSnapshot.Builder counter = CounterSnapshot.builder()
                .name("nereid_connections_refused")
                .help("Connections that were closed at once because of the limit, by port.");
        connections.forEach(counts -> counter.dataPoint(CounterSnapshot.CounterDataPointSnapshot.builder()
                .value((double) counts.refused().getAsLong())
                .labels(Labels.of("port", counts.port()))
                .build()));
        return counter.build();
    }

    private MetricSnapshot modelVersions() {
        List<ModelStatus> index = server.models().index();
        GaugeSnapshot.Builder gauge =
                GaugeSnapshot.builder().name("nereid_model_versions").help("Versions of models by their state.");
        for (ModelStatus.State state : ModelStatus.State.values()) {
            long count =
                    index.stream().filter(status -> status.state() == state).count();
            gauge.dataPoint(point((double) count, Labels.of("state", state.name())));
        }
        return gauge.build();
    }

    private static MetricSnapshot gauge(String name, String help, double value) {
        return GaugeSnapshot.builder()
                .name(name)
                .help(help)
                .dataPoint(point(value, Labels.EMPTY))
                .build();
    }

    private static GaugeDataPointSnapshot point(double value, Labels labels) {
        return GaugeDataPointSnapshot.builder().value(value).labels(labels).build();
    }
}
