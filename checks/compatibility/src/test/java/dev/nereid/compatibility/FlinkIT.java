package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.GZIPOutputStream;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okhttp3.ResponseBody;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests requests of Apache Flink's {@code flink-model-triton} 2.3.0, by its HTTP client. The published module does not
 * run, so its requests are built here as its {@code TritonInferenceModelFunction} builds them.
 */
final class FlinkIT {
    private static final MediaType JSON = MediaType.get("application/json; charset=utf-8");
    private static final String ARRAY =
            "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,3],\"data\":[0.1,-2.25,3.0]}],"
                    + "\"outputs\":[{\"name\":\"OUTPUT0\"}]}";

    @TempDir
    private static Path models;

    private static InstalledServer server;

    private final Connections connections = new Connections();
    private final OkHttpClient client = new OkHttpClient.Builder()
            .connectTimeout(30_000, TimeUnit.MILLISECONDS)
            .readTimeout(30_000, TimeUnit.MILLISECONDS)
            .writeTimeout(30_000, TimeUnit.MILLISECONDS)
            .retryOnConnectionFailure(true)
            .eventListener(connections)
            .build();

    @BeforeAll
    static void start() throws IOException {
        server = Echo.serve(models);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void sendsToTheLatestVersionOverOneConnection() throws IOException {
        for (int i = 0; i < 20; i++) {
            try (Response response = send(request("echo_batch", "{" + ARRAY))) {
                assertThat(response.protocol()).isEqualTo(Protocol.HTTP_1_1);
                assertThat(text(response)).contains("\"data\":[0.1,-2.25,3.0]");
                assertThat(response.code()).isEqualTo(200);
            }
        }
        assertThat(connections.opened).hasValue(1);
    }

    @Test
    void sendsPriorityAndTheEndsOfSequences() throws IOException {
        String json =
                "{\"id\":\"orders-1\",\"parameters\":{\"priority\":1,\"sequence_start\":true,\"sequence_end\":true},"
                        + ARRAY;

        try (Response response = send(request("echo_batch", json))) {
            assertThat(text(response)).contains("\"id\":\"orders-1\"").contains("\"data\":[0.1,-2.25,3.0]");
            assertThat(response.code()).isEqualTo(200);
        }
    }

    @Test
    void sendsItsTokenAndHeadersOfTheUser() throws IOException {
        Request request = request("echo_batch", "{" + ARRAY)
                .newBuilder()
                .addHeader("Authorization", "Bearer secret")
                .addHeader("X-Tenant", "blue")
                .build();

        try (Response response = send(request)) {
            assertThat(response.code()).as(text(response)).isEqualTo(200);
        }
    }

    @Test
    void sendsScalarsAndStrings() throws IOException {
        String scalar = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[7]}],"
                + "\"outputs\":[{\"name\":\"OUTPUT0\"}]}";
        String string =
                "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"häuser\"]}],"
                        + "\"outputs\":[{\"name\":\"OUTPUT0\"}]}";

        try (Response response = send(request("echo_int64", scalar))) {
            assertThat(text(response)).contains("\"data\":[7]");
        }
        try (Response response = send(request("echo_bytes", string))) {
            assertThat(text(response)).contains("\"data\":[\"häuser\"]");
        }
    }

    @Test
    void sendsCompressedBodies() throws IOException {
        ByteArrayOutputStream compressed = new ByteArrayOutputStream();
        try (OutputStream gzip = new GZIPOutputStream(compressed)) {
            gzip.write(("{" + ARRAY).getBytes(StandardCharsets.UTF_8));
        }
        Request request = new Request.Builder()
                .url(url("echo_batch"))
                .addHeader("Content-Encoding", "gzip")
                .post(RequestBody.create(compressed.toByteArray(), JSON))
                .build();

        try (Response response = send(request)) {
            assertThat(text(response)).contains("\"data\":[0.1,-2.25,3.0]");
            assertThat(response.code()).isEqualTo(200);
        }
    }

    /** It reads the error's text, and retries errors of the server, but not errors of the request. */
    @Test
    void readsErrors() throws IOException {
        try (Response response = send(request("nowhere", "{" + ARRAY))) {
            assertThat(response.code()).isEqualTo(404);
            assertThat(text(response)).contains("'nowhere' is not found");
        }
        try (Response response = send(request("echo_int32", "{" + ARRAY))) {
            assertThat(response.code()).isEqualTo(400);
        }
    }

    private Response send(Request request) throws IOException {
        return client.newCall(request).execute();
    }

    private static String text(Response response) throws IOException {
        ResponseBody body = response.body();
        return body == null ? "" : body.string();
    }

    private static Request request(String model, String json) {
        return new Request.Builder()
                .url(url(model))
                .post(RequestBody.create(json, JSON))
                .build();
    }

    private static String url(String model) {
        return server.address("HTTP") + "/v2/models/" + model + "/versions/latest/infer";
    }

    /** Counts connections. */
    private static final class Connections extends EventListener {
        private final AtomicInteger opened = new AtomicInteger();

        @Override
        public void connectStart(Call call, InetSocketAddress address, Proxy proxy) {
            opened.incrementAndGet();
        }
    }
}
