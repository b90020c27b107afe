package dev.nereid.distribution.metrics;

import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.StringTokenizer;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Processor utilization and memory of the machine, read from {@code /proc} of Linux. Safe for use by any thread: a
 * measurement is replaced as a whole.
 */
final class CpuMetrics {
    private static final long BYTES_PER_KIB = 1024;
    private static final String FIRST_WORD = "cpu";

    /** Index of idle time in the line {@code cpu} of {@code /proc/stat}. Next is waiting for input and output. */
    private static final int IDLE = 3;

    private static final int WAITING = 4;

    /** Numbers of the line that sum up to the total. Those after them are included in the first two. */
    private static final int PARTS = 8;

    private final Path proc;
    private final AtomicReference<Measurement> latest = new AtomicReference<>(Measurement.NOTHING);

    /** Creates metrics, which are empty until they are polled. */
    CpuMetrics(Path proc) {
        this.proc = proc;
    }

    /** Processor time since the start of the machine, in units of the system. */
    private record Ticks(long busy, long all) {}

    /** The latest measurement. */
    private record Measurement(Optional<Ticks> ticks, Optional<Double> utilization) {
        static final Measurement NOTHING = new Measurement(Optional.empty(), Optional.empty());

        Measurement next(Ticks now) {
            Optional<Double> used = ticks.filter(before -> now.all() > before.all())
                    .map(before -> (double) (now.busy() - before.busy()) / (now.all() - before.all()));
            return new Measurement(Optional.of(now), used.isPresent() ? used : utilization);
        }
    }

    /** Measures the utilization of the processors since the last measurement. Reads a file. */
    void poll() {
        readTicks().ifPresent(now -> latest.updateAndGet(before -> before.next(now)));
    }

    /** Returns the latest measurement and the memory; reads a file. */
    List<MetricSnapshot> gauges() {
        List<MetricSnapshot> gauges = new ArrayList<>();
        latest.get()
                .utilization()
                .ifPresent(used ->
                        gauges.add(Snapshots.gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", used)));
        Map<String, Long> memory = readMemory();
        Long total = memory.get("MemTotal:");
        Long available = memory.get("MemAvailable:");
        if (total != null && available != null) {
            gauges.add(
                    Snapshots.gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", (double) total));
            gauges.add(Snapshots.gauge(
                    "nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", (double) (total - available)));
        }
        return gauges;
    }

    private Optional<Ticks> readTicks() {
        try (BufferedReader lines = Files.newBufferedReader(proc.resolve("stat"), StandardCharsets.US_ASCII)) {
            StringTokenizer words = new StringTokenizer(String.valueOf(lines.readLine()));
            if (words.countTokens() <= PARTS || !words.nextToken().equals(FIRST_WORD)) {
                return Optional.empty();
            }
            long busy = 0;
            long all = 0;
            for (int i = 0; i < PARTS; i++) {
                long part = Long.parseLong(words.nextToken());
                all += part;
                busy += i == IDLE || i == WAITING ? 0 : part;
            }
            return Optional.of(new Ticks(busy, all));
        } catch (IOException | NumberFormatException e) {
            return Optional.empty();
        }
    }

    private Map<String, Long> readMemory() {
        Map<String, Long> bytes = new HashMap<>();
        try {
            for (String line : Files.readAllLines(proc.resolve("meminfo"), StandardCharsets.US_ASCII)) {
                StringTokenizer words = new StringTokenizer(line);
                if (words.countTokens() >= 2) {
                    bytes.put(words.nextToken(), BYTES_PER_KIB * Long.parseLong(words.nextToken()));
                }
            }
            return bytes;
        } catch (IOException | NumberFormatException e) {
            return Map.of();
        }
    }
}
