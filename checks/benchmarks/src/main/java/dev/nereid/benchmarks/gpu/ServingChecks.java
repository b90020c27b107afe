package dev.nereid.benchmarks.gpu;

import static dev.nereid.benchmarks.gpu.CheckList.format;
import static dev.nereid.benchmarks.gpu.CheckList.require;

import dev.nereid.benchmarks.gpu.ClientMemory.ClientProcess;
import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.GrpcLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.GpuContext;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The installed server with kernels behind it. Confined to one thread. */
final class ServingChecks {
    private static final int OK = 200;
    private static final int COUNT = ClientMemory.COUNT;
    private static final int CONNECTIONS = 32;
    private static final int ROUNDS = 3;
    private static final long KERNEL_NANOS = 100_000;
    private static final double GOAL = 0.95;
    private static final int REQUESTS = 10_000;
    private static final int CHAINS = 8;
    private static final int CHAINED_REQUESTS = 25;

    private final Path home;
    private final Path plugins;
    private final Path directory;
    private final GpuContext gpu;
    private final Kernels kernels;
    private final Duration time;
    private final String classPath;
    private final InferBody body = InferBody.of("IN", (long) COUNT);

    /** Creates the checks. The directory, for models and logs, is empty; clients use the class path of this process. */
    ServingChecks(
            Path home, Path plugins, Path directory, GpuContext gpu, Kernels kernels, Duration time, String classPath) {
        this.home = home;
        this.plugins = plugins;
        this.directory = directory;
        this.gpu = gpu;
        this.kernels = kernels;
        this.time = time;
        this.classPath = classPath;
    }

    void run(CheckList list) throws IOException {
        Path models = KernelModels.write(directory.resolve("models"), KERNEL_NANOS);
        List<GpuServer> started = new ArrayList<>();
        list.check("the server finds the GPU", () -> {
            started.add(server(models));
            return discovery(started.getFirst());
        });
        if (!started.isEmpty()) {
            serve(list, started.getFirst());
        }
        list.check("a GPU that failed: not live, UNAVAILABLE", this::failure);
    }

    private void serve(CheckList list, GpuServer started) throws IOException {
        try (GpuServer server = started) {
            list.check("a kernel behind HTTP", () -> http(server));
            list.check("CUDA shared memory of a client", () -> sharedMemory(server));
            list.check("two instances overlap", () -> overlap(server));
            list.check("an ensemble of kernels, tensors on the GPU", () -> chain(server));
            list.check("metrics of the GPU", () -> metrics(server));
            list.check("10,000 requests, no growth of device memory", () -> growth(server));
            list.check("throughput over HTTP, of a bare loop", () -> throughput(() -> overHttp(server)));
            list.check("throughput over gRPC, of a bare loop", () -> throughput(() -> overGrpc(server)));
        }
    }

    private GpuServer server(Path models) throws IOException, InterruptedException {
        return new GpuServer(
                home, directory, List.of("--model-repository=" + models, "--backend-directory=" + plugins));
    }

    private static String discovery(GpuServer server) throws Exception {
        String line = server.log()
                .lines()
                .filter(text -> text.contains("GPU 0: "))
                .findFirst()
                .orElseThrow(() -> new IOException("no line about GPU 0 in the log"));
        return line.substring(line.indexOf("GPU 0: "));
    }

    private static String http(GpuServer server) throws Exception {
        String numbers = Arrays.toString(new int[COUNT]);
        HttpResponse<String> response = server.post(
                "/v2/models/increment/infer",
                "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[" + COUNT + "],\"data\":" + numbers
                        + "}]}");
        String ones = numbers.replace(" ", "").replace("0", "1.0");
        require(
                response.statusCode() == OK && response.body().replace(" ", "").contains("\"data\":" + ones),
                response.statusCode() + ": " + response.body());
        return COUNT + " numbers, each one more";
    }

    private String sharedMemory(GpuServer server) throws Exception {
        try (ClientProcess client = new ClientProcess(classPath)) {
            require(client.ask("fill").equals("filled"), "not filled");
            String region = "/v2/cudasharedmemory/region/check/";
            HttpResponse<String> registered = server.post(
                    region + "register",
                    "{\"raw_handle\":{\"b64\":\"" + client.handle() + "\"},\"device_id\":0,\"byte_size\":"
                            + 2 * ClientMemory.BYTES + "}");
            require(registered.statusCode() == OK, registered.body());
            String parameters = "\"parameters\":{\"shared_memory_region\":\"check\",\"shared_memory_byte_size\":"
                    + ClientMemory.BYTES + ",\"shared_memory_offset\":";
            HttpResponse<String> response = server.post(
                    "/v2/models/increment/infer",
                    "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[" + COUNT + "]," + parameters
                            + "0}}],\"outputs\":[{\"name\":\"OUT\"," + parameters + ClientMemory.BYTES + "}}]}");
            require(response.statusCode() == OK, response.body());
            String found = client.ask("compare 1");
            require(found.equals("equal"), found);
            HttpResponse<String> unregistered = server.post(region + "unregister", "");
            require(unregistered.statusCode() == OK, unregistered.body());
            return "input and output in memory of another process";
        }
    }

