package dev.nereid.http.control;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import java.io.IOException;
import java.util.Base64;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Registration of shared memory over sockets. */
@Timeout(60)
class SharedMemoryIT {
    private static final String SYSTEM = "/v2/systemsharedmemory";
    private static final String CUDA = "/v2/cudasharedmemory";

    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    @Test
    void registersListsAndUnregisters() throws IOException {
        RawHttpConnection.Response registered =
                post(SYSTEM + "/region/b/register", "{\"key\":\"/k\",\"offset\":4096,\"byte_size\":64}");
        post(SYSTEM + "/region/a%2F/register", "{\"key\":\"/k\",\"byte_size\":8}");

        assertThat(registered.status()).isEqualTo(200);
        assertThat(registered.body()).isEmpty();
        String a = "{\"name\":\"a%2F\",\"key\":\"/k\",\"offset\":0,\"byte_size\":8}";
        String b = "{\"name\":\"b\",\"key\":\"/k\",\"offset\":4096,\"byte_size\":64}";
        assertThat(get(SYSTEM + "/status").text()).isEqualTo("[" + a + "," + b + "]");
        RawHttpConnection.Response one = get(SYSTEM + "/region/b/status");
        assertThat(one.text()).isEqualTo("[" + b + "]");
        assertThat(one.header("content-type")).isEqualTo("application/json");

        assertThat(post(SYSTEM + "/region/b/unregister", "").status()).isEqualTo(200);
        assertThat(get(SYSTEM + "/status").text()).isEqualTo("[" + a + "]");
        assertThat(post(SYSTEM + "/region/b/unregister", "").status()).isEqualTo(200);
        assertThat(post(SYSTEM + "/unregister", "").status()).isEqualTo(200);
        assertThat(get(SYSTEM + "/status").text()).isEqualTo("[]");
    }

    @Test
    void registersListsAndUnregistersMemoryOfAGpu() throws IOException {
        frontend.server.sharedMemory().addGpu();
        String handle = Base64.getEncoder().encodeToString(new byte[64]);
        String body = "{\"raw_handle\":{\"b64\":\"" + handle + "\"},\"device_id\":0,\"byte_size\":64}";
        for (String name : List.of("a", "b")) {
            RawHttpConnection.Response registered = post(CUDA + "/region/" + name + "/register", body);
            assertThat(registered.status()).isEqualTo(200);
            assertThat(registered.body()).isEmpty();
        }

        String a = "{\"name\":\"a\",\"device_id\":0,\"byte_size\":64}";
        String b = "{\"name\":\"b\",\"device_id\":0,\"byte_size\":64}";
        assertThat(get(CUDA + "/status").text()).isEqualTo("[" + a + "," + b + "]");
        assertThat(get(CUDA + "/region/b/status").text()).isEqualTo("[" + b + "]");
        RawHttpConnection.Response twice = post(CUDA + "/region/b/register", body);
        assertThat(twice.status()).isEqualTo(400);
        assertThat(twice.text()).isEqualTo("{\"error\":\"shared memory region 'b' already in manager\"}");
        assertThat(post(CUDA + "/region/a/unregister", "").status()).isEqualTo(200);
        assertThat(get(CUDA + "/status").text()).isEqualTo("[" + b + "]");
        assertThat(post(CUDA + "/unregister", "").status()).isEqualTo(200);
        assertThat(get(CUDA + "/status").text()).isEqualTo("[]");
        assertThat(frontend.server.sharedMemory().cudaThreads())
                .as("the driver may take long: no event loop")
                .hasSize(3)
                .noneMatch(thread -> thread.getName().contains("eventloop"));
    }

