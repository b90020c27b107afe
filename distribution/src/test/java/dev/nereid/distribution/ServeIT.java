package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ServerLiveRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The installed server in a process of its own, with requests from outside. */
final class ServeIT {
    private static final String SUM = """
            {"inputs": [
              {"name": "INPUT0", "datatype": "INT32", "shape": [1, 4], "data": [10, 20, 30, 40]},
              {"name": "INPUT1", "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}""";

    private static InstalledServer server;

    @BeforeAll
    static void start() throws IOException {
        server = InstalledServer.serve(InstalledServer.MODELS);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void listsBackendsModelsAndAddresses() {
        assertThat(server.out())
                .containsPattern("(?m)^BACKEND +PLUGIN +STATE +REASON$")
                .containsPattern("(?m)^onnxruntime +onnx +AVAILABLE$")
                .containsPattern("(?m)^tensorrt +tensorrt +UNAVAILABLE +TensorRT unavailable: no GPU: .+$")
                .containsPattern("(?m)^tensorflow +tensorflow +AVAILABLE$")
                .containsPattern("(?m)^pytorch +pytorch +AVAILABLE$")
                .containsPattern("(?m)^MODEL +VERSION +STATUS$")
                .containsPattern("(?m)^add_sub +1 +READY$")
                .containsPattern("(?m)^digits +1 +READY$")
                .containsPattern("(?m)^HTTP +http://127.0.0.1:\\d+$")
                .containsPattern("(?m)^gRPC +127.0.0.1:\\d+$")
                .containsPattern("(?m)^metrics +http://127.0.0.1:\\d+/metrics$")
                .contains("Only this machine reaches them");
    }

    @Test
    void isReadyAndServes() throws IOException, InterruptedException {
        assertThat(server.get("/v2/health/ready").statusCode()).isEqualTo(200);
        assertThat(server.post("/v2/models/add_sub/infer", SUM).body())
                .contains("[11,22,33,44]")
                .contains("[9,18,27,36]");
    }

    @Test
    void servesMetricsOnTheirOwnPort() throws IOException, InterruptedException {
        String metrics = server.metrics("GET", "/metrics").body();

        assertThat(metrics)
                .contains("nereid_build_info{version=")
                .contains("nereid_model_versions{state=\"READY\"} 2\n")
                .contains("nereid_tensor_memory_used_bytes ")
                .contains("process_start_time_seconds ")
                .contains("jvm_memory_used_bytes{area=\"heap\"} ", "jvm_memory_max_bytes{area=\"heap\"} ")
                .contains("jvm_gc_collection_seconds_count{gc=", "jvm_gc_collection_seconds_sum{gc=")
                .contains("process_cpu_seconds_total ", "process_open_fds ", "process_max_fds ")
                .contains("jvm_threads_current ", "jvm_threads_peak ", "process_resident_memory_bytes ")
                .contains("jvm_runtime_info{");
        assertThat(server.metrics("GET", "/other").body()).isEmpty();
        assertThat(server.metrics("POST", "/metrics").statusCode()).isEqualTo(405);
    }

    /** One group of event loops for HTTP and gRPC, and one loop for the metrics port: no transport has other threads. */
    @Test
    void runsHttpAndGrpcOnTheSameEventLoops() throws IOException, InterruptedException {
        server.post("/v2/models/add_sub/infer", SUM);
        inferOverGrpc(server.address("gRPC"));

        List<String> threads = threads(server.pid());

        assertThat(threads)
                .filteredOn(name -> name.matches(".*(eventloop|nio|epoll|netty|grpc).*"))
                .filteredOn(name -> !name.equals("metrics-eventloop-thread-0"))
                .allMatch(name -> name.startsWith("vert.x-eventloop-thread-"))
                .hasSize(Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
        assertThat(threads).contains("instance/add_sub/1/add_sub_0");
    }

    private static void inferOverGrpc(String target) {
        ManagedChannel channel = Grpc.newChannelBuilder(target, InsecureChannelCredentials.create())
                .build();
        try {
            assertThat(GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .serverLive(ServerLiveRequest.getDefaultInstance())
                            .getLive())
                    .isTrue();
        } finally {
            channel.shutdownNow();
        }
    }

    private static List<String> threads(long pid) throws IOException, InterruptedException {
        Path jcmd = Path.of(System.getProperty("java.home"), "bin", "jcmd");
        Process process = new ProcessBuilder(jcmd.toString(), String.valueOf(pid), "Thread.print").start();
        String dump = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return dump.lines()
                .filter(line -> line.startsWith("\""))
                .map(line -> line.substring(1, line.indexOf('"', 1)))
                .toList();
    }
}
