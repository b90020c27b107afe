package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Refused requests in responses, in metrics, and in the log. */
@Tag("slow")
class RefusedRequestsIT {
    private static final String INFER = "/v2/models/digits/infer";
    private static final String WRONG_TYPE =
            "{\"id\":\"r\\n1\",\"inputs\":[{\"name\":\"IMAGE\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[7]}]}";

    @Test
    void keepsTheStatusOfTheReferenceServerAndLocatesTheError() throws Exception {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            HttpResponse<String> response = server.post(INFER, WRONG_TYPE);

            assertThat(response.statusCode()).isEqualTo(500);
            assertThat(response.body())
                    .isEqualTo("{\"error\":\"Unable to parse 'data': attempt to access JSON non-boolean as boolean;"
                            + " inputs[0].data[0]: expected true or false, got 7\"}");
            server.interrupt();
            assertThat(server.awaitEnd().err()).doesNotContain("request failed");
        }
    }

    @Test
    void reportsClientErrorsAsBadRequestIfConfigured() throws Exception {
        try (InstalledServer server =
                InstalledServer.serve(InstalledServer.MODELS, "--client-errors-as-bad-request=true")) {
            assertThat(server.post(INFER, WRONG_TYPE).statusCode()).isEqualTo(400);
            assertThat(server.post(INFER, "hello").statusCode()).isEqualTo(400);
            assertThat(server.post("/v2/models/digits/generate", "hello").statusCode())
                    .isEqualTo(400);
        }
    }

    @Test
    void countsAndLogsEveryRefusal() throws Exception {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS, "--log-verbose=1")) {
            server.post(INFER, WRONG_TYPE);
            server.post(INFER, "hello");
            server.post(INFER, "{\"inputs\":[]}");
            server.post("/v2/models/nope/infer", "{}");
            server.post("/v2/nope", "{}");
            server.get("/v2" + "/x".repeat(20_000));

            assertCounted(server, "malformed", 2);
            assertCounted(server, "too_large", 1);
            assertCounted(server, "invalid", 1);
            assertCounted(server, "unknown_model", 1);
            assertCounted(server, "unknown_path", 1);
            server.interrupt();
            assertThat(server.awaitEnd().err().lines().filter(line -> line.contains("request failed")))
                    .hasSize(6)
                    .allMatch(line -> line.contains("DEBUG"))
                    .anyMatch(line -> line.contains("requestId=r\\n1 model='digits' status=500 text=Unable to parse"))
                    .anyMatch(line -> line.contains("status=404"))
                    .anyMatch(line -> line.contains("status=414"));
        }
    }

    @Test
    void quotesLittleOfALongNameAndGoesOn() throws Exception {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            String name = "x".repeat(60_000_000);

            HttpResponse<String> response = server.post(
                    INFER,
                    "{\"id\":\"" + name.substring(0, 1_000_000)
                            + "\",\"inputs\":[{\"name\":\"" + name
                            + "\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]}]}");

            assertThat(response.statusCode()).isEqualTo(400);
            assertThat(response.body()).hasSizeLessThan(2000).contains("…");
        }
    }

    private static void assertCounted(InstalledServer server, String cause, int count)
            throws IOException, InterruptedException {
        assertThat(server.metrics("GET", "/metrics").body())
                .contains("nereid_requests_refused_total{cause=\"" + cause + "\",protocol=\"http\"} " + count + "\n");
    }
}
