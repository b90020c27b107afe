package dev.nereid.examples.square;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.PendingRequest;
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

    @Test
    void aModelThatIsNotDecoupledSendsOneResponse() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", CONFIG.replace("decoupled: true", "decoupled: false"))
                .start()) {
            assertThat(server.infer("square", LocalRequest.request().input("IN", 3))
                            .ints("OUT"))
                    .containsExactly(3);
            assertThat(server.send("square", LocalRequest.request().input("IN", 0))
                            .error()
                            .publicMessage())
                    .startsWith("expected a single response, got 0");
        }
    }

    @Test
    void aModelMayHaveBatches() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", "max_batch_size: 4 dynamic_batching { } " + CONFIG)
                .start()) {
            assertThat(server.inferAll("square", LocalRequest.request().input("IN", 2)))
                    .hasSize(2)
                    .allSatisfy(outputs -> assertThat(outputs.shape("OUT")).isEqualTo(Shape.of(1, 1)));
            assertThat(server.send("square", LocalRequest.request().input("IN", Shape.of(2, 1), 2, 2))
                            .error()
                            .publicMessage())
                    .startsWith("unexpected shape for IN input");
        }
    }

    @Test
    void simulatesFailuresAndResponsesThatAreLeftOut() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", CONFIG + """
                        parameters [ { key: "CUSTOM_FAIL_COUNT" value: { string_value: "2" } },
                                     { key: "CUSTOM_EMPTY_COUNT" value: { string_value: "1" } },
                                     { key: "CUSTOM_INFER_DELAY_NS" value: { string_value: "2000" } },
                                     { key: "CUSTOM_OUTPUT_DELAY_NS" value: { string_value: "1000" } } ]
                        """)
                .start()) {
            PendingRequest six = server.send("square", LocalRequest.request().input("IN", 6));

            assertThat(six.responses())
                    .extracting(outputs -> outputs.ints("OUT")[0])
                    .containsExactly(6, 6, 6);
            assertThat(six.failedResponses())
                    .hasSize(2)
                    .allSatisfy(error -> assertThat(error.publicMessage()).isEqualTo("simulated failure"));
            PendingRequest one = server.send("square", LocalRequest.request().input("IN", 1));
            assertThat(one.responses()).isEmpty();
            assertThat(one.failedResponses()).isEmpty();
        }
    }
}
