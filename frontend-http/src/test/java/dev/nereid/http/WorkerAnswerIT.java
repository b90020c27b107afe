package dev.nereid.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServer;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Responses that a worker writes. */
@Timeout(60)
class WorkerAnswerIT {
    @Test
    void anErrorOfTheJvmIsAnswered() throws IOException {
        Vertx vertx = Vertx.vertx();
        try {
            HttpServer http = vertx.createHttpServer()
                    .requestHandler(request -> WorkerAnswer.send(request.response(), () -> {
                        throw new StackOverflowError("the text is too deep");
                    }))
                    .listen(0, "127.0.0.1")
                    .await();
            try (HttpConnection connection = new HttpConnection(http.actualPort())) {
                HttpConnection.Answer answer = connection.request("GET", "/").receive();

                assertThat(answer.status()).isEqualTo(500);
                assertThat(answer.text()).isEqualTo("{\"error\":\"internal error\"}");
            }
        } finally {
            vertx.close().await();
        }
    }
}
