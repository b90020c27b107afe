package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Refused requests in responses, in metrics, and in the log. */
@Tag("slow")
class RefusedRequestsIT {
    private static final String INFER = "/v2/models/digits/infer";
    private static final String WRONG_TYPE =
            "{\"id\":\"r\\n1\",\"inputs\":[{\"name\":\"IMAGE\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[7]}]}";

    /** A server with default flags. Tests that count or change flags start their own. */
    private static InstalledServer server;

    @BeforeAll
    static void start() throws IOException {
        server = InstalledServer.serve(InstalledServer.MODELS);
    }

    /** Stops the server, whose log is complete only then. */
    @AfterAll
    static void logsNoRefusalByDefault() throws IOException, InterruptedException {
        server.interrupt();
        assertThat(server.awaitEnd().err()).doesNotContain("request failed");
    }

    @Test
    void keepsTheStatusOfTheReferenceServerAndLocatesTheError() throws Exception {
        HttpResponse<String> response = server.post(INFER, WRONG_TYPE);

        assertThat(response.statusCode()).isEqualTo(500);
        assertThat(response.body())
                .isEqualTo("{\"error\":\"Unable to parse 'data': attempt to access JSON non-boolean as boolean;"
                        + " inputs[0].data[0]: expected true or false, got 7\"}");
    }

    @Test
    void reportsClientErrorsAsBadRequestIfConfigured() throws Exception {
        try (InstalledServer own =
                InstalledServer.serve(InstalledServer.MODELS, "--client-errors-as-bad-request=true")) {
            assertThat(own.post(INFER, WRONG_TYPE).statusCode()).isEqualTo(400);
            assertThat(own.post(INFER, "hello").statusCode()).isEqualTo(400);
            assertThat(own.post("/v2/models/digits/generate", "hello").statusCode())
                    .isEqualTo(400);
        }
    }

    @Test
    void countsAndLogsEveryRefusal() throws Exception {
        try (InstalledServer own = InstalledServer.serve(InstalledServer.MODELS, "--log-verbose=1")) {
            own.post(INFER, WRONG_TYPE);
            own.post(INFER, "hello");
            own.post(INFER, "{\"inputs\":[]}");
            own.post("/v2/models/nope/infer", "{}");
            own.post("/v2/nope", "{}");
            own.get("/v2" + "/x".repeat(20_000));

            assertCounted(own, "malformed", 2);
            assertCounted(own, "too_large", 1);
            assertCounted(own, "invalid", 1);
            assertCounted(own, "unknown_model", 1);
            assertCounted(own, "unknown_path", 1);
            own.interrupt();
            assertThat(own.awaitEnd().err().lines().filter(line -> line.contains("request failed")))
                    .hasSize(6)
                    .allMatch(line -> line.contains("DEBUG"))
                    .anyMatch(line -> line.contains("requestId=r\\n1 model='digits' status=500 text=Unable to parse"))
                    .anyMatch(line -> line.contains("status=404"))
                    .anyMatch(line -> line.contains("status=414"));
        }
    }

    @Test
    void quotesLittleOfALongNameAndGoesOn() throws Exception {
        String name = "x".repeat(60_000_000);

        HttpResponse<String> response = server.post(
                INFER,
                "{\"id\":\"" + name.substring(0, 1_000_000)
                        + "\",\"inputs\":[{\"name\":\"" + name
                        + "\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]}]}");

        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(response.body()).hasSizeLessThan(2000).contains("…");
    }

    private static void assertCounted(InstalledServer counted, String cause, int count)
            throws IOException, InterruptedException {
        assertThat(counted.metrics("GET", "/metrics").body())
                .contains("nereid_requests_refused_total{cause=\"" + cause + "\",protocol=\"http\"} " + count + "\n");
    }
}
