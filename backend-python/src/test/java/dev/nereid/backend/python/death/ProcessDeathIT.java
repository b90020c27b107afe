package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests what clients and operators see when a process ends, and that everything goes on. */
@Timeout(120)
final class ProcessDeathIT {
    private static final String SIGNAL = "os.kill(os.getpid(), %d); time.sleep(60)";

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "os._exit(3) | exit code 3.",
                "os._exit(0) | exit code 0.",
                "os._exit(137) | signal 9 (SIGKILL, as when memory runs out).",
                "ctypes.string_at(0) | signal 11 (SIGSEGV).",
                "os.abort() | signal 6 (SIGABRT).",
                "os.kill(os.getpid(), 9); time.sleep(60) | signal 9 (SIGKILL, as when memory runs out).",
                "os.kill(os.getpid(), 7); time.sleep(60) | signal 7 (SIGBUS).",
                "signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15); time.sleep(60) | signal 15 (SIGTERM).",
                "os.kill(os.getpid(), 1); time.sleep(60) | signal 1 (SIGHUP).",
                "os.kill(os.getpid(), 34); time.sleep(60) | signal 34.",
                "threading.Thread(target=lambda: os._exit(5)).start(); time.sleep(60) | exit code 5.",
            })
    void anExecutionThatEndsItsProcessFailsWithTheCause(String code, String cause) {
        try (PythonServer server =
                PythonServer.in(directory).model("m").model("other").start()) {
            BackendException failure = server.failure("m", "print('last words', flush=True); " + code, 1);

            assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(failure).hasMessageStartingWith("Stub process 'm_0' is not healthy. The process ");
            assertThat(failure).hasMessageEndingWith(cause);
            assertThat(server.hasLogged("last words")).isTrue();
            PythonServer.await(() -> server.hasLogged(cause + " It is started again in 50 ms."));
            assertThat(server.hasLogged("Model 'm' version 1 is not ready: Stub process 'm_0' is not healthy."))
                    .isTrue();
            assertThat(server.ask("other", "", 4)).containsExactly(4);
            assertThat(server.server().server().isReady()).isTrue();
            assertThat(server.ask("m", "", 5)).as("waits for the first restart").containsExactly(5);
        }
    }

    @Test
    void readinessMetadataAndIndexTellTheReasonUntilTheRestart() {
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "2")
                .model("m")
                .model("other")
                .start()) {
            BackendException _ = server.failure("m", "os._exit(3)", 1);
            PythonServer.await(() -> !server.readiness("m").isReady());

            assertThat(server.readiness("m").reason()).contains("Stub process 'm_0' is not healthy.", "exit code 3");
            ModelStatus status = server.status("m");
            assertThat(status.reason()).contains("Stub process 'm_0' is not healthy.", "exit code 3");
            assertThat(server.server().server().isReady()).isTrue();
            assertThat(server.server().server().models().isReady(ModelRef.latest("other")))
                    .isTrue();
            assertThat(server.server()
                            .server()
                            .models()
                            .metadata(ModelRef.latest("m"))
                            .name())
                    .isEqualTo("m");
            long begin = System.nanoTime();
            assertThat(server.ask("m", "", 6)).containsExactly(6);
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(20));
            PythonServer.await(() -> server.readiness("m").isReady());
            assertThat(server.status("m").reason()).isEmpty();
        }
    }

    @Test
    void aProcessThatIsKilledWhileItIsIdleFailsNoRequest() {
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            long process = server.process("m");
            PythonServer.kill(process, "KILL");
            // A request that is sent before the server has noticed the end may fail.
            PythonServer.await(() -> server.hasLogged("It is started again in"));
            assertThat(server.ask("m", "", 3)).containsExactly(3);
        }
    }

    @Test
    void requestsThatWaitAreServedByTheNextProcess() {
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "500ms")
                .model("m")
                .start()) {
            ReceivedResponses killed = server.send("m", "time.sleep(0.3); os._exit(1)", 0);
            List<ReceivedResponses> waiting = LongStream.range(0, 20)
                    .mapToObj(i -> server.send("m", "", i))
                    .toList();

            assertThat(killed.error()).hasMessageContaining("exit code 1");
            for (int i = 0; i < waiting.size(); i++) {
                assertThat(waiting.get(i).one().requireOutput("OUT").longs()).containsExactly(i);
            }
        }
    }

    @Test
    void requestsThatWaitEndByTheirTimeouts() {
        String queue = """
                max_batch_size: 2
                dynamic_batching {
                  default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 300000 }
                }
                """;
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "60")
                .model("m", queue)
                .start()) {
            assertThat(server.server().send(row(server, "os._exit(1)")).error()).hasMessageContaining("exit code 1");
            long begin = System.nanoTime();
            ReceivedResponses first = server.server().send(row(server, ""));
            ReceivedResponses second = server.server().send(row(server, "").timeoutMicros(100_000));

            assertThat(second.error()).hasMessage("Request timeout expired");
            assertThat(first.error()).hasMessage("Request timeout expired");
            assertThat(first.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(30));
        }
    }

    private static ModelRequest row(PythonServer server, String code) {
        return server.server()
                .client()
                .request("m")
                .input("CODE", Shape.of(1, 1), code)
                .input("IN", Shape.of(1, 1), 1L);
    }

    @Test
    void aCrashLoopFailsRequestsAtOnceAndTheModelComesBack() {
        Path gate = directory.resolve("gate");
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "200ms")
                .model("m", "", "if os.path.exists('" + gate + "'): raise ValueError('gate is closed')", "")
                .start()) {
            server.ask("m", "open('" + gate + "', 'w').close()", 1);
            BackendException _ = server.failure("m", "os._exit(1)", 1);
            PythonServer.await(() -> server.readiness("m").reason().contains("gate is closed"));

            long begin = System.nanoTime();
            for (int i = 0; i < 20; i++) {
                BackendException failure = server.failure("m", "", 1);
                assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                assertThat(failure).hasMessageContaining("gate is closed");
            }
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(5));
            assertThat(server.server().server().isReady()).isTrue();
            assertThat(gate.toFile().delete()).isTrue();
            server.awaitService("m");
            PythonServer.await(() -> server.readiness("m").isReady());
        }
    }

    @Test
    void anotherInstanceTakesOver() {
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "30")
                .model("m", "instance_group { count: 2 kind: KIND_CPU }")
                .start()) {
            BackendException failure = server.failure("m", "os._exit(1)", 1);

            assertThat(failure).hasMessageContaining("exit code 1");
            for (int i = 0; i < 50; i++) {
                assertThat(server.ask("m", "", i)).containsExactly(i);
            }
            assertThat(server.readiness("m").isReady()).isTrue();
        }
    }

    @Test
    void anotherInstanceTakesOverWhileTheEndOfAnIdleOneIsAwaited() {
        // A child in another session keeps the output open, for which the end of the process is delayed.
        String code = "subprocess.Popen(['sleep', '20'], start_new_session=True); value = np.array([os.getpid()])";
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "60")
                .model("m", "instance_group { count: 2 kind: KIND_CPU }")
                .start()) {
            long process = server.ask("m", code, 1)[0];
            long begin = System.nanoTime();
            PythonServer.kill(process, "KILL");
            PythonServer.await(() -> !PythonServer.isAlive(process));
            int failed = 0;
            for (int i = 0; i < 200 || !server.hasLogged("It is started again in"); i++) {
                try {
                    assertThat(server.ask("m", "", i)).containsExactly(i);
                } catch (BackendException e) {
                    assertThat(e).hasMessageStartingWith("Stub process 'm_");
                    failed++;
                }
            }
            assertThat(failed)
                    .as("those sent before the server has noticed the end")
                    .isLessThan(2);
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(30));
        }
    }

    @Test
    void aModelIsReloadedAndUnloadedWhileItsProcessIsRestarted() throws Exception {
        try (PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "1")
                .options(options -> options.controlMode = ModelControlMode.EXPLICIT)
                .model("m")
                .start()) {
            server.server().client().load("m").toCompletableFuture().get();
            for (int i = 0; i < 3; i++) {
                BackendException _ = server.failure("m", "os._exit(1)", 1);
                server.server().client().load("m").toCompletableFuture().get();
                server.awaitService("m");
            }
            BackendException _ = server.failure("m", "os._exit(1)", 1);
            server.server().client().unload("m").toCompletableFuture().get();
            assertThat(server.failure("m", "", 1).code()).isNotEqualTo(ErrorCode.INTERNAL);
        }
    }

    @Test
    void aServerIsClosedWhileAProcessIsRestarted() {
        PythonServer server = PythonServer.in(directory)
                .setting("restart-delay", "30")
                .model("m")
                .start();
        BackendException _ = server.failure("m", "os._exit(1)", 1);
        long begin = System.nanoTime();
        server.close();
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(15));
    }

    @Test
    void openStreamsFailWithTheCause() {
        String keep = """
                sender = request.get_response_sender()
                sender.send(pb.InferenceResponse([pb.Tensor("OUT", value)]))
                self.kept.append(sender)
                """;
        try (PythonServer server = PythonServer.in(directory)
                .model("m", "model_transaction_policy { decoupled: true }")
                .start()) {
            List<ReceivedResponses> open = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                open.add(server.send("m", keep, i));
            }
            open.forEach(one -> one.await(1));
            ReceivedResponses last = server.send("m", keep + "threading.Timer(0.3, lambda: os._exit(9)).start()\n", 99);
            for (ReceivedResponses one : open) {
                assertThat(one.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
                assertThat(one.error()).hasMessageContaining("exit code 9");
            }
            assertThat(last.error()).hasMessageContaining("exit code 9");
            ReceivedResponses next =
                    server.send("m", keep + "sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)", 1);
            assertThat(next.all()).isNotEmpty();
        }
    }

    @Test
    void outputsThatAreStillReadStayAsTheyAre() {
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            ReceivedResponses large = server.send("m", "value = np.arange(1 << 20, dtype=np.int64)", 1);
            dev.nereid.spi.ModelResponse response = large.one();
            BackendException _ = server.failure("m", "os._exit(1)", 1);
            server.awaitService("m");
            long[] values = response.requireOutput("OUT").longs();
            assertThat(values).hasSize(1 << 20);
            for (int i = 0; i < values.length; i++) {
                assertThat(values[i]).isEqualTo(i);
            }
        }
    }

    @Test
    void aCallThatIsOpenEndsWithItsProcess() {
        String call = """
                inputs = [pb.Tensor("CODE", np.array([b"time.sleep(0.5)"], dtype=object)), pb.Tensor("IN", value)]
                request = pb.InferenceRequest(model_name="callee", requested_output_names=["OUT"], inputs=inputs)
                threading.Timer(0.2, lambda: os._exit(4)).start()
                request.exec()
                """;
        try (PythonServer server =
                PythonServer.in(directory).model("m").model("callee").start()) {
            assertThat(server.failure("m", call, 3)).hasMessageContaining("exit code 4");
            assertThat(server.ask("callee", "", 8)).containsExactly(8);
            server.awaitService("m");
        }
    }

    @Test
    void memoryThatRunsOutFailsTheRequestOrTheProcess() {
        try (PythonServer server = PythonServer.in(directory)
                .model("m", "parameters { key: \"LIMIT_MEMORY\" value { string_value: \"2147483648\" } }")
                .start()) {
            BackendException failure = server.failure("m", "self.kept = [bytes(1 << 28) for _ in range(64)]", 1);

            assertThat(failure.getMessage()).containsAnyOf("MemoryError", "Stub process 'm_0' is not healthy.");
            server.awaitService("m");
        }
    }

    @Test
    void theRestartsAreCounted() {
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            BackendException _ = server.failure("m", SIGNAL.formatted(9), 1);
            server.awaitService("m");
            BackendException _ = server.failure("m", SIGNAL.formatted(9), 1);
            server.awaitService("m");
            assertThat(server.log().stream().filter(line -> line.contains("It is started again in")))
                    .hasSize(2);
        }
    }
}
