package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests a server with client certificates and a restricted repository. Only clients with a secret have access to the
 * repository.
 */
final class SecureIT {
    private static final String REQUEST =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[7]}]}";

    @TempDir
    private static Path models;

    @TempDir
    private static Path files;

    private static Certificates certificates;
    private static InstalledServer server;

    @BeforeAll
    static void start() throws IOException {
        certificates = Certificates.make(files);
        server = Echo.serve(
                models,
                "--http-use-ssl-mutual=true",
                "--http-server-cert=" + certificates.file("server.pem"),
                "--http-server-key=" + certificates.file("server.key"),
                "--http-root-cert=" + certificates.file("ca.pem"),
                "--http-restricted-api=model-repository:admin-key=sesame",
                "--grpc-use-ssl-mutual=true",
                "--grpc-server-cert=" + certificates.file("server.pem"),
                "--grpc-server-key=" + certificates.file("server.key"),
                "--grpc-root-cert=" + certificates.file("ca.pem"),
                "--grpc-restricted-protocol=model-repository:admin=sesame");
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    @Test
    void servesCurlWithACertificate(@TempDir Path directory) throws IOException {
        Curl curl = curl(directory);

        assertThat(server.address("HTTP")).startsWith("https://");
        Curl.Response response = curl.post("/v2/models/echo_int8/infer", REQUEST.getBytes(StandardCharsets.UTF_8));
        assertThat(response.text()).contains("\"data\":[7]");
    }

    @Test
    void refusesCurlWithoutACertificate() throws IOException {
        Program.assumeRuns("curl", "--version");

        Program.Result anonymous = Program.run(
                Map.of(),
                List.of("curl", "-sS", "--cacert", certificates.file("ca.pem"), server.address("HTTP") + "/v2"));
        Program.Result distrustful = Program.run(Map.of(), List.of("curl", "-sS", server.address("HTTP") + "/v2"));

        assertThat(anonymous.status()).as(anonymous.out()).isNotZero();
        // it trusts no authority of the server's certificate
        assertThat(distrustful.status()).as(distrustful.out()).isEqualTo(60);
    }

    @Test
    void showsTheRepositoryToThoseWithTheSecret(@TempDir Path directory) throws IOException {
        Curl curl = curl(directory);
        byte[] all = "{}".getBytes(StandardCharsets.UTF_8);

        Curl.Response without = curl.post("/v2/repository/index", all);
        Curl.Response with = curl.post("/v2/repository/index", all, "-H", "admin-key: sesame");

        assertThat(without.status()).isEqualTo(403);
        assertThat(without.text()).contains("This API is restricted, expecting header 'admin-key'");
        assertThat(with.status()).isEqualTo(200);
        assertThat(with.text()).contains("{\"name\":\"add_sub\",\"version\":\"1\",\"state\":\"READY\"}");
    }

    @Test
    void passesForPython(@TempDir Path stubs) throws IOException {
        Map<String, String> place =
                Map.of("NEREID_CERTIFICATES", certificates.directory().toString());

        PythonTests.prepare(stubs).run("test_secure", server, place);
    }

    private static Curl curl(Path directory) {
        Program.assumeRuns("curl", "--version");
        return new Curl(
                server.address("HTTP"),
                directory,
                "--cacert",
                certificates.file("ca.pem"),
                "--cert",
                certificates.file("client.pem"),
                "--key",
                certificates.file("client.key"));
    }
}
