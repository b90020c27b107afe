package dev.nereid.benchmarks.gpu;

import static dev.nereid.benchmarks.gpu.CheckList.format;
import static dev.nereid.benchmarks.gpu.CheckList.require;

import dev.nereid.backend.tensorrt.presets.NvInferLoader;
import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.Shape;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** TensorRT behind the server, compared with ONNX Runtime on the CPU and with a bare loop. Confined to one thread. */
final class TensorRtChecks {
    private static final int OK = 200;
    private static final int BATCH = 8;
    private static final int ROUNDS = 3;
    private static final int CONNECTIONS = 4;
    private static final double GOAL = 0.95;
    private static final double FP16 = 2e-2;
    private static final String INPUT = "image";
    private static final String OUTPUT = "scores";
    private static final Shape ITEM = Shape.of(3, 224, 224);
    private static final long OUTPUT_BYTES = 1000L * Float.BYTES * BATCH;
    private static final Pattern BATCH_SIZE = Pattern.compile("\"batch_size\":(\\d+)");

    private final Path home;
    private final Path plugins;
    private final Path onnx;
    private final Path directory;
    private final GpuContext gpu;
    private final Duration time;
    private final Path models;

    /**
     * Creates the checks.
     *
     * @param plugins the directory with the plugins {@code tensorrt}, which has the libraries in {@code natives}, and
     *     {@code onnx}
     * @param onnx the model {@code squeezenet1_1_random.onnx}
     */
    TensorRtChecks(Path home, Path plugins, Path onnx, Path directory, GpuContext gpu, Duration time) {
        this.home = home;
        this.plugins = plugins;
        this.onnx = onnx;
        this.directory = directory;
        this.gpu = gpu;
        this.time = time;
        models = directory.resolve("tensorrt-models");
    }

    void run(CheckList list) throws Exception {
        Engine[] engine = new Engine[1];
        list.check("an engine is built from ONNX, and loaded", () -> build(engine));
        if (engine[0] == null) {
            return;
        }
        writeModels();
        try (GpuServer server = new GpuServer(
                home, directory, List.of("--model-repository=" + models, "--backend-directory=" + plugins))) {
            list.check(
                    "a plan without a configuration, FP32, of the CPU's",
                    () -> CpuComparison.run(server, "plan", CpuComparison.FP32));
            list.check("build_from_onnx, FP16, of the CPU's", () -> CpuComparison.run(server, "half", FP16));
            list.check("dynamic batching over the range of the profile", () -> batching(server));
            list.check("graphs give the same", () -> CpuComparison.run(server, "graphs", CpuComparison.FP32));
            list.check("implicit state on the device", () -> state(server));
            list.check("throughput at batch 8, of a bare loop", () -> throughput(server, engine[0]));
        }
        gpu.release(driver -> engine[0].close());
    }

