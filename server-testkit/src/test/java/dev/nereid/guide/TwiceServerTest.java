package dev.nereid.guide;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import org.junit.jupiter.api.Test;

/** Twice in a server. */
final class TwiceServerTest {
    private static ReceivedResponses send(LocalServer server, float number) {
        return server.send(server.client().request("doubled").input("INPUT", Shape.of(1, 1), number));
    }

    @Test
    void doublesNumbersInBatches() {
        try (LocalServer server = LocalServer.with(new Twice())
                .model("doubled", "dynamic_batching { }")
                .start()) {
            ReceivedResponses first = send(server, 1f);
            ReceivedResponses second = send(server, 2.5f);

            assertArrayEquals(
                    new float[] {2}, first.one().requireOutput("OUTPUT").floats());
            assertArrayEquals(
                    new float[] {5}, second.one().requireOutput("OUTPUT").floats());
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
