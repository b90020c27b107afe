package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Ends of models, and changes of the number of their instances. */
class UnloadIT {
    @TempDir
    Path directory;

    private static String finalizing(String body) {
        return """
                import os, sys, threading, time, asyncio
                class TritonPythonModel:
                    def initialize(self, args):
                        self.name = args["model_instance_name"]
                        print("BEGIN", self.name, os.getpid())
                    def execute(self, requests):
                        return []
                    def finalize(self):
                """ + body.indent(8);
    }

    @Test
    void anUnloadFinalizesAndEndsTheProcess() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", finalizing("print('FINALIZED', self.name); sys.stdout.write('without a line feed')"))
                    .start()
                    .load("m");
            server.unload("m");

            server.log().await("FINALIZED m_0");
            server.log().await("without a line feed");
            awaitProcesses(0);
        }
    }

    @Test
    void anErrorInFinalizeIsLoggedAndIgnored() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", finalizing("raise RuntimeError('not to be finalized')"))
                    .start()
                    .load("m");
            server.unload("m");

            assertThat(server.log().await("RuntimeError: not to be finalized")).startsWith("INFO ");
            awaitProcesses(0);
            server.load("m");
        }
    }

    @Test
    void finalizeIsBounded() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("stub-timeout-seconds", "2")
                    .model("m", finalizing("print('SLEEPS'); time.sleep(1000)"))
                    .model("exits", finalizing("os._exit(3)"))
                    .model("thread", finalizing("threading.Thread(target=time.sleep, args=(1000,)).start()"))
                    .start()
                    .load("m", "exits", "thread");

            long begin = System.nanoTime();
            server.unload("m");
            server.unload("exits");
            server.unload("thread");
            awaitProcesses(0);
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(30));
            server.log().await("SLEEPS");
            server.log().await("exits_0 was not finalized in order. The process ended with exit code 3.");
            server.log().await("had not ended 2 s after the call of finalize");
        }
    }

    @Test
    void aModelThatIsNotInitializedIsNotFinalized() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", finalizing("print('FINALIZED')").replace("print(\"BEGIN\"", "raise ValueError(\"BEGIN\""))
                    .model(
                            "two",
                            "instance_group [{ count: 2 kind: KIND_CPU }]",
                            finalizing("print('FINALIZED', self.name)").replace("print(\"BEGIN\"", """
                                    if self.name == "two_0_1":
                                                time.sleep(0.5)
                                                raise ValueError("not the second")
                                            print("BEGIN\""""))
                    .start();
            assertThat(server.failureText("m")).contains("ValueError");
            assertThat(server.failureText("two")).contains("not the second");

            awaitProcesses(0);
            server.log().await("FINALIZED two_0_0");
            assertThat(server.log().lines("FINALIZED")).hasSize(1);
        }
    }

    @Test
    void theNumberOfInstancesChanges() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            String code = finalizing("print('FINALIZED', self.name)");
            server.model("m", "instance_group [{ count: 1 kind: KIND_CPU }]", code)
                    .start()
                    .load("m");
            String first = server.log().awaitAfter("BEGIN m_0_0 ");

            server.model("m", "instance_group [{ count: 3 kind: KIND_CPU }]", code);
            server.server().server().updateInstances("m");
            assertThat(PythonServer.processes()).hasSize(3).contains(Long.parseLong(first));
            assertThat(server.log().lines("FINALIZED")).isEmpty();
            server.log().await("BEGIN m_0_1 ");
            server.log().await("BEGIN m_0_2 ");

            server.model("m", "instance_group [{ count: 2 kind: KIND_CPU }]", code);
            server.server().server().updateInstances("m");
            awaitProcesses(2);
            assertThat(server.log().lines("FINALIZED")).hasSize(1);
            assertThat(server.log().lines("BEGIN ")).hasSize(3);
            assertThat(server.ready("m")).isEqualTo("ready");
        }
    }

    @Test
    void aLoadWithOtherGroupsKeepsTheProcesses() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            String code = finalizing("print('FINALIZED', self.name)");
            server.model("m", "instance_group [{ count: 1 kind: KIND_CPU }]", code)
                    .start()
                    .load("m");
            String first = server.log().awaitAfter("BEGIN m_0_0 ");
            server.file("m/config.pbtxt", "backend: \"python\" instance_group [{ count: 2 kind: KIND_CPU }]");

            PythonServer.await(server.server()
                    .server()
                    .control()
                    .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                    .toCompletableFuture());

            assertThat(PythonServer.processes()).hasSize(2).contains(Long.parseLong(first));
            assertThat(server.log().lines("FINALIZED")).isEmpty();
        }
    }

    @Test
    void theProcessesCountAsMemoryOfTheModel() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model(
                            "m",
                            "",
                            finalizing("pass")
                                    .replace("print(\"BEGIN\"", "self.data = b'x' * 200_000_000; print(\"BEGIN\""))
                    .start()
                    .load("m");

            var statistics = server.server()
                    .server()
                    .models()
                    .statistics(ModelRef.latest("m"))
                    .getFirst();
            long bytes = statistics.memory().stream()
                    .mapToLong(use -> use.byteSize())
                    .sum();
            assertThat(bytes).isBetween(200_000_000L, 600_000_000L);
        }
    }

    private static void awaitProcesses(int count) throws Exception {
        long begin = System.nanoTime();
        List<Long> running = PythonServer.processes();
        while (running.size() != count) {
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(60));
            for (long process : running) {
                ProcessHandle.of(process).ifPresent(handle -> {
                    try {
                        handle.onExit().get(100, TimeUnit.MILLISECONDS);
                    } catch (Exception e) {
                        // It goes on; the limit above is the one that counts.
                    }
                });
            }
            running = PythonServer.processes();
        }
    }
}
