package dev.nereid.guide;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.nereid.api.InferenceException;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.PendingRequest;
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
            float[] doubled =
                    server.infer("doubled", LocalRequest.of("INPUT", 1, 2.5f)).floats("OUTPUT");

            assertArrayEquals(new float[] {2, 5}, doubled);
        }
    }

    @Test
    void isTwoStepsOfAnEnsemble() {
        try (LocalServer server = LocalServer.with(new Twice())
                .model("doubled", "dynamic_batching { }")
                .model("four_times", FOUR_TIMES)
                .start()) {
            PendingRequest first = server.send("four_times", LocalRequest.of("IN", 1));
            PendingRequest second = server.send("four_times", LocalRequest.of("IN", 2));

            assertArrayEquals(new float[] {4}, first.response().floats("OUT"));
            assertArrayEquals(new float[] {8}, second.response().floats("OUT"));
        }
    }

    @Test
    void isNotAskedForOtherTypes() {
        try (LocalServer server = LocalServer.with(new Twice()).model("doubled").start()) {
            LocalRequest request = LocalRequest.request().input("INPUT", 1); // an int
            InferenceException refused = assertThrows(InferenceException.class, () -> server.infer("doubled", request));

            assertEquals(
                    "[request id: <id_unknown>] inference input 'INPUT' data-type is 'INT32',"
                            + " but model 'doubled' expects 'FP32'",
                    refused.getMessage());
        }
    }
}
