package dev.nereid.backend.python.process;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests processes that keep to no protocol: programs of Python in place of the one of the backend. */
@Timeout(120)
@EnabledOnOs(OS.LINUX)
final class WorkerIT {
    private static final String BEGIN = """
            import os, signal, socket, struct, sys, time
            arguments = dict(one[2:].split("=", 1) for one in sys.argv[1:] if one.startswith("--"))

            def connect():
                connection = socket.socket(socket.AF_UNIX)
                connection.connect("\\0" + arguments["channel"][1:])
                return connection

            def text(value):
                return struct.pack("<I", len(value)) + value.encode()

            def frame(kind, flags, count, ident, body=b""):
                body += bytes(-len(body) % 8)
                return struct.pack("<IBBHQ", 16 + len(body), kind, flags, count, ident) + body

            def hello(token=arguments["token"], major=1, problem=""):
                body = struct.pack("<HHIQ", major, 0, 0, os.getpid())
                return frame(64, 0, 0, 0, body + text("3.x") + text("python") + text("/") + text("2") + text(problem) + text(token))

            """;

    private static final String CONNECT = "channel = connect()\nchannel.sendall(hello())\nlife = connect()\n";

    private static final int PR_SET_CHILD_SUBREAPER = 36;

    @TempDir
    private Path directory;

    private final Queue<String> lines = new ConcurrentLinkedQueue<>();
    private final Queue<Integer> frames = new ConcurrentLinkedQueue<>();
    private final List<WorkerEnd> ends = new ArrayList<>();

    private final String temporary = System.getProperty("java.io.tmpdir");

    /** The directory of sockets is that of this test alone. */
    @BeforeEach
    void setTemporaryDirectory() {
        System.setProperty("java.io.tmpdir", directory.toString());
    }

    @AfterEach
    void restoreTemporaryDirectory() {
        System.setProperty("java.io.tmpdir", temporary);
    }

    private Worker start(String program) throws IOException {
        Path main = directory.resolve("nereid_python").resolve("__main__.py");
        Files.createDirectories(main.getParent());
        Files.writeString(main, BEGIN + program);
        WorkerCommand command = new WorkerCommand(
                "i", List.of("python3"), Map.of("PATH", "/usr/local/bin:/usr/bin:/bin"), directory, "of the test");
        return Worker.start(
                command,
                new WorkerFrames() {
                    @Override
                    public void onFrame(FrameReader frame) {
                        frames.add(frame.type());
                    }

                    @Override
                    public boolean awaited() {
                        return false;
                    }

                    @Override
                    public void onLine(String line) {
                        lines.add(line);
                    }

                    @Override
                    public void onDisconnect() {}

                    @Override
                    public void onEnd(WorkerEnd end) {
                        ends.add(end);
                        throw new IllegalStateException(
                                "a bug of the test, which must not keep the end from the others");
                    }
                },
                ForkJoinPool.commonPool(),
                new RecordedLog());
    }