    private String build(Engine[] built) throws Exception {
        Path cache = Files.createDirectories(directory.resolve("tensorrt-cache"));
        TensorRtRuntime runtime = new NvInferLoader(List.of(plugins.resolve("tensorrt/natives")), cache).load();
        gpu.run(driver -> {}); // makes it the current one
        Shape largest = ITEM.prepend(BATCH);
        long start = System.nanoTime();
        byte[] plan = runtime.build(
                new BuildRequest(onnx, "FP32", 0, Map.of(INPUT, new ProfileRange(ITEM.prepend(1), largest, largest))));
        double seconds = (System.nanoTime() - start) / 1e9;
        Files.createDirectories(models.resolve("plan/1"));
        Files.write(models.resolve("plan/1/model.plan"), plan);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment content = arena.allocate(plan.length);
            content.copyFrom(MemorySegment.ofArray(plan));
            built[0] = runtime.deserialize(content);
        }
        return format("TensorRT %s, %.1f s, %d bytes", runtime.version(), seconds, plan.length);
    }

    private void writeModels() throws IOException {
        String tensors = CpuComparison.TENSORS;
        String fromOnnx = "backend: \"tensorrt\"\nparameters { key: \"build_from_onnx\" value { string_value:"
                + " \"model.onnx\" } }\n";
        CpuComparison.writeCpuModel(models, onnx);
        model(
                "half",
                fromOnnx + tensors
                        + "parameters { key: \"build_precision\" value { string_value: \"FP16\" } }\n"
                        + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n",
                Files.readAllBytes(onnx));
        model("state", fromOnnx + """
                        max_batch_size: 4
                        input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
                        output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }
                        sequence_batching {
                          state { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] }
                        }
                        """, SumModel.bytes());
        Path graphs = Files.createDirectories(models.resolve("graphs/1"));
        Files.copy(models.resolve("plan/1/model.plan"), graphs.resolve("model.plan"));
        Files.writeString(
                models.resolve("graphs/config.pbtxt"),
                "backend: \"tensorrt\"\n" + tensors + "optimization { cuda { graphs: true } }\n");
    }

    private void model(String name, String config, byte[] content) throws IOException {
        Path version = Files.createDirectories(models.resolve(name).resolve("1"));
        Files.write(version.resolve("model.onnx"), content);
        Files.writeString(models.resolve(name).resolve("config.pbtxt"), config);
    }

    private static String batching(GpuServer server) throws Exception {
        InferBody body = InferBody.of(INPUT, 1L, 3L, 224L, 224L);
        double perSecond = HttpConnections.perSecond(server.httpPort(), "half", body, 16, Duration.ofSeconds(20), 40);
        Matcher sizes = BATCH_SIZE.matcher(server.get("/v2/models/half/stats"));
        int largest = 0;
        while (sizes.find()) {
            largest = Math.max(largest, Integer.parseInt(sizes.group(1)));
        }
        require(largest > 1 && largest <= BATCH, "largest batch: " + largest + " (expected: 2 to " + BATCH + ")");
        return format("largest batch %d, %.0f requests/s", largest, perSecond);
    }

    private static String state(GpuServer server) throws Exception {
        float sum = 0;
        for (int i = 1; i <= 5; i++) {
            sum += i;
            HttpResponse<String> response = server.post(
                    "/v2/models/state/infer",
                    "{\"parameters\":{\"sequence_id\":7,\"sequence_start\":" + (i == 1) + ",\"sequence_end\":"
                            + (i == 5)
                            + "},\"inputs\":[{\"name\":\"INPUT\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[" + i
                            + "]}]}");
            require(
                    response.statusCode() == OK && response.body().contains("\"data\":[" + sum + "]"),
                    "request " + i + ": " + response.body() + " (expected: " + sum + ")");
        }
        return "the sum of 5 requests";
    }

    /** The client's input lies on the device, in memory that it shares with the server. */
    private String throughput(GpuServer server, Engine engine) throws Exception {
        Shape shape = ITEM.prepend(BATCH);
        long bytes = shape.elementCount() * Float.BYTES;
        long memory = gpu.call(driver -> driver.allocate(bytes));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(CudaDriver.IPC_HANDLE_SIZE);
            gpu.run(driver -> driver.exportMemory(memory, handle.address()));
            String text = Base64.getEncoder().encodeToString(handle.toArray(ValueLayout.JAVA_BYTE));
            HttpResponse<String> registered = server.post(
                    "/v2/cudasharedmemory/region/batch/register",
                    "{\"raw_handle\":{\"b64\":\"" + text + "\"},\"device_id\":0,\"byte_size\":" + bytes + "}");
            require(registered.statusCode() == OK, registered.body());
            byte[] json =
                    ("{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[8,3,224,224],\"parameters\":"
                                    + "{\"shared_memory_region\":\"batch\",\"shared_memory_byte_size\":" + bytes
                                    + "}}],\"parameters\":{\"binary_data_output\":true}}")
                            .getBytes(StandardCharsets.UTF_8);
            byte[] request = HttpConnections.request("plan", json, json.length);
            for (int i = 0; i < ROUNDS; i++) { // warms up
                HttpConnections.perSecond(server.httpPort(), request, CONNECTIONS, time, Integer.MAX_VALUE);
            }
            double[] ratios = new double[ROUNDS];
            double[] bare = new double[ROUNDS];
            for (int i = 0; i < ROUNDS; i++) {
                bare[i] = EngineLoop.perSecond(gpu, engine, INPUT, shape, OUTPUT, OUTPUT_BYTES, time);
                ratios[i] = HttpConnections.perSecond(server.httpPort(), request, CONNECTIONS, time, Integer.MAX_VALUE)
                        / bare[i];
            }
            Arrays.sort(ratios);
            Arrays.sort(bare);
            String figures = format("%.3f x %.0f batches/s", ratios[ROUNDS / 2], bare[ROUNDS / 2]);
            require(ratios[ROUNDS / 2] >= GOAL, figures + format(" (expected: >= %.2f)", GOAL));
            return figures;
        } finally {
            server.post("/v2/cudasharedmemory/region/batch/unregister", "");
            gpu.release(driver -> driver.free(memory));
        }
    }
}
