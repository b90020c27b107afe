package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.TestPaths;
import inference.GRPCInferenceServiceGrpc;
import inference.RepositoryIndexRequest;
import inference.RepositoryIndexResponse.ModelIndex;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests texts of the reference server that scripts search for. They occur in the log, the start-up report and the
 * index.
 */
@Tag("slow")
final class ReferenceTextsIT {
    private static final Path SUM = TestPaths.checkout().resolve("examples/models/add_sub/1/model.onnx");

    private static final List<String> REASONS = List.of(
            "Internal: onnx runtime error 7: ",
            "Internal: failed to stat file lost/1/model.onnx",
            "Invalid argument: must specify 'step' for ensemble 'series'",
            "Invalid argument: 'max_batch_size' must be non-negative value for wrong");

    @TempDir
    private static Path mixed;

    /** A server with a model that loads and others that do not, at the default level of the log. */
    private static InstalledServer server;

    @TempDir
    private Path directory;

    @BeforeAll
    static void start() throws IOException {
        write(mixed, "broken/1/model.onnx", "this is no model");
        write(mixed, "lost/config.pbtxt", "backend: \"onnxruntime\"");
        Files.createDirectories(mixed.resolve("lost/1"));
        write(mixed, "wrong/config.pbtxt", "backend: \"onnxruntime\"\nmax_batch_size: -1");
        write(mixed, "wrong/1/model.onnx", "");
        write(mixed, "series/config.pbtxt", "platform: \"ensemble\"\nensemble_scheduling {}");
        write(mixed, "series/1/model.onnx", "");
        copySum(mixed, "auto");
        server = InstalledServer.serve(
                mixed, "--exit-on-error=false", "--backend-config=onnxruntime,default-max-batch-size=0");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void reasonsBeginWithTheStatusEverywhere() throws Exception {
        String http = server.post("/v2/repository/index", "").body();
        assertThat(REASONS).allSatisfy(reason -> {
            assertThat(http).contains("\"reason\":\"" + reason);
            assertThat(server.out()).containsPattern("(?m)^\\w+ +[1-] +UNAVAILABLE: " + reason);
        });
        assertThat(overGrpc(server.address("gRPC")))
                .filteredOn(model -> !model.getName().equals("auto"))
                .hasSize(REASONS.size())
                .allSatisfy(model -> assertThat(model.getReason())
                        .matches(reason -> REASONS.stream().anyMatch(reason::startsWith)));
        server.awaitErr(
                "failed to load 'broken' version 1: Internal: onnx runtime error 7: ",
                "Poll failed for model directory 'wrong': 'max_batch_size' must be");
    }

    @Test
    void theLogHasBatchersWarmupsAndDefaults() throws Exception {
        write(directory, "sum/config.pbtxt", """
                backend: "onnxruntime"
                max_batch_size: 8
                dynamic_batching {}
                instance_group { kind: KIND_CPU count: 1 }
                model_warmup {
                  name: "zero sample" batch_size: 1 count: 2
                  inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } }
                  inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } }
                }
                parameters { key: "enable_mem_arena" value { string_value: "1" } }
                """);
        copySum(directory, "sum");
        copySum(directory, "auto");
        Files.createDirectories(directory.resolve("auto/007"));
        Files.createDirectories(directory.resolve("auto/abc"));

        try (InstalledServer verbose = InstalledServer.serve(directory, "--log-verbose=1")) {
            verbose.awaitErr("successfully loaded 'sum' version 1\n", "to 4 for model 'auto'");
            assertThat(verbose.errSoFar())
                    .contains("model 'sum' instance sum_0_0 is running warmup sample 'zero sample' for iteration 1\n")
                    .contains("model 'sum' instance sum_0_0 is running warmup sample 'zero sample' for iteration 2\n")
                    .doesNotContain("failed to run warmup")
                    .contains("Starting dynamic-batcher thread for sum at nice 0...\n")
                    .contains("Starting dynamic-batcher thread for auto at nice 0...\n")
                    .contains("Adding default backend config setting: default-max-batch-size,4\n")
                    .contains("autofilled max_batch_size to 4 for model 'auto' since batching is supporrted but no"
                            + " max_batch_size is specified in model configuration.")
                    .contains("Requests of several clients share an execution; write max_batch_size: 0 for a model")
                    .contains("Configuring enable_mem_arena to 1\n")
                    .contains("ignore version directory '007' which contains leading zeros in its directory name\n")
                    .contains("ignore version directory 'abc' which fails to convert to integral number\n")
                    .contains("successfully loaded 'sum' version 1\n");
        }
    }

    @Test
    void theLogHasAnotherDefault() throws Exception {
        copySum(directory, "auto");

        try (InstalledServer verbose = InstalledServer.serve(
                directory,
                "--log-verbose=1",
                "--backend-config=default-max-batch-size=7",
                "--backend-config=default-max-batch-size=8")) {
            assertThat(verbose.errSoFar())
                    .contains("Found overwritten default setting: default-max-batch-size,8\n")
                    .doesNotContain("Adding default backend config setting");
            assertThat(verbose.get("/v2/models/auto/config").body()).contains("\"max_batch_size\":8");
        }
    }

    @Test
    void theLogHasBatchersAndDefaultsOnlyAtTheirLevel() throws Exception {
        assertThat(server.errSoFar()).doesNotContain("dynamic-batcher", "default setting");
        assertThat(server.get("/v2/models/auto/config").body())
                .contains("\"max_batch_size\":0")
                .doesNotContain("dynamic_batching");
    }

    private static List<ModelIndex> overGrpc(String address) {
        ManagedChannel channel = Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
                .build();
        try {
            return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .repositoryIndex(RepositoryIndexRequest.getDefaultInstance())
                    .getModelsList();
        } finally {
            channel.shutdownNow();
        }
    }

    private static void copySum(Path directory, String model) throws IOException {
        Path file = directory.resolve(model).resolve("1/model.onnx");
        Files.createDirectories(file.getParent());
        Files.copy(SUM, file);
    }

    private static void write(Path directory, String name, String text) throws IOException {
        Path file = directory.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }
}
