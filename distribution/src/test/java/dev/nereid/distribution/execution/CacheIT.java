package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that the installed server responds from its cache, by its counts of executions. */
@Tag("slow")
final class CacheIT {
    private static final String CACHED = "{model=\"cached\",version=\"1\"} ";
    private static final String EXAMPLES =
            "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins");

    @TempDir
    private static Path directory;

    /** A server with a local cache. Each test sends requests to models of its own, or to one without cache. */
    private static InstalledServer server;

    @BeforeAll
    static void start() throws IOException {
        String cache = "response_cache { enable: true }";
        new Repository(directory)
                .model("cached", Repository.identity(8, "INT32", "[2]", cache))
                .model("plain", Repository.identity(8, "INT32", "[2]", ""));
        server = InstalledServer.serve(directory, "--cache-config=local,size=1048576", EXAMPLES);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void respondsFromTheCacheOverEveryProtocol() throws Exception {
        grpcResponse(server, "plain", 5);
        httpResponse(server, "cached", "a", 5);
        assertExecutions(server, 1, 0);

        httpResponse(server, "cached", "b", 5);
        grpcResponse(server, "cached", 5);

        assertThat(server.metrics("GET", "/metrics").body())
                .contains(
                        "\nnv_cache_num_hits_per_model" + CACHED + "2\n",
                        "\nnv_cache_num_misses_per_model" + CACHED + "1\n",
                        "\nnv_cache_hit_duration_per_model" + CACHED,
                        "\nnv_cache_miss_duration_per_model" + CACHED,
                        "\nnv_inference_request_success" + CACHED + "3\n",
                        "\nnv_inference_count" + CACHED + "1\n",
                        "\nnv_inference_exec_count" + CACHED + "1\n")
                .doesNotContain("nv_cache_num_hits_per_model{model=\"plain\"");
    }

    @Test
    void warnsOfAModelWithResponseCacheOnAServerWithoutCache() throws Exception {
        try (InstalledServer without = InstalledServer.serve(directory, EXAMPLES)) {
            without.interrupt();
            InstalledServer.Result result = without.awaitEnd();
            assertThat((result.out() + result.err()).lines())
                    .filteredOn(line -> line.contains("response_cache has no effect"))
                    .isNotEmpty()
                    .allMatch(line -> line.contains("WARN") && line.contains("--cache-config"))
                    .anyMatch(line -> line.contains("cached"))
                    .noneMatch(line -> line.contains("plain"));
        }
    }

    /** One server executes; another one, started later, responds from the cache. */
    @Test
    void sharesARedis() throws Exception {
        assumeTrue(isInstalled("redis-server"), "redis-server is not installed");
        int port = freePort();
        String redis = "--cache-config=redis,port=" + port;
        Process store = new ProcessBuilder(
                        "redis-server", "--port", String.valueOf(port), "--bind", "127.0.0.1", "--save", "")
                .redirectErrorStream(true)
                .start();
        try {
            awaitReady(store);
            try (InstalledServer one =
                    InstalledServer.serve(directory, "--cache-config=redis,host=127.0.0.1", redis, EXAMPLES)) {
                httpResponse(one, "cached", "a", 5);
                assertExecutions(one, 1, 0);
            }
            try (InstalledServer other =
                    InstalledServer.serve(directory, "--cache-config=redis,host=127.0.0.1", redis, EXAMPLES)) {
                httpResponse(other, "cached", "b", 5);
                grpcResponse(other, "cached", 5);
                assertExecutions(other, 0, 2);
                other.interrupt();
                InstalledServer.Result result = other.awaitEnd();
                assertThat(result.out() + result.err())
                        .as("report of the plugin's SLF4J about the server's own provider")
                        .doesNotContain("LogProvider");
            }
        } finally {
            store.destroyForcibly();
        }
    }

    private static boolean isInstalled(String program) throws InterruptedException {
        try {
            Process process = new ProcessBuilder(program, "--version")
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor() == 0;
        } catch (IOException e) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static void awaitReady(Process redis) throws IOException {
        BufferedReader reader = redis.inputReader(StandardCharsets.UTF_8);
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            if (line.contains("Ready to accept connections")) {
                return;
            }
        }
        throw new AssertionError("redis-server ended");
    }

    @Test
    void doesNotStartWithACacheThatCannotBe() throws IOException, InterruptedException {
        assertThat(start("--cache-config=local,size=some"))
                .contains("nereid serve: cache 'local': size: 'some' (expected: a number of bytes");
        assertThat(start("--cache-config=attic,size=1"))
                .contains("nereid serve: cache 'attic': unknown (expected: local");
    }

    private String start(String flag) throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run("serve", "--model-repository=" + directory, flag);
        assertThat(result.status()).isNotZero();
        return result.err();
    }

    private static String httpResponse(InstalledServer server, String model, String id, int number)
            throws IOException, InterruptedException {
        String body =
                "{\"id\":\"%s\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,2],\"data\":[%d,7]}]}"
                        .formatted(id, number);
        String response = server.post("/v2/models/" + model + "/infer", body).body();
        assertThat(response).contains("\"id\":\"" + id + "\"", "[1,2]", "[" + number + ",7]");
        return response;
    }

    private static ModelInferResponse grpcResponse(InstalledServer server, String model, int number) {
        ManagedChannel channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                .build();
        try {
            ByteString content = ByteString.copyFrom(new byte[] {(byte) number, 0, 0, 0, 7, 0, 0, 0});
            ModelInferResponse response = GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .modelInfer(ModelInferRequest.newBuilder()
                            .setModelName(model)
                            .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                                    .setName("INPUT0")
                                    .setDatatype("INT32")
                                    .addShape(1)
                                    .addShape(2))
                            .addRawInputContents(content)
                            .build());
            assertThat(response.getRawOutputContentsList()).containsExactly(content);
            return response;
        } finally {
            channel.shutdownNow();
        }
    }

    private static void assertExecutions(InstalledServer server, int executions, int hits)
            throws IOException, InterruptedException {
        assertThat(server.metrics("GET", "/metrics").body())
                .contains(
                        "\nnv_inference_exec_count" + CACHED + executions + "\n",
                        "\nnv_cache_num_hits_per_model" + CACHED + hits + "\n");
    }
}
