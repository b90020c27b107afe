package dev.nereid.debugging;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import org.junit.jupiter.api.Test;

final class ScaleTest {
    @Test
    void doublesNumbers() {
        try (LocalServer server = LocalServer.with(new Scale()).model("scaled").start()) {
            ModelRequest request = server.client().request("scaled").input("INPUT", Shape.of(1, 3), 1f, 2.5f, -3f);
            float[] outputs = server.send(request).one().requireOutput("OUTPUT").floats();
            assertArrayEquals(new float[] {2f, 5f, -6f}, outputs);
        }
    }

    @Test
    void needsItsInput() {
        try (LocalServer server = LocalServer.with(new Scale()).model("scaled").start()) {
            assertThrows(BackendException.class, server.client().request("scaled")::sendAndWait);
        }
    }
}
