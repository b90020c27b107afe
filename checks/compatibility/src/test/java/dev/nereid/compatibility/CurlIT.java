package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests the system's curl. Every data type is sent as JSON, as bytes after JSON, and as bytes only; features of HTTP
 * are used as well.
 */
final class CurlIT {
    @TempDir
    private static Path models;

    @TempDir
    private static Path files;

    private static InstalledServer server;
    private static Curl curl;

    @BeforeAll
    static void start() throws IOException {
        Program.assumeRuns("curl", "--version");
        server = Echo.serve(models);
        curl = new Curl(server.address("HTTP"), files);
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void sendsAndReadsJson(Sample sample) throws IOException {
        Curl.Response response = curl.post(infer(sample), utf8("{\"id\":\"a\",\"inputs\":[" + json(sample) + "]}"));

        assertThat(response.status()).as(response.text()).isEqualTo(200);
        assertThat(response.headers()).containsEntry("content-type", "application/json");
        assertThat(response.text())
                .isEqualTo("{\"id\":\"a\",\"model_name\":\"" + sample.model()
                        + "\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"OUTPUT0\",\"datatype\":\""
                        + sample.datatype() + "\",\"shape\":[" + sample.count() + "],\"data\":" + sample.json()
                        + "}]}");
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void sendsAndReadsBytesBehindJson(Sample sample) throws IOException {
        String json = "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[" + binary(sample) + "]}";

        Curl.Response response = curl.post(infer(sample), json, sample.bytes());

        assertThat(response.status()).as(response.text()).isEqualTo(200);
        assertThat(response.headers()).containsEntry("content-type", "application/octet-stream");
        assertThat(response.json()).contains("\"parameters\":{\"binary_data_size\":" + sample.bytes().length + "}");
        assertThat(response.tensors()).isEqualTo(sample.bytes());
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void sendsJsonAndReadsBytes(Sample sample) throws IOException {
        String json = "{\"inputs\":[" + json(sample)
                + "],\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{\"binary_data\":true}}]}";

        Curl.Response response = curl.post(infer(sample), utf8(json));

        assertThat(response.tensors()).isEqualTo(sample.bytes());
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void sendsBytesAndReadsJson(Sample sample) throws IOException {
        Curl.Response response = curl.post(infer(sample), "{\"inputs\":[" + binary(sample) + "]}", sample.bytes());

        assertThat(response.text()).contains("\"data\":" + sample.json());
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void sendsBytesAlone(Sample sample) throws IOException {
        boolean strings = sample.datatype().equals("BYTES");
        byte[] body = strings ? utf8("é\n") : sample.bytes();
        String path = strings ? "/v2/models/echo_one_string/infer" : infer(sample);

        Curl.Response response = curl.post(path, "", body);

        assertThat(response.status()).as(response.text()).isEqualTo(200);
        assertThat(response.json()).contains("\"shape\":[" + (strings ? 1 : sample.count()) + "]");
        assertThat(response.tensors()).endsWith(body).hasSize(body.length + (strings ? Integer.BYTES : 0));
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void sendsTensorsWithoutElements(Sample sample) throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"" + sample.datatype()
                + "\",\"shape\":[0],\"data\":[]}]}";

        Curl.Response response = curl.post(infer(sample), utf8(json));

        assertThat(response.status()).as(response.text()).isEqualTo(200);
        assertThat(response.text()).contains("\"shape\":[0],\"data\":[]");
    }

    @Test
    void readsHealthAndMetadata() throws IOException {
        assertThat(curl.get("/v2/health/live").status()).isEqualTo(200);
        assertThat(curl.get("/v2/health/ready").status()).isEqualTo(200);
        assertThat(curl.get("/v2/models/add_sub/versions/1/ready").status()).isEqualTo(200);
        assertThat(curl.get("/v2").text()).contains("\"name\":\"nereid\"");
        assertThat(curl.get("/v2/models/add_sub").text()).contains("\"name\":\"INPUT1\",\"datatype\":\"INT32\"");
        assertThat(curl.get("/v2/models/add_sub/config").text()).contains("\"max_batch_size\":8");
        assertThat(curl.get("/v2/models/nowhere").status()).isEqualTo(404);
    }

    /** curl waits up to a second for 100 Continue before it sends the body. */
    @ParameterizedTest
    @ValueSource(strings = {"Expect: 100-continue", "Transfer-Encoding: chunked", "Connection: close"})
    void sendsBodiesInTheWaysOfHttp(String header) throws IOException {
        Sample sample = Sample.of("FP32");

        Curl.Response response = curl.post(
                infer(sample),
                "{\"inputs\":[" + binary(sample) + "]}",
                sample.bytes(),
                "-H",
                header,
                "--expect100-timeout",
                "30");

        assertThat(response.text()).contains("\"data\":" + sample.json());
    }

    @ParameterizedTest
    @ValueSource(strings = {"gzip", "deflate", "gzip;q=0.5, deflate"})
    void readsCompressedResponses(String coding) throws IOException {
        Sample sample = Sample.of("BYTES");

        Curl.Response response = curl.post(
                infer(sample),
                utf8("{\"inputs\":[" + json(sample) + "]}"),
                "--compressed",
                "-H",
                "Accept-Encoding: " + coding);

        assertThat(response.headers()).containsKey("content-encoding");
        assertThat(response.text()).contains("\"data\":" + sample.json());
    }

    @Test
    void readsEventsOfAStream() throws IOException {
        Curl.Response response = curl.post("/v2/models/square/generate_stream", utf8("{\"IN\":2}"), "-N");

        assertThat(response.headers()).containsEntry("content-type", "text/event-stream; charset=utf-8");
        assertThat(response.text())
                .isEqualTo("data: {\"OUT\":2,\"model_name\":\"square\",\"model_version\":\"1\"}\n\n".repeat(2));
    }

    @Test
    void generates() throws IOException {
        Curl.Response response =
                curl.post("/v2/models/echo_bytes/generate", utf8("{\"INPUT0\":\"a text\",\"id\":\"7\"}"));

        assertThat(response.status()).as(response.text()).isEqualTo(200);
        assertThat(response.text()).contains("\"OUTPUT0\":\"a text\"").contains("\"id\":\"7\"");
    }

    @Test
    void listsTheRepository() throws IOException {
        assertThat(curl.post("/v2/repository/index", utf8("{\"ready\":true}")).text())
                .contains("{\"name\":\"add_sub\",\"version\":\"1\",\"state\":\"READY\"}");
        Curl.Response load = curl.post("/v2/repository/models/add_sub/load", utf8("{}"));
        assertThat(load.status()).isEqualTo(503);
        assertThat(load.text()).contains("explicit model load / unload is not allowed");
    }

    @Test
    void classifies() throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[4],\"data\":[3,9,-1,4]}],"
                + "\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{\"classification\":2}}]}";

        Curl.Response response = curl.post("/v2/models/echo_int32/infer", utf8(json));

        assertThat(response.text()).contains("\"data\":[\"9:1\",\"4:3\"]");
    }

    @Test
    void findsNoSharedMemoryUnlessItIsAllowed() throws IOException {
        Curl.Response response =
                curl.post("/v2/systemsharedmemory/region/r/register", utf8("{\"key\":\"/k\",\"byte_size\":4}"));

        assertThat(response.status()).isEqualTo(501);
        assertThat(response.text()).contains("--allow-client-shm=true");
    }

    @Test
    void reportsErrors() throws IOException {
        Curl.Response response = curl.post("/v2/models/echo_fp32/infer", utf8("{\"inputs\":1}"));

        assertThat(response.status()).isEqualTo(500);
        assertThat(response.text()).startsWith("{\"error\":\"");
    }

    private static String infer(Sample sample) {
        return "/v2/models/" + sample.model() + "/infer";
    }

    private static String json(Sample sample) {
        return tensor(sample) + ",\"data\":" + sample.json() + "}";
    }

    private static String binary(Sample sample) {
        return tensor(sample) + ",\"parameters\":{\"binary_data_size\":" + sample.bytes().length + "}}";
    }

    private static String tensor(Sample sample) {
        return "{\"name\":\"INPUT0\",\"datatype\":\"" + sample.datatype() + "\",\"shape\":[" + sample.count() + "]";
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
