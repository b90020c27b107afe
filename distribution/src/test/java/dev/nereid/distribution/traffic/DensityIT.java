package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.ProcessUse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TableModel;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Many more models than fit into the memory budget, in the demand mode, under requests whose models are Zipf-distributed.
 * The system property {@code nereid.demand.requests} sets the number of requests.
 */
@Tag("slow")
final class DensityIT {
    private static final int MODELS = 300;
    private static final int FITTING = 30;
    private static final int CLIENTS = 4;
    private static final int REQUESTS = Integer.getInteger("nereid.demand.requests", 1_500);
    private static final int LARGE_MODELS = 45;
    private static final int LARGE_FITTING = 15;
    private static final int LARGE_REQUESTS = 300;
    private static final int LARGE_BYTES = 20 << 20;

    /** The bytes that the server estimates for a model besides its files. */
    private static final long OVERHEAD = 512 << 10;

    private static final double ZIPF_EXPONENT = 1;
    private static final double RESIDENT_MARGIN = 1.3;
    private static final long TIMEOUT_SECONDS = 600;
    private static final Pattern MEMORY = Pattern.compile("(?m)^nereid_model_memory_bytes\\{[^}]*} (\\d+)");

    @TempDir
    private Path directory;

    @Test
    void servesMoreModelsThanFit() throws Exception {
        long size = writeModels(MODELS, 256) + OVERHEAD;
        long budget = FITTING * size;
        try (InstalledServer server = serve(budget)) {
            List<String> models = schedule(MODELS, REQUESTS);
            long started = System.nanoTime();
            long highest = send(server, models);
            double seconds = (System.nanoTime() - started) / 1e9;

            String metrics = server.metrics("GET", "/metrics").body();
            double hits = 1 - value(metrics, "nereid_model_demand_loads_total") / REQUESTS;
            double ideal = idealHits(models, FITTING);
            System.out.printf(
                    "DensityIT: %d requests for %d models, of which %d fit: %.1f s, hit rate %.3f, ideal LRU %.3f,"
                            + " evictions %.0f, reported memory at most %.1f of %.1f MiB%n",
                    REQUESTS,
                    MODELS,
                    FITTING,
                    seconds,
                    hits,
                    ideal,
                    value(metrics, "nereid_model_evictions_total"),
                    mebibytes(highest),
                    mebibytes(budget));
            assertThat(highest).isBetween(budget / 2, budget);
            assertThat(hits).isGreaterThan(ideal - 0.05);
            assertThat(value(metrics, "nereid_model_waiting_requests")).isZero();
        }
    }

    @Test
    void keepsResidentMemoryNearTheBudget() throws Exception {
        assumeThat(ProcessUse.isSupported()).as(ProcessUse.NOT_SUPPORTED).isTrue();
        long size = writeModels(LARGE_MODELS, LARGE_BYTES / Float.BYTES) + OVERHEAD;
        long budget = LARGE_FITTING * size;
        try (InstalledServer server = serve(budget)) {
            infer(server, "m0");
            long before = ProcessUse.settledResidentBytes(server) - size;

            long highest = send(server, schedule(LARGE_MODELS, LARGE_REQUESTS));
            long growth = ProcessUse.settledResidentBytes(server) - before;

            System.out.printf(
                    "DensityIT: %d requests for %d models of 20 MiB, of which %d fit: resident growth %.1f MiB, budget"
                            + " %.1f MiB, reported at most %.1f MiB%n",
                    LARGE_REQUESTS,
                    LARGE_MODELS,
                    LARGE_FITTING,
                    mebibytes(growth),
                    mebibytes(budget),
                    mebibytes(highest));
            assertThat(highest).isLessThanOrEqualTo(budget);
            assertThat(growth).isLessThan((long) (RESIDENT_MARGIN * budget));
        }
    }

    /** Writes models whose files are links to one, and returns its size. */
    private long writeModels(int count, int elements) throws IOException {
        Repository models = new Repository(directory);
        for (int i = 0; i < count; i++) {
            models.model("m" + i, TableModel.config(""));
            if (i == 0) {
                TableModel.write(models, "m0", 1, elements);
            } else {
                Files.createLink(directory.resolve("m" + i + "/1/model.onnx"), directory.resolve("m0/1/model.onnx"));
            }
        }
        return Files.size(directory.resolve("m0/1/model.onnx"));
    }

    private InstalledServer serve(long budget) throws IOException {
        // A heap of one size, and no optimizing compiler: what the process grows by is the memory of models.
        return InstalledServer.serve(
                Map.of("NEREID_JAVA_OPTIONS", "-Xms128m -Xmx128m -XX:+AlwaysPreTouch -XX:TieredStopAtLevel=1"),
                directory,
                "--model-control-mode=demand",
                "--model-memory-budget=" + budget);
    }

    /** Draws the models of requests: the n-th one has a share of 1/n. */
    private static List<String> schedule(int models, int requests) {
        double[] shares = new double[models];
        double sum = 0;
        for (int i = 0; i < models; i++) {
            sum += 1 / Math.pow(i + 1, ZIPF_EXPONENT);
            shares[i] = sum;
        }
        Random random = new Random(20);
        List<String> drawn = new ArrayList<>();
        for (int i = 0; i < requests; i++) {
            double at = random.nextDouble() * sum;
            int model = 0;
            while (shares[model] < at) {
                model++;
            }
            drawn.add("m" + model);
        }
        return drawn;
    }

    /** Returns the share of requests that find their model in a cache of the last used ones. */
    private static double idealHits(List<String> models, int size) {
        Map<String, Boolean> cache = new LinkedHashMap<>(size, 0.75f, true);
        int hits = 0;
        for (String model : models) {
            if (cache.get(model) != null) {
                hits++;
            } else {
                cache.put(model, true);
                if (cache.size() > size) {
                    cache.remove(cache.keySet().iterator().next());
                }
            }
        }
        return hits / (double) models.size();
    }

    /** Sends requests by several clients, each of which must succeed. Returns the highest sum of reported memory. */
    private static long send(InstalledServer server, List<String> models) throws Exception {
        AtomicInteger next = new AtomicInteger();
        long highest = 0;
        try (ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                all.add(clients.submit(() -> {
                    for (int at = next.getAndIncrement(); at < models.size(); at = next.getAndIncrement()) {
                        infer(server, models.get(at));
                    }
                    return null;
                }));
            }
            while (next.get() < models.size() && all.stream().noneMatch(Future::isDone)) {
                highest = Math.max(highest, reportedBytes(server));
            }
            for (Future<?> one : all) {
                one.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        }
        return Math.max(highest, reportedBytes(server));
    }

    private static long reportedBytes(InstalledServer server) throws IOException, InterruptedException {
        return MEMORY.matcher(server.metrics("GET", "/metrics").body())
                .results()
                .mapToLong(line -> Long.parseLong(line.group(1)))
                .sum();
    }

    private static double value(String metrics, String name) {
        Matcher line = Pattern.compile("(?m)^" + name + " (\\S+)$").matcher(metrics);
        assertThat(line.find()).as(name).isTrue();
        return Double.parseDouble(line.group(1));
    }

    private static void infer(InstalledServer server, String model) throws IOException, InterruptedException {
        HttpResponse<String> response = server.post(
                "/v2/models/" + model + "/infer",
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,1],\"datatype\":\"INT64\",\"data\":[3]}]}");
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        assertThat(response.body()).contains("\"data\":[" + TableModel.element(1, 3) + "]");
    }

    private static double mebibytes(long bytes) {
        return bytes / (double) (1 << 20);
    }
}
