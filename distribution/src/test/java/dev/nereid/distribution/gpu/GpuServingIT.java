package dev.nereid.distribution.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The installed server with the example {@code ptx}, on a library that stands in for the driver.
 */
final class GpuServingIT {
    private static final Path PLUGINS = InstalledServer.CHECKOUT.resolve("examples/gpu-plugins");
    private static final Path MODELS = InstalledServer.CHECKOUT.resolve("examples/ptx-models");

    @TempDir
    private static Path library;

    private static Path driver;

    @TempDir
    private Path directory;

    @BeforeAll
    static void compileDriver() throws IOException, InterruptedException {
        driver = StandInDriver.compile(library);
    }

    private static InstalledServer serve(Path models, String... flags) throws IOException {
        return StandInDriver.serve(driver, models, flags);
    }

    private static String numbers(int count, String number) {
        return "[" + String.join(",", Collections.nCopies(count, number)) + "]";
    }

    private static String request(int items) {
        return "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[" + items + ",1024],\"data\":"
                + numbers(1024 * items, "2") + "}]}";
    }

    @Test
    void servesAKernelOnEachGpu() throws IOException, InterruptedException {
        try (InstalledServer server = serve(MODELS, "--allow-client-shm=true")) {
            assertThat(server.errSoFar() + server.out())
                    .contains("GPU 0: Stand-in, GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00, compute capability 9.0")
                    .contains("GPU 1: Stand-in")
                    .doesNotContain("no pinned memory");
            for (int items : new int[] {1, 3, 8}) {
                HttpResponse<String> response = server.post("/v2/models/increment/infer", request(items));
                assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
                assertThat(response.body()).contains("\"data\":" + numbers(1024 * items, "3.0"));
            }
            assertThat(server.metrics("GET", "/metrics").body())
                    .contains("nv_pinned_memory_pool_total_bytes 268435456\n", "nv_pinned_memory_pool_used_bytes ");
            assertThat(server.metrics("GET", "/metrics").body().lines())
                    .contains(
                            "nv_inference_request_success{model=\"increment\",version=\"1\"} 0",
                            "nv_inference_count{model=\"increment\",version=\"1\"} 0")
                    .filteredOn(line -> line.startsWith("nv_inference_count{") && line.contains("gpu_uuid=\"GPU-"))
                    .hasSize(2)
                    .anyMatch(line -> !line.endsWith(" 0"));
            assertThat(server.get("/v2/models/increment/config").body()).contains("\"gpus\":[0,1]");
            assertThat(server.post("/v2/cudasharedmemory/region/x/register", registration(0))
                            .body())
                    .contains("the handle opens no memory");
            assertThat(server.post("/v2/cudasharedmemory/region/x/register", registration(2))
                            .body())
                    .contains("device_id 2 (expected: one of [0, 1], the GPUs of the server)");
        }
    }

    private static String registration(int gpu) {
        String handle = Base64.getEncoder().encodeToString(new byte[64]);
        return "{\"raw_handle\":{\"b64\":\"" + handle + "\"},\"device_id\":" + gpu + ",\"byte_size\":64}";
    }

