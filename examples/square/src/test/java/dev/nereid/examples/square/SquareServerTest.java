package dev.nereid.examples.square;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import org.junit.jupiter.api.Test;

/** Tests the backend in a server: any number of responses to a request. */
final class SquareServerTest {
    private static final String CONFIG = """
            input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }
            output { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }
            model_transaction_policy { decoupled: true }
            """;

    @Test
    void sendsAsManyResponsesAsTheInputSays() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", CONFIG)
                .start()) {
            assertThat(server.inferAll("square", LocalRequest.request().input("IN", 3)))
                    .extracting(outputs -> outputs.ints("OUT")[0])
                    .containsExactly(3, 3, 3);
            assertThat(server.inferAll("square", LocalRequest.request().input("IN", 0)))
                    .isEmpty();
        }
    }
}
