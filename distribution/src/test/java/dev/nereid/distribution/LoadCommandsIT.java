package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.ModelRepositoryParameter;
import inference.RepositoryIndexRequest;
import inference.RepositoryModelLoadRequest;
import inference.RepositoryModelUnloadRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Loads and unloads over HTTP, gRPC and the command line, and paths by which clients try to leave the repository. */
@Tag("slow")
final class LoadCommandsIT {
    private static final String CONFIG = "{\"backend\":\"identity\",\"max_batch_size\":8}";

    @TempDir
    private static Path directory;

    private static InstalledServer server;
    private static ManagedChannel channel;
    private static GRPCInferenceServiceBlockingStub grpc;

    @BeforeAll
    static void start() throws IOException {
        Repository models = new Repository(Files.createDirectory(directory.resolve("models")));
        models.model("echo", Repository.identity(8, "INT32", "[2]", ""));
        models.model("same", Repository.identity(8, "INT32", "[2]", ""));
        models.model("other", Repository.identity(8, "INT32", "[2]", ""));
        models.model("pipeline", """
                platform: "ensemble"
                max_batch_size: 8
                input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 2 ] }
                output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 2 ] }
                ensemble_scheduling { step { model_name: "other" model_version: -1
                  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } }
                """);
        server = InstalledServer.serve(
                models.directory(),
                "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"),
                "--model-control-mode=explicit",
                "--plugin-cache-directory=" + directory.resolve("cache"));
        channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                .build();
        grpc = GRPCInferenceServiceGrpc.newBlockingStub(channel);
    }

    @AfterAll
    static void stop() {
        channel.shutdownNow();
        server.close();
    }

    @Test
    void loadsAndUnloadsByTheCommandLine() throws Exception {
        String url = "--url=" + server.address("HTTP");
        InstalledServer.Result loaded = InstalledServer.run("load", "echo", url);
        assertThat(loaded.out()).isEqualTo("echo: loaded\n");
        assertThat(loaded.status()).isZero();
        assertThat(server.get("/v2/models/echo/ready").statusCode()).isEqualTo(200);

        InstalledServer.Result unloaded = InstalledServer.run("unload", "echo", url);
        assertThat(unloaded.out()).isEqualTo("echo: unloaded\n");
        assertThat(server.get("/v2/models/echo/ready").statusCode()).isNotEqualTo(200);
    }

    /** Nothing of the model changes meanwhile. */
    @Test
    void reloadsAnUnchangedModelWhereThatIsForced() throws Exception {
        String url = "--url=" + server.address("HTTP");
        assertThat(post("/v2/repository/models/same/load", "{}").statusCode()).isEqualTo(200);
        assertThat(post("/v2/repository/models/same/load", "{}").statusCode()).isEqualTo(200);
        assertThat(loads("same")).isEqualTo(1);

        String force = "{\"parameters\":{\"force\":true}}";
        assertThat(post("/v2/repository/models/same/load", force).statusCode()).isEqualTo(200);
        assertThat(loads("same")).isEqualTo(2);

        assertThat(grpc.repositoryModelLoad(RepositoryModelLoadRequest.newBuilder()
                        .setModelName("same")
                        .putParameters(
                                "force",
                                ModelRepositoryParameter.newBuilder()
                                        .setBoolParam(true)
                                        .build())
                        .build()))
                .isNotNull();
        assertThat(loads("same")).isEqualTo(3);

        InstalledServer.Result reloaded = InstalledServer.run("load", "same", "--force", url);
        assertThat(reloaded.out()).isEqualTo("same: loaded\n");
        assertThat(loads("same")).isEqualTo(4);
        assertThat(server.get("/v2/models/same/ready").statusCode()).isEqualTo(200);
    }

    private static long loads(String model) throws Exception {
        String name = "nereid_model_loads_total{model=\"" + model + "\"} ";
        return server.metrics("GET", "/metrics")
                .body()
                .lines()
                .filter(line -> line.startsWith(name))
                .mapToLong(line -> (long) Double.parseDouble(line.substring(name.length())))
                .sum();
    }

    @Test
    void unloadsWhatAModelNeededWhereThatIsRequested() throws Exception {
        String url = "--url=" + server.address("HTTP");

        loadPipeline();
        assertThat(post("/v2/repository/models/pipeline/unload", "{}").statusCode())
                .isEqualTo(200);
        assertThat(isReady("other")).isTrue();

        loadPipeline();
        String dependents = "{\"parameters\":{\"unload_dependents\":true}}";
        assertThat(post("/v2/repository/models/pipeline/unload", dependents).statusCode())
                .isEqualTo(200);
        assertThat(isReady("other")).isFalse();

        loadPipeline();
        assertThat(isReady("other")).isTrue();
        assertThat(grpc.repositoryModelUnload(RepositoryModelUnloadRequest.newBuilder()
                        .setModelName("pipeline")
                        .putParameters(
                                "unload_dependents",
                                ModelRepositoryParameter.newBuilder()
                                        .setBoolParam(true)
                                        .build())
                        .build()))
                .isNotNull();
        assertThat(isReady("other")).isFalse();

        loadPipeline();
        assertThat(InstalledServer.run("unload", "pipeline", "--dependents", url)
                        .status())
                .isZero();
        assertThat(isReady("other")).isFalse();
    }

    private static void loadPipeline() throws Exception {
        assertThat(post("/v2/repository/models/pipeline/load", "{}").statusCode())
                .isEqualTo(200);
    }

    private static boolean isReady(String model) {
        return grpc
                .repositoryIndex(
                        RepositoryIndexRequest.newBuilder().setReady(true).build())
                .getModelsList()
                .stream()
                .anyMatch(status -> status.getName().equals(model));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"..", "%2e%2e", "..%2fmodels", "%2e%2e%2f%2e%2e%2fetc", "...", "%2Fetc%2Fpasswd", "echo%00"})
    void refusesNamesOverHttp(String name) throws Exception {
        for (String verb : new String[] {"load", "unload"}) {
            HttpResponse<String> response = post("/v2/repository/models/" + name + "/" + verb, "{}");

            if (verb.equals("unload")) {
                assertThat(response.statusCode())
                        .as("as that of an unknown model, unless it is no path of a URL")
                        .isEqualTo(name.equals("..") ? 400 : 200);
            } else {
                assertThat(response.statusCode()).as(response.body()).isBetween(400, 499);
                assertThat(response.body()).startsWith("{\"error\":\"");
            }
        }
        assertNothingOutside();
    }

    @ParameterizedTest
    @ValueSource(strings = {"..", "../models", "/etc", "a/b", "a\\b", "echo\0", "%2e%2e", "."})
    void refusesNamesOverGrpc(String name) throws Exception {
        assertThatThrownBy(() -> grpc.repositoryModelLoad(RepositoryModelLoadRequest.newBuilder()
                        .setModelName(name)
                        .build()))
                .isInstanceOfSatisfying(
                        StatusRuntimeException.class,
                        e -> assertThat(e.getStatus().getCode())
                                .isIn(Status.Code.INVALID_ARGUMENT, Status.Code.NOT_FOUND));
        assertNothingOutside();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../escaped",
                "1/../../escaped",
                "/etc/escaped",
                "//escaped",
                "..",
                ".",
                "",
                "1/./escaped",
                "..\\escaped"
            })
    void refusesFilesThatLeaveTheModel(String path) throws Exception {
        String content = Base64.getEncoder().encodeToString("x".getBytes(StandardCharsets.UTF_8));
        String body = "{\"parameters\":{\"config\":\"" + CONFIG.replace("\"", "\\\"") + "\",\"file:"
                + path.replace("\\", "\\\\") + "\":\"" + content + "\"}}";
        HttpResponse<String> response = post("/v2/repository/models/echo/load", body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(500);
        assertThat(response.body())
                .contains("failed to load 'echo', failed to poll from model repository: file override: '");

        assertThatThrownBy(() -> grpc.repositoryModelLoad(RepositoryModelLoadRequest.newBuilder()
                        .setModelName("echo")
                        .putParameters(
                                "config",
                                ModelRepositoryParameter.newBuilder()
                                        .setStringParam(CONFIG)
                                        .build())
                        .putParameters(
                                "file:" + path,
                                ModelRepositoryParameter.newBuilder()
                                        .setBytesParam(ByteString.copyFromUtf8("x"))
                                        .build())
                        .build()))
                .isInstanceOfSatisfying(
                        StatusRuntimeException.class,
                        e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.INTERNAL))
                .hasMessageContaining("failed to load 'echo', failed to poll from model repository: file override: '");
        assertNothingOutside();
    }

    /** JSON decodes the escapes of a name, before the server looks at the path. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "\\u002e\\u002e/escaped",
                "1\\u002f..\\/..\\/escaped",
                "\\u002fetc\\u002fescaped",
                "x\\u0000/escaped"
            })
    void refusesEscapedPathsOfFiles(String path) throws Exception {
        String body =
                "{\"parameters\":{\"config\":\"" + CONFIG.replace("\"", "\\\"") + "\",\"file:" + path + "\":\"eA==\"}}";
        HttpResponse<String> response = post("/v2/repository/models/echo/load", body);

        assertThat(response.statusCode()).as(response.body()).isEqualTo(500);
        assertThat(response.body())
                .contains("failed to load 'echo', failed to poll from model repository: file override: '");
        assertNothingOutside();
    }

    private static void assertNothingOutside() throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            assertThat(all).noneMatch(path -> path.toString().contains("escaped"));
        }
        assertThat(Path.of("/etc/escaped")).doesNotExist();
    }

    private static HttpResponse<String> post(String path, String body) throws IOException, InterruptedException {
        return server.post(path, body);
    }
}
