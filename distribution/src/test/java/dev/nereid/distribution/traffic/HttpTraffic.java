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

    private static void check(Traffic.Exchange exchange, RawHttpResponse answer) {
        switch (exchange.expected()) {
            case Traffic.Expected.Outputs(byte[][] outputs) -> checkOutputs(exchange, answer, outputs);
            case Traffic.Expected.Refusal(var code, String text) -> {
                assertThat(answer.error()).isEqualTo(text);
                assertThat(answer.status())
                        .isEqualTo(InvalidRequest.http("", new byte[0], code, text)
                                .http()
                                .orElseThrow()
                                .status());
            }
            case Traffic.Expected.OutputsOrNotReady(Traffic.Expected.Outputs(byte[][] outputs)) -> {
                if (answer.status() == 200) {
                    checkOutputs(exchange, answer, outputs);
                } else {
                    assertThat(answer.status()).isEqualTo(404);
                    assertThat(answer.error())
                            .startsWith("Request for unknown model: '"
                                    + exchange.request().model() + "'");
                }
            }
        }
    }

    private static void checkOutputs(Traffic.Exchange exchange, RawHttpResponse answer, byte[][] outputs) {
        assertThat(answer.status()).as(answer::text).isEqualTo(200);
        assertThat(answer.id()).isEqualTo(exchange.request().id());
        List<byte[]> got = new ArrayList<>(answer.binaryOutputs().values());
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