    private WorkerEnd end(Worker worker) throws InterruptedException, ExecutionException, TimeoutException {
        WorkerEnd end = worker.ended().get(60, TimeUnit.SECONDS);
        assertThat(ends).containsExactly(end);
        assertThat(worker.isAlive()).isFalse();
        try (Stream<Path> sockets = Files.list(directory)) {
            assertThat(sockets.filter(path -> path.getFileName().toString().startsWith("nereid-python-")))
                    .isEmpty();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        return end;
    }

    private static String failure(CompletableFuture<?> stage) throws InterruptedException, TimeoutException {
        try {
            stage.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            return String.valueOf(e.getCause().getMessage());
        }
        throw new AssertionError("it did not fail");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "print('no such thing'); sys.exit(5) | exit code 5. It printed at last: no such thing",
                "connect(); sys.exit(6) | exit code 6.",
                "os.kill(os.getpid(), 11) | signal 11 (SIGSEGV).",
                "connect().sendall(b'\\xff' * 100); time.sleep(600) | Its first message is wrong",
                "connect().sendall(bytes(100)); time.sleep(600) | Its first message is wrong",
                "connect().sendall(frame(67, 0, 0, 0)); time.sleep(600) | type of the first frame",
                "connect().sendall(hello(token='x')); time.sleep(600) | token: wrong",
                "connect().sendall(hello(major=2)); time.sleep(600) | version of the protocol: 2.0",
                "connect().sendall(hello(problem='no NumPy')); sys.exit(3) | no NumPy",
                "connect().sendall(hello()[:20]); sys.exit(7) | exit code 7.",
                "connect().sendall(hello()); sys.exit(8) | exit code 8.",
            })
    void aStartThatFailsSaysWhy(String program, String why) throws Exception {
        long begin = System.nanoTime();
        Worker worker = start(program);

        assertThat(failure(worker.hello())).contains(why);

        WorkerEnd _ = end(worker);
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(8));
    }

    @Test
    void aProcessThatDoesNotConnectIsKilled() throws Exception {
        Worker worker = start("time.sleep(600)");

        assertThat(failure(worker.hello()))
                .contains("It did not connect within 10 s. Python was chosen as of the test.");
        WorkerEnd _ = end(worker);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "time.sleep(600)",
                "connect(); time.sleep(600)",
                "connect().sendall(hello()); time.sleep(600)",
            })
    void aStartIsGivenUpAtAnyPoint(String program) throws Exception {
        for (int millis : new int[] {0, 5, 50, 400}) {
            ends.clear();
            Worker worker = start(program);
            CompletableFuture<Void> _ = CompletableFuture.runAsync(
                    () -> worker.kill("enough"), CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS));

            String _ = failure(worker.hello());
            assertThat(end(worker).describe()).contains(millis == 0 ? "" : "enough");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "channel.sendall(bytes(64)); time.sleep(600) | it sent a wrong message: length of a frame: 0",
                "channel.sendall(b'\\xff' * 64); time.sleep(600) | it sent a wrong message: length of a frame",
                "channel.sendall(frame(65, 0, 0, 99)); time.sleep(600) | it sent a wrong message: id of an answer: 99",
                "channel.sendall(frame(80, 0, 0, 1)[:12]); os._exit(3) | exit code 3.",
                "channel.sendall(struct.pack('<IBBHQ', (1 << 31) - 8, 80, 0, 0, 0) + bytes(100)); os._exit(4) | exit code 4.",
                "channel.close(); time.sleep(600) | it had closed its connection and did not end",
                "os.closerange(3, 100); time.sleep(600) | it had closed its connection and did not end",
                "channel.shutdown(socket.SHUT_WR); time.sleep(600) | it had closed its connection and did not end",
            })
    void aProcessThatBreaksTheProtocolEnds(String program, String why) throws Exception {
        Worker worker = start(CONNECT + "channel.recv(16); " + program);
        Hello _ = worker.hello().get(60, TimeUnit.SECONDS);
        CompletableFuture<FrameReader> answer =
                worker.ask(new FrameWriter().begin(FrameType.OPEN, 0, 0, 1).end(), worker.nextId());

        assertThat(end(worker).describe()).contains(why);
        assertThat(failure(answer)).contains("is not healthy");
        assertThat(failure(worker.ask(
                        new FrameWriter().begin(FrameType.OPEN, 0, 0, 1).end(), worker.nextId())))
                .contains("is not healthy");
    }

    /** A process that the model has forked keeps the sockets and the output open. */
    @Test
    void theEndIsSeenWhileAForkedProcessKeepsTheSocket() throws Exception {
        Worker worker = start(CONNECT + """
                os.setpgid(0, 0)
                if os.fork() == 0:
                    time.sleep(600)
                os._exit(5)
                """);
        long begin = System.nanoTime();

        assertThat(end(worker).describe()).contains("exit code 5");
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(10));
    }

    /** Returns the lines of processes that have ended, and wait for this process as their parent. */
    private static List<String> endedChildren() throws IOException {
        String ended = ") Z " + ProcessHandle.current().pid() + " ";
        List<String> found = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (Path process : processes) {
                try {
                    String stat = Files.readString(process.resolve("stat"));
                    if (stat.contains(ended)) {
                        found.add(stat);
                    }
                } catch (IOException e) {
                    // It is gone.
                }
            }
        }
        return found;
    }

    /** As in a container, where the server is the first process. */
    @Test
    @SuppressWarnings("restricted")
    void leavesNoEndedProcessesWhereItBecomesTheirParent() throws Throwable {
        MethodHandle control = Linker.nativeLinker()
                .downcallHandle(
                        Linker.nativeLinker().defaultLookup().findOrThrow("prctl"),
                        FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
        assertThat((int) control.invokeExact(PR_SET_CHILD_SUBREAPER, 1L)).isZero();
        try {
            Worker worker = start(CONNECT + """
                    os.setpgid(0, 0)
                    for _ in range(3):
                        if os.fork() == 0:
                            time.sleep(600)
                    print("forked", flush=True)
                    os._exit(5)
                    """);

            assertThat(end(worker).describe()).contains("exit code 5");
            assertThat(lines).contains("forked");
            long begin = System.nanoTime();
            while (!endedChildren().isEmpty()) {
                assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(30));
                Thread.onSpinWait();
            }
        } finally {
            int _ = (int) control.invokeExact(PR_SET_CHILD_SUBREAPER, 0L);
        }
    }

    @Test
    void aProcessThatDoesNotReadIsKilledWhenTheQueueIsFull() throws Exception {
        Worker worker = start(CONNECT + "time.sleep(600)");
        Hello _ = worker.hello().get(60, TimeUnit.SECONDS);
        FrameWriter frame = new FrameWriter()
                .begin(FrameType.COMPLETE, 0, 0, 1)
                .bytes(new byte[16 << 20])
                .end();

        for (int i = 0; i < 20; i++) {
            worker.send(frame);
        }

        assertThat(end(worker).describe()).contains("it did not read 256 MiB of messages");
    }

    /** Inputs come inside of frames where shared memory is used up. */
    @Test
    void aFrameThatIsLargerThanTheQueueArrives() throws Exception {
        Worker worker = start(CONNECT + """
                left = 300 << 20
                while left > 0:
                    left -= len(channel.recv(1 << 20))
                channel.sendall(frame(65, 0, 0, 1))
                time.sleep(600)
                """);
        Hello _ = worker.hello().get(60, TimeUnit.SECONDS);
        FrameWriter frame = new FrameWriter()
                .begin(FrameType.COMPLETE, 0, 0, 1)
                .bytes(new byte[(300 << 20) - 16])
                .end();

        assertThat(worker.ask(frame, worker.nextId()).get(60, TimeUnit.SECONDS).id())
                .isEqualTo(1);
        worker.kill("enough");
        WorkerEnd _ = end(worker);
    }

    @Test
    void aProcessThatSendsWithoutEndIsKilledAllTheSame() throws Exception {
        Worker worker = start(CONNECT + "block = frame(200, 0, 0, 0) * 1000\nwhile True: channel.sendall(block)");
        Hello _ = worker.hello().get(60, TimeUnit.SECONDS);
        while (frames.size() < 100_000) {
            Thread.onSpinWait();
        }
        worker.kill("enough");

        assertThat(end(worker).describe()).isEqualTo("The process was killed: enough.");
    }

    /** An execution waits for frames that never come, whichever thread receives them. */
    @Test
    void anExecutionEndsWithItsProcess() throws Exception {
        for (String program :
                new String[] {"os._exit(1)", "channel.close(); time.sleep(600)", "channel.sendall(bytes(64))"}) {
            ends.clear();
            Worker worker = start(CONNECT + "channel.recv(16)\n" + program);
            Hello _ = worker.hello().get(60, TimeUnit.SECONDS);
            worker.beginExecution();
            worker.send(new FrameWriter().begin(FrameType.EXECUTE, 0, 0, 1).end());
            worker.receiveUntil(() -> false);
            worker.endExecution();
            WorkerEnd _ = end(worker);
        }
    }

    @Test
    void theEndInOrderIsBounded() throws Exception {
        Worker worker = start(CONNECT + "time.sleep(600)");
        Hello _ = worker.hello().get(60, TimeUnit.SECONDS);

        WorkerEnd end = worker.finish(Duration.ofMillis(300)).get(60, TimeUnit.SECONDS);

        assertThat(end.describe())
                .isEqualTo("The process was killed: it had not ended 0 s after the call of finalize.");
    }

    /** A program that takes its time at its exit, when it has closed everything, is not cut short. */
    @Test
    void anExitMayTakeAsLongAsTheEndInOrder() throws Exception {
        Worker worker = start(CONNECT + "channel.recv(16); channel.close(); life.close(); time.sleep(3)");
        Hello _ = worker.hello().get(60, TimeUnit.SECONDS);

        assertThat(worker.finish(Duration.ofSeconds(30))
                        .get(60, TimeUnit.SECONDS)
                        .status())
                .isZero();
    }

    @Test
    void stacksArePrintedOnlyByAProcessThatHandlesTheSignal() throws Exception {
        Worker without = start(CONNECT + "channel.recv(16)");
        Hello _ = without.hello().get(60, TimeUnit.SECONDS);
        without.printStacks();
        assertThat(without.isAlive()).isTrue();
        without.send(new FrameWriter().begin(FrameType.OPEN, 0, 0, 1).end());
        assertThat(end(without).status()).isZero();

        ends.clear();
        Worker with = start("signal.signal(signal.SIGQUIT, lambda *a: print('stacks', flush=True))\n" + CONNECT
                + "time.sleep(600)");
        Hello _ = with.hello().get(60, TimeUnit.SECONDS);
        with.printStacks();
        while (!lines.contains("stacks")) {
            Thread.onSpinWait();
        }
        with.kill("");
        WorkerEnd _ = end(with);
    }

    @Test
    void manyStartsLeaveNothing() throws Exception {
        long before = descriptors();
        for (int i = 0; i < 20; i++) {
            ends.clear();
            Worker worker = start(CONNECT + "os._exit(1)");
            try {
                Hello _ = worker.hello().join();
            } catch (CompletionException e) {
                // It ended before it had connected for the second time.
            }
            WorkerEnd _ = end(worker);
        }
        assertThat(descriptors()).isLessThanOrEqualTo(before + 5);
    }

    private static long descriptors() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }
}