    @Test
    void respondsToCudaRequestsAsAServerWithoutGpu() throws IOException {
        String body = "{\"raw_handle\":{\"b64\":\"AA==\"},\"device_id\":0,\"byte_size\":64}";

        RawHttpConnection.Response response = post(CUDA + "/region/x/register", body);

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.text())
                .isEqualTo("{\"error\":\"failed to register CUDA shared memory region: 'x', GPUs not supported\"}");
        assertThat(get(CUDA + "/status").text()).isEqualTo("[]");
        assertThat(post(CUDA + "/region/x/unregister", "").status()).isEqualTo(200);
        assertThat(post(CUDA + "/unregister", "").status()).isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "/region/x | {} | 400 | Shared memory register request has no 'key' field",
                "/region/x | {\"key\":\"/k\"} | 400 | Shared memory register request has no 'byte_size' field",
                "/region/x | {\"key\":1,\"byte_size\":1} | 500 | attempt to access JSON non-string as string",
                "/region/x | {\"key\":\"/k\",\"byte_size\":-1} | 500 |"
                        + " attempt to access JSON non-unsigned-integer as unsigned-integer",
                "/region/x | {\"key\":\"/k\",\"byte_size\":18446744073709551615} | 400 |"
                        + " failed to register shared memory region 'x': invalid args",
                "/region/x | {\"key\":\"/k\",\"byte_size\":1,\"offset\":18446744073709551615} | 400 |"
                        + " failed to register shared memory region 'x': invalid args",
                "/region/x | `` | 500 | failed to parse the request JSON buffer: The document is empty. at 0",
                "/region/taken | {\"key\":\"/k\",\"byte_size\":1} | 400 |"
                        + " shared memory region 'taken' already in manager",
                "`` | {\"key\":\"/k\",\"byte_size\":1} | 400 |"
                        + " 'region name' is necessary to register system shared memory region",
            })
    void reportsWhyNothingIsRegistered(String region, String body, int status, String error) throws IOException {
        frontend.server.sharedMemory().register("taken", "/k", 0, 1);

        RawHttpConnection.Response response = post(SYSTEM + region + "/register", body);

        assertThat(response.text()).startsWith("{\"error\":\"" + error);
        assertThat(response.status()).isEqualTo(status);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(frontend.server.sharedMemory().regions()).hasSize(1);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{} | 400 | Shared memory register request has no 'raw_handle' field",
                "{\"raw_handle\":{}} | 500 | attempt to access non-existing object member 'b64'",
                "{\"raw_handle\":{\"b64\":1}} | 500 | attempt to access JSON non-string as string",
                "{\"raw_handle\":{\"b64\":\"A\"}} | 400 | Shared memory register request has no 'byte_size' field",
                "{\"raw_handle\":{\"b64\":\"\"},\"byte_size\":1} | 400 |"
                        + " Shared memory register request has no 'device_id' field",
            })
    void reportsInvalidCudaRegistrations(String body, int status, String error) throws IOException {
        RawHttpConnection.Response response = post(CUDA + "/region/x/register", body);

        assertThat(response.text()).startsWith("{\"error\":\"" + error);
        assertThat(response.status()).isEqualTo(status);
    }

    @Test
    void reportsUnknownRegions() throws IOException {
        RawHttpConnection.Response system = get(SYSTEM + "/region/x/status");
        RawHttpConnection.Response cuda = get(CUDA + "/region/x/status");

        assertThat(system.status()).isEqualTo(404);
        assertThat(system.text()).isEqualTo("{\"error\":\"Unable to find system shared memory region: 'x'\"}");
        assertThat(cuda.status()).isEqualTo(404);
        assertThat(cuda.text()).isEqualTo("{\"error\":\"Unable to find cuda shared memory region: 'x'\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {SYSTEM, SYSTEM + "/region/x", SYSTEM + "/region//status", CUDA + "/foo"})
    void refusesOtherPaths(String path) throws IOException {
        assertThat(get(path).status()).isEqualTo(404);
    }

    @Test
    void reportsMethodNotAllowed() throws IOException {
        assertThat(post(SYSTEM + "/status", "").status()).isEqualTo(405);
        assertThat(get(SYSTEM + "/unregister").status()).isEqualTo(405);
        assertThat(get(CUDA + "/region/x/register").status()).isEqualTo(405);
    }

    private RawHttpConnection.Response get(String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.request("GET", path).receive();
        }
    }

    private RawHttpConnection.Response post(String path, String body) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(path, "", bytes(body)).receive();
        }
    }
}
