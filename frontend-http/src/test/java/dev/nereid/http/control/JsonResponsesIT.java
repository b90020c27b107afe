package dev.nereid.http.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServer;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Control responses that a worker writes. */
@Timeout(60)
class JsonResponsesIT {
    @Test
    void anErrorOfTheJvmGetsAResponse() throws IOException {
        Vertx vertx = Vertx.vertx();
        try {
            HttpServer http = vertx.createHttpServer()
                    .requestHandler(
                            request -> JsonResponses.sendFromWorker(request, vertx.getOrCreateContext(), json -> {
                                throw new StackOverflowError("the text is too deep");
                            }))
                    .listen(0, "127.0.0.1")
                    .await();
            try (RawHttpConnection connection = new RawHttpConnection(http.actualPort())) {
                RawHttpConnection.Response response =
                        connection.request("GET", "/").receive();

                assertThat(response.status()).isEqualTo(500);
                assertThat(response.text()).isEqualTo("{\"error\":\"internal error\"}");
            }
        } finally {
            vertx.close().await();
        }
    }
}
