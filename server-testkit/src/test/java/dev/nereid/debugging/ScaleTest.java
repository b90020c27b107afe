package dev.nereid.debugging;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.nereid.api.InferenceException;
import dev.nereid.testkit.server.LocalOutputs;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import org.junit.jupiter.api.Test;

final class ScaleTest {
    @Test
    void doublesNumbers() {
        try (LocalServer server = LocalServer.with(new Scale()).model("scaled").start()) {
            LocalOutputs outputs = server.infer("scaled", LocalRequest.of("INPUT", 1f, 2.5f, -3f));

            assertArrayEquals(new float[] {2f, 5f, -6f}, outputs.floats("OUTPUT"));
        }
    }

    @Test
    void needsItsInput() {
        try (LocalServer server = LocalServer.with(new Scale()).model("scaled").start()) {
            assertThrows(InferenceException.class, () -> server.infer("scaled", LocalRequest.of("IN", 1f)));
        }
    }
}
