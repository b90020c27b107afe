package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.errors.InvalidRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.TestServer;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Sends requests over HTTP, one connection at a time. Confined to one thread. */
final class HttpTraffic implements TrafficClient {
    private final TestServer server;
    private HttpConnection connection;

    HttpTraffic(TestServer server) throws IOException {
        this.server = server;
        connection = server.http();
    }

    @Override
    public void perform(Traffic.Exchange exchange) throws IOException {
        byte[] request = exchange.request().overHttp();
        switch (exchange.behavior()) {
            case WAITING -> check(exchange, connection.exchange(request));
            case LEAVING_EARLY -> leave(request, request.length / 2);
            case LEAVING_LATE -> leave(request, request.length);
        }
    }

    private void leave(byte[] request, int length) throws IOException {
        connection.send(request, 0, length);
        connection.abandon();
        connection = server.http();
    }

    private static void check(Traffic.Exchange exchange, RawHttpResponse response) {
        switch (exchange.expected()) {
            case Traffic.Expected.Outputs(byte[][] outputs) -> checkOutputs(exchange, response, outputs);
            case Traffic.Expected.Refusal(var code, String text) -> {
                assertThat(response.error()).isEqualTo(text);
                assertThat(response.status())
                        .isEqualTo(InvalidRequest.http("", new byte[0], code, text)
                                .http()
                                .orElseThrow()
                                .status());
            }
            case Traffic.Expected.OutputsOrNotReady(Traffic.Expected.Outputs(byte[][] outputs)) -> {
                if (response.status() == 200) {
                    checkOutputs(exchange, response, outputs);
                } else {
                    assertThat(response.status()).isEqualTo(404);
                    assertThat(response.error())
                            .startsWith("Request for unknown model: '"
                                    + exchange.request().model() + "'");
                }
            }
        }
    }

    private static void checkOutputs(Traffic.Exchange exchange, RawHttpResponse response, byte[][] outputs) {
        assertThat(response.status()).as(response::text).isEqualTo(200);
        assertThat(response.id()).isEqualTo(exchange.request().id());
        List<byte[]> got = new ArrayList<>(response.binaryOutputs().values());
        assertThat(got).hasSize(outputs.length);
        for (int i = 0; i < outputs.length; i++) {
            assertThat(got.get(i)).isEqualTo(outputs[i]);
        }
    }

    @Override
    public void close() throws IOException {
        assertThat(connection.exchange(HttpRequests.get("/v2/health/live")).status())
                .isEqualTo(200);
        assertThat(connection.unread()).isZero();
        connection.close();
    }
}