    /**
     * Tensors between steps stay on the GPU, are copied to another one, or, without memory there, to the host. What is left
     * in the second pools is less than a tensor: instances hold the rest.
     */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "--cuda-memory-pool-byte-size=0:67108864",
                "--cuda-memory-pool-byte-size=0:589824 --cuda-memory-pool-byte-size=1:589824"
            })
    void servesAnEnsembleOfKernels(String flags) throws IOException, InterruptedException {
        Repository repository = new Repository(directory);
        for (int gpu = 0; gpu < 2; gpu++) {
            repository.model("kernel" + gpu, """
                    backend: "ptx"
                    input { name: "IN" data_type: TYPE_FP32 dims: 1024 }
                    output { name: "OUT" data_type: TYPE_FP32 dims: 1024 }
                    max_batch_size: 8
                    dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 100000 }
                    instance_group { kind: KIND_GPU gpus: %d }
                    parameters { key: "kernel" value { string_value: "increment" } }
                    """.formatted(gpu));
            Files.writeString(directory.resolve("kernel" + gpu).resolve("1/model.ptx"), ".version 8.0");
        }
        for (int other = 0; other < 2; other++) {
            repository.model("chain" + other, """
                    platform: "ensemble"
                    input { name: "IN" data_type: TYPE_FP32 dims: 1024 }
                    output { name: "OUT" data_type: TYPE_FP32 dims: 1024 }
                    max_batch_size: 8
                    ensemble_scheduling {
                      step { model_name: "kernel0" model_version: -1
                        input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "T" } }
                      step { model_name: "kernel%d" model_version: -1
                        input_map { key: "IN" value: "T" } output_map { key: "OUT" value: "U" } }
                      step { model_name: "kernel0" model_version: -1
                        input_map { key: "IN" value: "U" } output_map { key: "OUT" value: "OUT" } }
                    }
                    """.formatted(other));
        }
        try (InstalledServer server = serve(directory, flags.split(" ", -1))) {
            for (int i = 0; i < 4; i++) {
                String path = "/v2/models/chain" + i % 2 + "/infer";
                List<CompletableFuture<HttpResponse<String>>> responses = new ArrayList<>();
                for (int items = 1; items <= 3; items++) {
                    String request = request(items);
                    responses.add(CompletableFuture.supplyAsync(() -> post(server, path, request)));
                }
                for (int items = 1; items <= 3; items++) {
                    HttpResponse<String> response = responses.get(items - 1).join();
                    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
                    assertThat(response.body()).contains("\"data\":" + numbers(1024 * items, "5.0"));
                }
            }
        }
    }

    private static HttpResponse<String> post(InstalledServer server, String path, String request) {
        try {
            return server.post(path, request);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    @Test
    void isNotLiveWhenAGpuHasFailed() throws IOException, InterruptedException {
        Repository repository = new Repository(directory);
        for (String name : List.of("fault", "idle")) {
            repository.model(name, """
                    backend: "ptx"
                    input { name: "IN" data_type: TYPE_FP32 dims: 1024 }
                    output { name: "OUT" data_type: TYPE_FP32 dims: 1024 }
                    max_batch_size: 1
                    instance_group { kind: KIND_GPU gpus: 0 }
                    parameters { key: "kernel" value { string_value: "%s" } }
                    """.formatted(name.equals("fault") ? "fault" : "increment"));
            Files.writeString(directory.resolve(name).resolve("1/model.ptx"), ".version 8.0");
        }
        try (InstalledServer server = serve(directory, "--cuda-memory-pool-byte-size=0:1048576")) {
            assertThat(server.get("/v2/health/live").statusCode()).isEqualTo(200);

            HttpResponse<String> response = server.post("/v2/models/fault/infer", request(1));

            assertThat(response.statusCode()).as(response.body()).isEqualTo(503);
            assertThat(response.body()).contains("700 CUDA_ERROR_ILLEGAL_ADDRESS");
            assertThat(server.get("/v2/models/fault/ready").statusCode()).isNotEqualTo(200);
            assertThat(stops(server, "/v2/health/live")).isTrue();
            assertThat(stops(server, "/v2/models/idle/ready"))
                    .as("a model on the same GPU without a request")
                    .isTrue();
            HttpResponse<String> refused = server.post("/v2/models/idle/infer", request(1));
            assertThat(refused.statusCode()).as(refused.body()).isEqualTo(503);
            assertThat(refused.body()).contains("restart the server");
        }
    }

    /** Returns whether an endpoint stops answering 200 within 10 seconds. */
    private static boolean stops(InstalledServer server, String path) throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (System.nanoTime() < end) {
            if (server.get(path).statusCode() != 200) {
                return true;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
        }
        return false;
    }

    @Test
    void checksARepositoryWithGpus() throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(
                StandInDriver.environment(driver),
                "check",
                "--load",
                "--backend-directory=" + PLUGINS,
                MODELS.toString());

        assertThat(result.status()).as(result.out() + result.err()).isZero();
    }

    @Test
    void leavesOutGpusBelowTheMinimum() throws IOException, InterruptedException {
        try (InstalledServer server =
                serve(MODELS, "--min-supported-compute-capability=9.1", "--exit-on-error=false")) {
            assertThat(server.errSoFar() + server.out())
                    .contains("GPU 0: not used: compute capability 9.0 (expected: at least 9.1");
            assertThat(server.get("/v2/models/increment/config").body()).contains("\"gpus\":[1]");
        }
    }

    @Test
    void refusesModelsBeyondTheLimitOfAGpu() throws IOException, InterruptedException {
        try (InstalledServer server = serve(MODELS, "--model-load-gpu-limit=1:0.0", "--exit-on-error=false")) {
            assertThat(server.post("/v2/repository/index", "{}").body())
                    .contains("memory limit set for KIND_GPU 1 has exceeded, model loading is rejected");
        }
        try (InstalledServer server = serve(MODELS, "--model-load-gpu-limit=1:0.5")) {
            assertThat(server.get("/v2/models/increment/ready").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void namesTheMissingPieceToModelsOfTensorRt() throws IOException, InterruptedException {
        Repository repository = new Repository(directory);
        repository.model("engine", "platform: \"tensorrt_plan\"\n");
        Files.writeString(directory.resolve("engine/1/model.plan"), "no plan");
        repository.copyOf(InstalledServer.MODELS.resolve("add_sub"));
        try (InstalledServer server = InstalledServer.serve(directory, "--exit-on-error=false")) {
            assertThat(server.post("/v2/repository/index", "{}").body())
                    .contains("TensorRT unavailable: no GPU: CUDA driver: libcuda.so.1: ");
            assertThat(server.get("/v2/models/add_sub/ready").statusCode()).isEqualTo(200);
            assertThat(server.post("/v2/models/engine/infer", request(1)).statusCode())
                    .isNotEqualTo(200);
        }
    }
}
