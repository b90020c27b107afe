package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.testkit.server.ReceivedResponses;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests executions and ends of processes that take too long. */
@Timeout(120)
final class HangIT {
    private static final String LIMIT =
            "parameters { key: \"EXECUTION_TIMEOUT_SECONDS\" value { string_value: \"0.5\" } }";

    /** Native code that holds the interpreter lock: no thread of Python runs meanwhile. */
    private static final String NATIVE = "while True: ctypes.PyDLL(None).sleep(600)";

    @TempDir
    private Path directory;

    @Test
    void anExecutionBeyondItsLimitEndsWithItsProcessAndItsStack() {
        try (PythonServer server = PythonServer.in(directory).model("m", LIMIT).start()) {
            for (String code : new String[] {"time.sleep(600)", NATIVE, "while True: pass"}) {
                server.awaitService("m");
                BackendException failure = server.failure("m", code, 1);

                assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                assertThat(failure)
                        .hasMessage(
                                "Stub process 'm_0' is not healthy. The process was killed: the execution took longer"
                                        + " than 0.500 s (EXECUTION_TIMEOUT_SECONDS).");
            }
            assertThat(server.hasLogged("in execute")).as("the stack").isTrue();
            server.awaitService("m");
            assertThat(server.ask("m", "time.sleep(0.2)", 3)).containsExactly(3);
        }
    }

    @Test
    void aStoppedProcessEndsAtTheLimit() {
        try (PythonServer server = PythonServer.in(directory).model("m", LIMIT).start()) {
            BackendException failure = server.failure("m", "os.kill(os.getpid(), signal.SIGSTOP)", 1);

            assertThat(failure).hasMessageContaining("EXECUTION_TIMEOUT_SECONDS");
            server.awaitService("m");
        }
    }

    @Test
    void theWatchdogLogsTheStackOfPython() {
        Path gate = directory.resolve("gate");
        Consumer<ServerOptions.Builder> watch = options -> {
            options.executionLimit = Duration.ofMillis(300);
            options.loadLimit = Duration.ofHours(1);
        };
        try (PythonServer server =
                PythonServer.in(directory).options(watch).model("m").start()) {
            ReceivedResponses slow = server.send(
                    "m",
                    "def named_function():\n  while not os.path.exists('" + gate
                            + "'): time.sleep(0.01)\nnamed_function()",
                    4);
            PythonServer.await(() -> server.hasLogged("in named_function"));

            assertThat(server.server().server().models().isReady(ModelRef.latest("m")))
                    .isFalse();
            Files.createFile(gate);
            assertThat(slow.one().requireOutput("OUT").longs()).containsExactly(4);
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    /** A model that handles the signal in its own way, or not at all, is not ended by it. */
    @Test
    void aModelWithoutTheHandlerOfStacksSurvivesTheWatchdog() {
        Path gate = directory.resolve("gate");
        Consumer<ServerOptions.Builder> watch = options -> {
            options.executionLimit = Duration.ofMillis(300);
            options.loadLimit = Duration.ofHours(1);
        };
        try (PythonServer server =
                PythonServer.in(directory).options(watch).model("m").start()) {
            ReceivedResponses slow = server.send(
                    "m",
                    "import faulthandler\nfaulthandler.unregister(signal.SIGQUIT)\n"
                            + "signal.signal(signal.SIGQUIT, signal.SIG_DFL)\n"
                            + "while not os.path.exists('" + gate + "'): time.sleep(0.01)",
                    4);
            PythonServer.await(() -> server.hasLogged("execution takes longer than its limit"));
            Files.createFile(gate);
            assertThat(slow.one().requireOutput("OUT").longs()).containsExactly(4);
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    @Test
    void finalizeIsBounded() {
        PythonServer server = PythonServer.in(directory)
                .setting("stub-timeout-seconds", "1")
                .model("m", "", "", "time.sleep(600)")
                .start();
        long process = server.process("m");
        long begin = System.nanoTime();

        server.close();

        assertThat(Duration.ofNanos(System.nanoTime() - begin))
                .isBetween(Duration.ofMillis(900), Duration.ofSeconds(10));
        assertThat(PythonServer.isAlive(process)).isFalse();
    }

    @Test
    void theEndOfAnExitIsBoundedToo() {
        PythonServer server = PythonServer.in(directory)
                .setting("stub-timeout-seconds", "1")
                .model("m", "", "threading.Thread(target=lambda: time.sleep(600)).start()", "")
                .start();
        long process = server.process("m");

        server.close();

        assertThat(PythonServer.isAlive(process)).isFalse();
    }

    @Test
    void aModelSeesThatItsRequestIsCancelled() {
        Path started = directory.resolve("started");
        Path seen = directory.resolve("seen");
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            ModelRequest request = server.request(
                    "m",
                    "open('" + started + "', 'w').close()\nwhile not request.is_cancelled(): time.sleep(0.005)\n"
                            + "open('" + seen + "', 'w').close()",
                    1);
            ReceivedResponses responses = server.server().send(request);
            PythonServer.await(() -> Files.exists(started));
            request.cancel();
            assertThat(responses.error().code()).isEqualTo(ErrorCode.CANCELLED);
            PythonServer.await(() -> Files.exists(seen));
            assertThat(server.ask("m", "", 2)).containsExactly(2);
        }
    }
}
