package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests models that do what no model should: the server and other models go on, and the model itself where it can. */
@Timeout(180)
final class HostileModelIT {
    @TempDir
    private Path directory;

    /** The request succeeds, and so do later ones in the same process. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "self.kept = [threading.Thread(target=time.sleep, args=(600,), daemon=True) for _ in range(2000)]\n"
                        + "for thread in self.kept: thread.start()",
                "child = os.fork()\nif child == 0: os._exit(0)\nos.waitpid(child, 0)",
                "child = os.fork()\nif child == 0:\n  time.sleep(600)\nself.kept.append(child)",
                "for number in (1, 2, 10, 12, 15, 23, 28):\n"
                        + "  signal.signal(number, lambda *a: None)\n  os.kill(os.getpid(), number)",
                "os.kill(os.getpid(), signal.SIGTERM); os.kill(os.getpid(), signal.SIGINT)",
                "os.closerange(0, 900)",
                "os.closerange(3, 256)",
                "os.chdir('/'); os.umask(0o777)",
                "sys.stdout.buffer.write(bytes(range(256)) * 1000); sys.stdout.flush()",
                "for i in range(200000): print('a line that floods the log', i)",
                "print('x' * (20 << 20))",
                "os.write(1, b'no end of line')",
                "assert sys.stdin.read() == ''",
                "sys.stdout.close(); sys.stderr.close()",
                "sys.stdout = sys.stderr = None",
                "for name in list(sys.modules):\n"
                        + "  if name not in ('sys', 'builtins', 'threading', 'time'): del sys.modules[name]",
                "time.sleep = threading.Thread.start = os.read = None",
                "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
                "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.nice(19)",
                "sys.setrecursionlimit(100000); sys.setswitchinterval(1)",
                "gc.disable(); gc.set_threshold(1, 1, 1)",
                "os.environ.clear()",
                "signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01) if signal.signal(14, lambda *a: None) is not 0 else 0",
                "threading.settrace(lambda *a: None); sys.settrace(lambda *a: None)",
                "warnings = __import__('warnings'); warnings.simplefilter('error')",
            })
    void survivesAndItsProcessToo(String code) {
        try (PythonServer server =
                PythonServer.in(directory).model("m").model("other").start()) {
            long process = server.process("m");

            assertThat(server.ask("m", code, 1)).containsExactly(1);

            for (int i = 0; i < 20; i++) {
                assertThat(server.ask("m", "", i)).containsExactly(i);
                assertThat(server.ask("other", "", i)).containsExactly(i);
            }
            assertThat(server.ask("m", "value = np.full(100000, 3)", 1)).hasSize(100_000);
            assertThat(server.process("m")).isEqualTo(process);
        }
    }

    /** The request fails as one of the model, and later ones in the same process succeed. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "sys.exit(3)",
                "raise KeyboardInterrupt()",
                "raise SystemExit('text')",
                "raise GeneratorExit()",
                "raise BaseException('base')",
                "def f(): f()\nf()",
                "raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()",
                "exit()",
            })
    void anExceptionOfAnyKindFailsTheRequestAlone(String code) {
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            long process = server.process("m");

            BackendException failure = server.failure("m", code, 1);

            assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(failure).hasMessageStartingWith("Failed to process the request(s) for model");
            assertThat(server.process("m")).isEqualTo(process);
        }
    }

    /** The process is lost, and its successor serves. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "os.closerange(3, 65536)\ntime.sleep(600)",
                "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
                "for f in range(3, 2000):\n  try: os.write(f, b'\\xff' * 4096)\n  except OSError: pass\ntime.sleep(600)",
                "for f in range(3, 2000):\n  try: os.write(f, b'\\xf8\\xff\\xff\\x7f' + bytes(4096))\n  except OSError: pass\nos._exit(1)",
            })
    void aProcessThatIsBrokenIsReplaced(String code) {
        try (PythonServer server =
                PythonServer.in(directory).model("m").model("other").start()) {
            long process = server.process("m");
            long begin = System.nanoTime();

            BackendException failure = server.failure("m", code, 1);

            assertThat(failure.code()).as("%s", failure).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(15));
            assertThat(server.ask("other", "", 1)).containsExactly(1);
            server.awaitService("m");
            PythonServer.await(() -> !PythonServer.isAlive(process));
        }
    }

    /** The processes that a model has started end with it: forks, and programs that do not have its sockets. */
    @Test
    void whatAProcessHasStartedEndsWithIt() {
        String start = """
                child = os.fork()
                if child == 0:
                    time.sleep(600)
                program = subprocess.Popen(["sleep", "600"])
                value = np.array([child, program.pid, os.getpid()])
                """;
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            for (String end : new String[] {"KILL", "SEGV"}) {
                server.awaitService("m");
                long[] processes = server.ask("m", start, 1);

                PythonServer.kill(processes[2], end);

                for (long process : processes) {
                    PythonServer.await(() -> !PythonServer.isAlive(process));
                }
            }
            server.awaitService("m");
            long[] processes = server.ask("m", start, 1);
            server.server().server().close();
            for (long process : processes) {
                PythonServer.await(() -> !PythonServer.isAlive(process));
            }
        }
    }
}
