package dev.nereid.guide;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.nio.file.Path;
import java.util.List;
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

            assertEquals(2, first.one().requireOutput("OUTPUT").floats()[0]);
            assertEquals(5, second.one().requireOutput("OUTPUT").floats()[0]);
        }
    }

    @Test
    void doublesNumbersWithoutAServer() {
        ModelSettings settings = ModelSettings.builder("doubled", 1).build();
        LeakCheckingMemory memory = new LeakCheckingMemory();
        FakeRequest request = new FakeRequest(1, List.of("OUTPUT"))
                .with("INPUT", Tensor.ofFloats(Shape.of(1, 1), 2.5f))
                .withResponse(memory);
        try (memory;
                FakeBatch batch = new FakeBatch(settings, memory, request)) { // frees the outputs
            new Twice().apply(batch.requests().getFirst(), new FakeModelContext(settings, Path.of("doubled")));
            assertEquals(5, request.outputs().get("OUTPUT").floats()[0]);
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
