package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.nereid.distribution.testing.InstalledServer;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Commands against a running server: the installed one, and one that records what it receives. */
@Tag("slow")
@Timeout(300)
final class RemoteCommandsIT {
    private static InstalledServer server;

    private final TestCommandContext process = new TestCommandContext(Map.of());

    @TempDir
    private Path directory;

    /** A server that responds as told, and records requests: method, path, a header and the body. */
    private static final class FakeServer implements AutoCloseable {
        final List<String> requests = new CopyOnWriteArrayList<>();
        private final HttpServer http;
        private final int status;
        private final String response;

        FakeServer(int status, String response) throws IOException {
            this.status = status;
            this.response = response;
            http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            http.createContext("/", this::respond);
            http.start();
        }

        String url() {
            return "http://127.0.0.1:" + http.getAddress().getPort();
        }

        private void respond(HttpExchange exchange) throws IOException {
            requests.add(
                    exchange.getRequestMethod() + " " + exchange.getRequestURI().getRawPath() + " "
                            + exchange.getRequestHeaders().getFirst("key") + " "
                            + new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
            byte[] body = response.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        }

        @Override
        public void close() {
            http.stop(0);
        }
    }

    @BeforeAll
    static void start() throws IOException {
        server = InstalledServer.serve(InstalledServer.MODELS);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void listsTheModelsOfTheInstalledServer() throws Exception {
        String url = server.address("HTTP");
        InstalledServer.Result table = InstalledServer.run(Map.of("NEREID_URL", url), "models");
        InstalledServer.Result json = InstalledServer.run("models", "--json", "--url", url + "/");

        assertThat(table.err()).isEmpty();
        assertThat(table.status()).isZero();
        assertThat(table.out().lines().findFirst().orElse("").split(" +"))
                .containsExactly("MODEL", "VERSION", "STATE", "REASON");
        assertThat(table.out()).containsPattern("(?m)^add_sub +1 +READY$");
        assertThat(json.status()).isZero();
        assertThat(new JsonArray(json.out()))
                .contains(new JsonObject("{\"name\":\"add_sub\",\"version\":\"1\",\"state\":\"READY\"}"));
    }

    @Test
    void printsConfigurationsOfTheInstalledServer() throws Exception {
        String url = "--url=" + server.address("HTTP");

        InstalledServer.Result json = InstalledServer.run("config", "add_sub", url);
        assertThat(json.err()).isEmpty();
        assertThat(new JsonObject(json.out()).getString("name")).isEqualTo("add_sub");
        assertThat(json.out().lines()).hasSizeGreaterThan(10);

        assertThat(process.run("config", "add_sub", "--version=1", "--pbtxt", url))
                .isZero();
        assertThat(process.out()).startsWith("name: \"add_sub\"\n").contains("data_type: TYPE_INT32\n");
        Path written = Files.createDirectories(directory.resolve("copy/1")).getParent();
        Files.writeString(
                written.resolve("config.pbtxt"), process.out().replace("name: \"add_sub\"", "name: \"copy\""));
        Files.copy(InstalledServer.MODELS.resolve("add_sub/1/model.onnx"), written.resolve("1/model.onnx"));
        assertThat(InstalledServer.run("check", directory.toString()).status()).isZero();
    }

    @Test
    void namesWhatTheInstalledServerRefuses() throws Exception {
        String url = server.address("HTTP");

        assertThat(process.run("config", "missing+model", "--url=" + url)).isEqualTo(1);
        assertThat(process.run("config", "add_sub", "--version=9", "--url=" + url))
                .isEqualTo(1);
        assertThat(process.run("load", "add_sub", "--url=" + url)).isEqualTo(1);
        assertThat(process.run("unload", "add_sub", "--dependents", "--url=" + url))
                .isEqualTo(1);
        assertThat(process.err().lines())
                .containsExactly(
                        "nereid config: " + url + ": Request for unknown model: 'missing+model' is not found",
                        "nereid config: " + url + ": Request for unknown model: 'add_sub' version 9 is not found",
                        "nereid load: " + url + ": explicit model load / unload is not allowed if polling is enabled;"
                                + " start the server with --model-control-mode=explicit",
                        "nereid unload: " + url + ": explicit model load / unload is not allowed if polling is"
                                + " enabled; start the server with --model-control-mode=explicit");
        assertThat(process.out()).isEmpty();
    }

    @Test
    void sendsLoadsWithConfigurationsAndFiles() throws Exception {
        Path text = Files.writeString(directory.resolve("config.pbtxt"), "backend: \"onnxruntime\"\nmax_batch_size: 3");
        Path file = Files.writeString(directory.resolve("new.onnx"), "abcd");
        try (FakeServer fake = new FakeServer(200, "")) {
            String url = "--url=" + fake.url();
            assertThat(process.run("load", "a+b@c", url, "--header=key: secret"))
                    .isZero();
            assertThat(process.run("load", "m", url, "--config", "{\"backend\":\"x\"}", "--file=1/m.onnx=" + file))
                    .isZero();
            assertThat(process.run("load", "m", url, "--config=" + text)).isZero();
            assertThat(process.run("unload", "m", url, "--dependents")).isZero();
            assertThat(process.run("unload", "m", url)).isZero();
            assertThat(process.run("load", "m", url, "--force")).isZero();

            String start = "POST /v2/repository/models/";
            assertThat(fake.requests).hasSize(6);
            assertThat(fake.requests.get(0)).isEqualTo(start + "a+b@c/load secret {}");
            assertThat(fake.requests.get(1))
                    .isEqualTo(start + "m/load null {\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"x\\\"}\","
                            + "\"file:1/m.onnx\":\"YWJjZA==\"}}");
            assertThat(fake.requests.get(2))
                    .startsWith(start + "m/load null {\"parameters\":{\"config\":\"{\\\"name\\\":\\\"\\\"")
                    .contains("\\\"max_batch_size\\\":3", "\\\"backend\\\":\\\"onnxruntime\\\"");
            assertThat(fake.requests.get(3))
                    .isEqualTo(start + "m/unload null {\"parameters\":{\"unload_dependents\":true}}");
            assertThat(fake.requests.get(4))
                    .isEqualTo(start + "m/unload null {\"parameters\":{\"unload_dependents\":false}}");
            assertThat(fake.requests.get(5)).isEqualTo(start + "m/load null {\"parameters\":{\"force\":true}}");
        }
        assertThat(process.out().lines())
                .containsExactly("a+b@c: loaded", "m: loaded", "m: loaded", "m: unloaded", "m: unloaded", "m: loaded");
        assertThat(process.err()).isEmpty();
    }

    @Test
    void refusesNamesThatNoPathCanContain() {
        for (String name : new String[] {"a b", "a/b", "a%20b", "\u00fc", "a\u001b", ""}) {
            assertThat(process.run("unload", "--url=http://127.0.0.1:1", "--", name))
                    .isEqualTo(1);
        }

        assertThat(process.err().lines())
                .hasSize(6)
                .allMatch(line -> line.startsWith("nereid unload: model name: '")
                        && line.endsWith("' (expected: letters, digits and -._~!$&'()*+,;=:@, since servers do not"
                                + " decode paths)"));
        assertThat(process.err()).doesNotContain("\u001b");
    }

    @Test
    void namesAWrongConfigurationBeforeItSendsAnything() throws Exception {
        Path text = Files.writeString(directory.resolve("config.pbtxt"), "bakend: \"onnxruntime\"");

        assertThat(process.run("load", "m", "--url=http://127.0.0.1:1", "--config=" + text))
                .isEqualTo(2);

        assertThat(process.err())
                .startsWith("nereid load: --config: failed to read text proto from " + text
                        + ": 1:1: unknown field 'bakend' in ModelConfig (expected: ");
    }

    @Test
    void saysThatNoServerIsThereOrThatItIsAnother() throws Exception {
        int free;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            free = socket.getLocalPort();
        }
        assertThat(process.run("models", "--url=http://127.0.0.1:" + free)).isEqualTo(1);
        assertThat(process.err())
                .startsWith("nereid models: http://127.0.0.1:" + free + ": no server reachable: ")
                .endsWith("; start a server with: nereid serve --model-repository=DIR; or name the address of another"
                        + " one with --url\n");
        try (FakeServer other = new FakeServer(200, "<html>hello</html>");
                FakeServer object = new FakeServer(200, "{}")) {
            assertThat(process.run("models", "--url=" + other.url())).isEqualTo(1);
            assertThat(process.run("models", "--json", "--url=" + object.url())).isEqualTo(1);
            assertThat(process.run("config", "m", "--url=" + other.url())).isEqualTo(1);
            assertThat(process.run("config", "m", "--pbtxt", "--url=" + other.url()))
                    .isEqualTo(1);
        }
        assertThat(process.err().lines().skip(1))
                .hasSize(4)
                .allMatch(line -> line.endsWith(": a response of another form (expected: the HTTP port of an inference"
                        + " server; see --url)"));
        assertThat(process.out()).isEmpty();
    }

    @Test
    void givesUpAtItsTimeLimit() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            String url = "http://127.0.0.1:" + silent.getLocalPort();

            assertThat(process.run("models", "--timeout-secs=1", "--url=" + url))
                    .isEqualTo(1);

            assertThat(process.err())
                    .isEqualTo("nereid models: " + url + ": no response within 1 s (--timeout-secs allows more; the"
                            + " server may continue with the request)\n");
        }
    }

    @Test
    void sendsTheHeaderOfRestrictedApis() throws Exception {
        try (InstalledServer restricted =
                InstalledServer.serve(InstalledServer.MODELS, "--http-restricted-api=model-repository:key=secret")) {
            String url = "--url=" + restricted.address("HTTP");

            assertThat(process.run("models", url)).isEqualTo(1);
            assertThat(process.err()).endsWith("; give the header of --http-restricted-api with --header=NAME:VALUE\n");
            assertThat(process.run("models", url, "--header=key:secret")).isZero();
            assertThat(process.out()).contains("add_sub");
        }
    }
}
