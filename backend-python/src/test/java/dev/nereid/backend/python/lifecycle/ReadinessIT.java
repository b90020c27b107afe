package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Models that say whether they are ready. */
class ReadinessIT {
    @TempDir
    Path directory;

    private static String checking(String head, String body) {
        return """
                import asyncio, time
                class TritonPythonModel:
                    def execute(self, requests):
                        return []
                    %s is_ready(self):
                        %s
                """.formatted(head, body);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            def | return True | ready
            def | return False | UNAVAILABLE Model 'm_0' is not ready (user-defined check failed).
            def | raise RuntimeError("no disk") | INTERNAL RuntimeError: no disk
            def | return 1 | is_ready() must return a boolean value
            def | return None | is_ready() must return a boolean value
            async def | await asyncio.sleep(0.01); return True | ready
            async def | await asyncio.sleep(0.01); return False | UNAVAILABLE Model 'm_0' is not ready (user-defined check failed).
            async def | raise RuntimeError("no disk") | INTERNAL RuntimeError: no disk
            async def | return "yes" | is_ready() must return a boolean value
            def | time.sleep(7); return True | UNAVAILABLE Timed out waiting for user-defined is_ready() response
            async def | await asyncio.sleep(7); return True | UNAVAILABLE Timed out waiting for user-defined is_ready() response
            """)
    void asks(String head, String body, String result) throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", checking(head, body)).start().load("m");

            assertThat(server.ready("m")).contains(result);
        }
    }

    @Test
    void oneCallServesAllThatWait() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", checking("def", "print('ASKED'); time.sleep(1); return True"))
                    .start()
                    .load("m");
            List<CompletableFuture<String>> asked = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                asked.add(CompletableFuture.supplyAsync(() -> server.ready("m"), Thread::startVirtualThread));
            }

            assertThat(asked).allMatch(answer -> PythonServer.await(answer).equals("ready"));
            assertThat(server.log().lines("ASKED").size()).isLessThan(8);
        }
    }

    @Test
    void aModelThatIsNotReadyServes() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", """
                    import triton_python_backend_utils as pb
                    class TritonPythonModel:
                        def execute(self, requests):
                            return [pb.InferenceResponse([pb.Tensor("OUT", r.inputs()[0].as_numpy() + 1)])
                                    for r in requests]
                        def is_ready(self):
                            return False
                    """).start().load("m");

            assertThat(server.ready("m")).startsWith("UNAVAILABLE");
            try (ModelResponse response = server.server()
                    .client()
                    .request("m")
                    .input("IN", Shape.of(1), 1f)
                    .sendAndWait()) {
                assertThat(response.requireOutput("OUT").floats()).containsExactly(2f);
            }
        }
    }
}
