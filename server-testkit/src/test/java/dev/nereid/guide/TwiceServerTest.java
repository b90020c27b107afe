package dev.nereid.guide;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import org.junit.jupiter.api.Test;

/** Twice in a server. */
final class TwiceServerTest {
    private static final String FOUR_TIMES = """
            platform: "ensemble"
            max_batch_size: 8
            input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
            ensemble_scheduling {
              step { model_name: "doubled" model_version: -1
                input_map { key: "INPUT" value: "IN" } output_map { key: "OUTPUT" value: "twice" } }
              step { model_name: "doubled" model_version: -1
                input_map { key: "INPUT" value: "twice" } output_map { key: "OUTPUT" value: "OUT" } }
            }
            """;

    @Test
    void doublesNumbers() {
        try (LocalServer server = LocalServer.with(new Twice()).model("doubled").start()) {
            ModelRequest request = server.client().request("doubled").input("INPUT", Shape.of(1, 2), 1, 2.5f);
            float[] doubled = server.send(request).one().requireOutput("OUTPUT").floats();

            assertArrayEquals(new float[] {2, 5}, doubled);
        }
    }

    @Test
    void isTwoStepsOfAnEnsemble() {
        try (LocalServer server = LocalServer.with(new Twice())
                .model("doubled", "dynamic_batching { }")
                .model("four_times", FOUR_TIMES)
                .start()) {
            ModelClient client = server.client();
            ReceivedResponses first = server.send(client.request("four_times").input("IN", Shape.of(1, 1), 1f));
            ReceivedResponses second = server.send(client.request("four_times").input("IN", Shape.of(1, 1), 2f));

            assertArrayEquals(new float[] {4}, first.one().requireOutput("OUT").floats());
            assertArrayEquals(new float[] {8}, second.one().requireOutput("OUT").floats());
        }
    }

    @Test
    void isNotAskedForOtherTypes() {
        try (LocalServer server = LocalServer.with(new Twice()).model("doubled").start()) {
            ModelRequest request = server.client().request("doubled").input("INPUT", Shape.of(1, 1), 1); // an int

            assertEquals(
                    "[request id: <id_unknown>] inference input 'INPUT' data-type is 'INT32',"
                            + " but model 'doubled' expects 'FP32'",
                    server.send(request).error().getMessage());
        }
    }
}
