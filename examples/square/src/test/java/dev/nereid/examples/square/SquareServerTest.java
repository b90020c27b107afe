package dev.nereid.examples.square;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import org.junit.jupiter.api.Test;

/** Tests the backend in a server: any number of responses to a request. */
final class SquareServerTest {
    private static final String CONFIG = """
            input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }
            output { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }
            model_transaction_policy { decoupled: true }
            """;

    private static ReceivedResponses send(LocalServer server, Shape shape, int... numbers) {
        return server.send(server.client().request("square").input("IN", shape, numbers));
    }

    private static int output(ModelResponse response) {
        return response.requireOutput("OUT").ints()[0];
    }

    @Test
    void sendsAsManyResponsesAsTheInputSays() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", CONFIG)
                .start()) {
            assertThat(send(server, Shape.of(1), 3).all())
                    .extracting(SquareServerTest::output)
                    .containsExactly(3, 3, 3);
            assertThat(send(server, Shape.of(1), 0).all()).isEmpty();
        }
    }

    @Test
    void aModelThatIsNotDecoupledSendsOneResponse() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", CONFIG.replace("decoupled: true", "decoupled: false"))
                .start()) {
            assertThat(output(send(server, Shape.of(1), 3).one())).isEqualTo(3);
            assertThat(send(server, Shape.of(1), 0).error().getMessage())
                    .startsWith("expected a single response, got 0");
        }
    }

    @Test
    void aModelMayHaveBatches() {
        try (LocalServer server = LocalServer.with(new SquareBackendProvider())
                .model("square", "max_batch_size: 4 dynamic_batching { } " + CONFIG)
                .start()) {
            assertThat(send(server, Shape.of(1, 1), 2).all())
                    .hasSize(2)
                    .allSatisfy(response ->
                            assertThat(response.requireOutput("OUT").shape()).isEqualTo(Shape.of(1, 1)));
            assertThat(send(server, Shape.of(2, 1), 2, 2).error().getMessage())
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
            ReceivedResponses six = send(server, Shape.of(1), 6);

            assertThat(six.all()).extracting(SquareServerTest::output).containsExactly(6, 6, 6);
            assertThat(six.failed())
                    .hasSize(2)
                    .allSatisfy(error -> assertThat(error.getMessage()).isEqualTo("simulated failure"));
            ReceivedResponses one = send(server, Shape.of(1), 1);
            assertThat(one.all()).isEmpty();
            assertThat(one.failed()).isEmpty();
        }
    }
}