    private String overlap(GpuServer server) throws Exception {
        HttpConnections.perSecond(server.httpPort(), "slow", body, 2, Duration.ofSeconds(10), 2);
        double sequential = HttpConnections.perSecond(server.httpPort(), "slow", body, 1, Duration.ofSeconds(10), 50);
        double two = HttpConnections.perSecond(server.httpPort(), "slow", body, 2, Duration.ofSeconds(10), 50);
        require(
                two > 1.8 * sequential,
                format("%.1f requests/s, two at a time %.1f (expected: > 1.8 times)", sequential, two));
        return format("kernels of 10 ms: %.1f requests/s, two at a time %.1f", sequential, two);
    }

    /** Each kernel begins while the one before is under way: a result that did not wait for it is too small. */
    private String chain(GpuServer server) throws Exception {
        float[] expected = HttpConnections.infer(server.httpPort(), "increment", body);
        for (int i = 0; i < expected.length; i++) {
            expected[i] += 2;
        }
        try (ExecutorService clients = Executors.newFixedThreadPool(CHAINS)) {
            List<Future<?>> running = new ArrayList<>();
            for (int client = 0; client < CHAINS; client++) {
                running.add(clients.submit(() -> {
                    for (int i = 0; i < CHAINED_REQUESTS; i++) {
                        float[] result = HttpConnections.infer(server.httpPort(), "chain", body);
                        require(
                                Arrays.equals(result, expected),
                                format("%.1f (expected: %.1f)", result[0], expected[0]));
                    }
                    return null;
                }));
            }
            for (Future<?> each : running) {
                each.get();
            }
        }
        double chain = HttpConnections.perSecond(server.httpPort(), "chain", body, 1, Duration.ofSeconds(10), 100);
        double single = HttpConnections.perSecond(server.httpPort(), "later", body, 1, Duration.ofSeconds(10), 100);
        return format(
                "%d requests; three kernels of 1 ms: %.2f ms, one: %.2f ms",
                CHAINS * CHAINED_REQUESTS, 1000 / chain, 1000 / single);
    }

    private static String metrics(GpuServer server) throws Exception {
        String metrics = server.metrics();
        for (String family : List.of(
                "nv_gpu_utilization{",
                "nv_gpu_memory_total_bytes{",
                "nv_gpu_memory_used_bytes{",
                "nv_gpu_power_usage{",
                "nv_gpu_power_limit{",
                "nv_energy_consumption")) {
            require(metrics.contains(family), "no " + family);
        }
        return metrics.lines()
                .filter(line -> line.startsWith("nv_gpu_power_usage{"))
                .findFirst()
                .orElse("");
    }

    private String growth(GpuServer server) throws Exception {
        HttpConnections.perSecond(
                server.httpPort(), "fast", body, CONNECTIONS, Duration.ofMinutes(1), 100); // all has been allocated
        long before = gpu.call(CudaDriver::freeMemory);
        double perSecond = HttpConnections.perSecond(
                server.httpPort(), "fast", body, CONNECTIONS, Duration.ofMinutes(1), REQUESTS / CONNECTIONS + 1);
        require(
                perSecond * 60 > REQUESTS,
                format("%.0f requests/s (expected: %d requests in a minute)", perSecond, REQUESTS));
        long grown = before - gpu.call(CudaDriver::freeMemory);
        require(grown == 0, grown + " bytes more of the device are in use (expected: 0)");
        return format("%.0f requests/s, 0 bytes", perSecond);
    }

    /** A measurement of the server. */
    private interface Served {
        double perSecond() throws Exception;
    }

    /** Measures the bare loop and the server in turn; compares the medians. */
    private String throughput(Served served) throws Exception {
        for (int i = 0; i < ROUNDS; i++) {
            served.perSecond(); // warms up both processes
        }
        double[] ratios = new double[ROUNDS];
        double[] bare = new double[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            bare[i] = BareLoop.perSecond(gpu, kernels.copy(), COUNT, KERNEL_NANOS, 2, 8, time);
            ratios[i] = served.perSecond() / bare[i];
        }
        Arrays.sort(ratios);
        Arrays.sort(bare);
        double ratio = ratios[ROUNDS / 2];
        String figures = format("%.3f x %.0f/s (2 streams, kernels of 100 us, 4 KiB)", ratio, bare[ROUNDS / 2]);
        require(ratio >= GOAL, figures + format(" (expected: >= %.2f)", GOAL));
        return figures;
    }

    private double overHttp(GpuServer server) throws Exception {
        return HttpConnections.perSecond(server.httpPort(), "copy", body, CONNECTIONS, time, Integer.MAX_VALUE);
    }

    private double overGrpc(GpuServer server) throws Exception {
        try (ClientEventLoops loops = ClientEventLoops.start(2);
                GrpcLoad load = GrpcLoad.connect("copy", loops, server.grpcPort(), body.grpc("copy"), CONNECTIONS)) {
            return load.load(time).perSecond();
        }
    }

    private String failure() throws Exception {
        Path models = KernelModels.writeFaulty(directory.resolve("faulty-models"));
        try (GpuServer server = server(models)) {
            require(server.status("/v2/health/live") == OK, "not live before the fault");
            HttpResponse<String> response = server.post(
                    "/v2/models/fault/infer",
                    "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[0]}]}");
            require(response.statusCode() == 503, response.statusCode() + ": " + response.body());
            int ready = server.status("/v2/models/fault/ready");
            require(ready != OK, "model ready: " + ready);
            long end = System.nanoTime() + Duration.ofSeconds(5).toNanos();
            while (server.status("/v2/health/live") == OK) {
                require(System.nanoTime() < end, "live after 5 s");
            }
            return response.body();
        }
    }
}
