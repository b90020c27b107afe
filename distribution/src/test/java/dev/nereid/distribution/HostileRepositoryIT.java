package dev.nereid.distribution;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Serves a repository with hostile names, dimensions, versions, labels and texts. What only informs about its models –
 * tables, examples, metrics, log – neither ends the server nor fails a request.
 */
@Tag("slow")
@Timeout(300)
final class HostileRepositoryIT {
    /** Names of directories, none of which a file system refuses. */
    private static final List<String> NAMES = List.of(
            "plain",
            "new\nline",
            "esc\u001b[31m\u001b]0;title\u0007",
            "quote'\"`$(exit 3)\\",
            "sp ace%20#?&+",
            "bidi\u202egnp.exe\u0085\u009b\u2028",
            "emoji\ud83d\ude00",
            "n".repeat(255),
            "-",
            "%s%n{}",
            "null",
            "a\",\"b\":\"}");

    private static final String REQUEST =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1,2]}]}";

    @TempDir
    private Path directory;

    private Path models;

    @BeforeEach
    void create() throws IOException {
        models = Files.createDirectory(directory.resolve("models"));
        for (String name : NAMES) {
            model(name, config("-1", ""));
        }
        String max = String.valueOf(Long.MAX_VALUE);
        model("product", config("4294967296, 4294967296, 4294967296", ""));
        model("square", config("4294967296, 4294967296", "max_batch_size: 8"));
        model("max", config(max, ""));
        model("max-batch", config(max + ", " + max, "max_batch_size: 2147483647"));
        model("many-dims", config("2147483647" + ", 2147483647".repeat(199), ""));
        model("version-max", config("-1", ""), max);
        model("versions", config("-1", ""), "1", "99999999999999999999", "-1", "00", "1a", " 2", "\u0661", "1\n");
        model("tags", config("-1", """
                metric_tags { key: "model" value: "a\\"b\\n\\\\" }
                metric_tags { key: "_reserved" value: "v" }
                metric_tags { key: "__name__" value: "v" }
                metric_tags { key: "\\"} 1\\nnv_evil{x=\\"" value: "v\\n\\"} 5\\nnv_evil 3" }
                """));
        model(
                "texts",
                config(
                        "-1",
                        "parameters { key: \"\\000\\n\\033[2J\" value { string_value: \"" + "z\\000".repeat(50_000)
                                + "\" } }\ninstance_group { name: \"g\\n\\033[31m\" count: 1 kind: KIND_CPU }"));
        model("labels", config("3", "").replace("output {", "output { label_filename: \"labels.txt\""));
        Files.write(
                models.resolve("labels/labels.txt"),
                ("\u00ff\u00fe\0\n\r\u001b[31m\n" + "y".repeat(200_000) + "\n").getBytes(ISO_8859_1));
        model("names", """
                backend: "identity"
                input { name: "\\n\\r\\000\\033[31m\\"'$(exit 3)\\302\\205\\342\\200\\256" data_type: TYPE_FP32 dims: [ 1 ] }
                output { name: "%s{}\\\\\\177" data_type: TYPE_FP32 dims: [ 1 ] }
                """);
        model("broken", "backend: \"identity\" input [[[[ \0\u001b[2J\u202e");
        model("zero", config("0", ""));
        model("warm-up", config("-1", """
                model_warmup {
                  name: "w\\n\\033" batch_size: 1
                  inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 4294967296, 4294967296 ] zero_data: true } }
                }
                """));
    }

    private void model(String name, String config, String... versions) throws IOException {
        Path model = Files.createDirectory(models.resolve(name));
        for (String version : versions.length == 0 ? new String[] {"1"} : versions) {
            Files.createDirectory(model.resolve(version));
        }
        Files.writeString(model.resolve("config.pbtxt"), config);
    }

    private static String config(String dims, String more) {
        return """
                backend: "identity"
                input { name: "INPUT0" data_type: TYPE_FP32 dims: [ %1$s ] }
                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ %1$s ] }
                %2$s
                """.formatted(dims, more);
    }

    private static String backends() {
        return "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins");
    }

    @Test
    void servesAllModelsThatLoadAndInformsAboutThem() throws Exception {
        try (InstalledServer server =
                InstalledServer.serve(models, backends(), "--exit-on-error=false", "--log-verbose=1")) {
            assertThat(server.out()).contains("Serving until Ctrl-C.").satisfies(HostileRepositoryIT::isPrintable);
            assertThat(server.out().lines())
                    .as("an example for plain models alone")
                    .filteredOn(line -> line.contains("curl "))
                    .isNotEmpty()
                    .noneMatch(line -> line.contains("/v2/models/product/") || line.contains("/v2/models/max"));
            for (String name : List.of("plain", "-", "null", "n".repeat(255))) {
                HttpResponse<String> response = server.post("/v2/models/" + name + "/infer", REQUEST);
                assertThat(response.statusCode())
                        .as("%s: %s", name, response.body())
                        .isEqualTo(200);
                assertThat(server.post("/v2/models/" + name + "/infer", "{\"inputs\":[]}")
                                .statusCode())
                        .isEqualTo(400);
            }
            assertThat(new JsonObject(server.get("/v2/models/stats").body())
                            .getJsonArray("model_stats").stream().map(entry -> ((JsonObject) entry).getString("name")))
                    .containsAll(NAMES);
            for (String name :
                    List.of("product", "square", "max", "max-batch", "many-dims", "tags", "texts", "labels")) {
                assertThat(server.get("/v2/models/" + name + "/config").statusCode())
                        .as(name)
                        .isEqualTo(200);
                assertThat(server.post("/v2/models/" + name + "/infer", REQUEST).statusCode())
                        .isLessThan(500);
            }
            assertThat(server.get("/v2/models/version-max/versions/9223372036854775807/ready")
                            .statusCode())
                    .isEqualTo(200);
            JsonArray index =
                    new JsonArray(server.post("/v2/repository/index", "").body());
            try (Stream<Path> directories = Files.list(models)) {
                assertThat(index.stream().map(entry -> ((JsonObject) entry).getString("name")))
                        .containsAll(directories
                                .map(path -> path.getFileName().toString())
                                .toList());
            }
            assertThat(server.metrics("GET", "/metrics"))
                    .returns(200, HttpResponse::statusCode)
                    .extracting(HttpResponse::body)
                    .asString()
                    .satisfies(text -> assertThat(text.split("\n"))
                            .allMatch(line -> line.matches("(?s)# .*|[a-z_]+(\\{.*})? \\S+"), "line of metrics"))
                    .contains("nv_inference_pending_request_count{", ",_model=\"a\\\"b\\n\\\\\",", ",_reserved=\"v\",")
                    .doesNotContain("\nnv_evil");
            assertThat(server.errSoFar()).satisfies(HostileRepositoryIT::isPrintable);
            listsTheModels(server);
            server.interrupt();
            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    private static void listsTheModels(InstalledServer server) {
        TestCommandContext process = new TestCommandContext(Map.of("NEREID_URL", server.address("HTTP")));
        assertThat(process.run("models")).isZero();
        assertThat(process.out()).contains("plain", "9223372036854775807").satisfies(HostileRepositoryIT::isPrintable);
        assertThat(process.run("models", "--json")).isZero();
        assertThat(process.err()).isEmpty();
    }

    @Test
    void exitsWithTheReportWhereAModelFails() throws Exception {
        InstalledServer.Result result = InstalledServer.run(
                "serve",
                "--model-repository=" + models,
                backends(),
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0");

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).contains("version-max", "READY").satisfies(HostileRepositoryIT::isPrintable);
        assertThat(result.err())
                .contains("(expected: every model loads; reasons in the table above)")
                .doesNotContain("\tat ")
                .satisfies(HostileRepositoryIT::isPrintable);
    }

    @Test
    void checksTheModels() throws Exception {
        List<List<String>> variants = List.of(
                List.of(), List.of("--load"), List.of("--verbose"), List.of("--json"), List.of("--load", "--json"));
        for (List<String> flags : variants) {
            List<String> command = new ArrayList<>(List.of("check", models.toString(), backends()));
            command.addAll(flags);

            InstalledServer.Result result = InstalledServer.run(command.toArray(String[]::new));

            assertThat(result.status()).as("%s: %s", flags, result.err()).isEqualTo(1);
            assertThat(result.err()).isEmpty();
            if (flags.contains("--json")) {
                assertThat(new JsonObject(result.out()).getJsonArray("models").size())
                        .isGreaterThan(NAMES.size());
            } else {
                assertThat(result.out()).contains("plain", "valid, ").satisfies(HostileRepositoryIT::isPrintable);
            }
        }
    }

    /** Fails if a text has characters that control a terminal. */
    private static void isPrintable(String text) {
        assertThat(text.lines())
                .allMatch(line -> line.matches("[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}&&[^\\t]]*"), "printable");
    }
}
