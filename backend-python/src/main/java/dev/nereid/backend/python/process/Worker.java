package dev.nereid.backend.python.process;

import static java.lang.System.Logger.Level.DEBUG;
import static java.lang.System.Logger.Level.WARNING;
import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.posix.ProcessCalls;
import dev.nereid.backend.python.posix.SocketCalls;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The process of one instance, from its start to its end. A separate thread starts it, receives its frames while no
 * execution does, and waits for its end. Safe for use by any thread.
 *
 * <p>A process that dies is not started again: its successor is another object.
 */
public final class Worker implements FrameSink {
    private static final int CONNECT_SLICE_MILLIS = 50;
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(10);
    /** How long a process may live that has closed its connection, which it never does before its exit. */
    private static final Duration END_LIMIT = Duration.ofSeconds(2);

    private static final Duration OUTPUT_LIMIT = Duration.ofSeconds(1);
    private static final long REAP_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final int KIB_SHIFT = 10;
    private static final int NONE = -1;
    private static final int HEXADECIMAL = 16;

    private final WorkerCommand command;
    private final WorkerFrames frames;
    private final Executor executor;
    private final System.Logger logger;
    private final ReadTurns turns;
    private final CompletableFuture<Hello> hello = new CompletableFuture<>();
    private final CompletableFuture<WorkerEnd> ended = new CompletableFuture<>();
    private final Map<Long, CompletableFuture<FrameReader>> answers = new ConcurrentHashMap<>();
    private final AtomicLong ids = new AtomicLong();
    private final ReentrantLock ending = new ReentrantLock();
    private final Consumer<FrameReader> dispatch = this::dispatch;
    private final BooleanSupplier receive = this::receive;
    private final BooleanSupplier receiveShortly = this::receiveShortly;

    @GuardedBy("ending")
    private @Nullable String reason;

    private volatile boolean killed;

    /** {@code true} once the process has been asked to end. */
    private volatile boolean finishing;

    /** Socket: when it is closed, the kernel kills the process and its forks. Confined to the thread of the process. */
    private int life = NONE;

    private volatile @Nullable Process process;
    private volatile @Nullable Channel channel;
    private volatile @Nullable OutputReader output;

    private Worker(WorkerCommand command, WorkerFrames frames, Executor executor, System.Logger logger) {
        this.command = command;
        this.frames = frames;
        this.executor = executor;
        this.logger = logger;
        this.turns = new ReadTurns(() -> !answers.isEmpty() || frames.awaited());
    }

    /**
     * Starts a process, to be ended by {@link #kill} or {@link #finish}. Returns at once.
     *
     * @param executor runs a task while the process does not read frames
     */
    public static Worker start(WorkerCommand command, WorkerFrames frames, Executor executor, System.Logger logger) {
        Worker worker = new Worker(command, frames, executor, logger);
        Thread.ofPlatform().daemon().name("python " + command.instance()).start(worker::run);
        return worker;
    }

    /**
     * Returns what the process says of itself when it has connected. It is completed on the thread of the process, or
     * exceptionally with a {@link BackendException} that says why it did not start.
     */
    public CompletableFuture<Hello> hello() {
        return hello;
    }

    /** Returns the end of the process; completed on its thread when it has ended, never exceptionally. */
    public CompletableFuture<WorkerEnd> ended() {
        return ended;
    }

    /** Returns whether the process can be used: it has connected, is still connected, and was not killed. */
    public boolean isAlive() {
        return hello.isDone() && !hello.isCompletedExceptionally() && !turns.isEnded() && !killed;
    }

    /** Returns the last lines that the process printed, for an error. */
    public List<String> lastLines() {
        OutputReader reader = output;
        return reader == null ? List.of() : reader.lastLines();
    }

    @Override
    public void send(FrameWriter frame) {
        Channel open = channel;
        if (open != null) {
            open.send(frame);
        }
    }

    /** Returns a number for a frame that is answered. */
    public long nextId() {
        return ids.incrementAndGet();
    }

    /**
     * Sends a frame, with an id of {@link #nextId}, that DONE or COMPLETED answers.
     *
     * @return the frame of the answer, on the thread that received it; exceptionally with a {@link BackendException} if
     *     the process ends before
     */
    public CompletableFuture<FrameReader> ask(FrameWriter frame, long id) {
        CompletableFuture<FrameReader> answer = new CompletableFuture<>();
        answers.put(id, answer);
        if (ended.isDone()) {
            failAnswers(ended.join());
        } else {
            send(frame);
            turns.want();
        }
        return answer;
    }

    /** Says that a frame is awaited now that belongs to no execution. */
    public void want() {
        turns.want();
    }

    /** Wakes the thread in {@link #receiveUntil}. */
    public void wake() {
        turns.wake();
    }

    /** Says that the current thread executes: called before EXECUTE is sent. */
    public void beginExecution() {
        turns.begin();
    }

    /** Says that the current thread executes no more. */
    public void endExecution() {
        turns.end();
    }

    /**
     * Receives frames, or waits while another thread receives them, until something has happened, the process has ended, or
     * some milliseconds have passed. For the thread of an execution, one at a time, after {@link #beginExecution}.
     *
     * @param done whether it has happened; the thread that makes it happen calls {@link #wake}
     */
    public void receiveUntil(BooleanSupplier done) {
        turns.receiveUntil(done, receiveShortly, Channel.PATIENCE.toNanos());
    }

    /** Returns the memory that the process alone has in use, in bytes; 0 if that is not known. */
    public long residentBytes() {
        Process running = process;
        if (running == null || !running.isAlive()) {
            return 0;
        }
        return status(running.pid(), "RssAnon:")
                .map(line -> Long.parseLong(line.replaceAll("\\D", "")) << KIB_SHIFT)
                .orElse(0L);
    }

    /** Asks the process for the stacks of its threads, which it prints. */
    public void printStacks() {
        Process running = process;
        ending.lock();
        try {
            // A number is not used again before its process has been waited for, after which it is not alive.
            if (running != null && running.isAlive() && catches(running.pid(), ProcessCalls.SIGQUIT)) {
                ProcessCalls.kill(running.pid(), ProcessCalls.SIGQUIT);
            }
        } finally {
            ending.unlock();
        }
    }

    /** Returns whether a process handles a signal, which would end it otherwise: the model may have changed that. */
    private static boolean catches(long process, int signal) {
        return status(process, "SigCgt:")
                        .map(mask -> Long.parseUnsignedLong(mask, HEXADECIMAL) >>> (signal - 1) & 1)
                        .orElse(0L)
                == 1;
    }

    /** Returns a line of what the kernel says of a process; empty if it has just ended. */
    private static Optional<String> status(long process, String name) {
        try (Stream<String> lines = Files.lines(Path.of("/proc", Long.toString(process), "status"))) {
            return lines.filter(line -> line.startsWith(name))
                    .map(line -> line.substring(name.length()).strip())
                    .findFirst();
        } catch (IOException | UncheckedIOException e) {
            return Optional.empty();
        }
    }

    /** Kills the process, for a reason in the error of its requests; empty for none. Later calls do nothing. */
    public void kill(String why) {
        ending.lock();
        try {
            if (reason == null) {
                reason = why;
            }
            killed = true;
            Process running = process;
            if (running != null) {
                running.destroyForcibly();
            }
        } finally {
            ending.unlock();
        }
    }

    /** Has the process call {@code finalize} and exit, or kills it after the limit; completed when it has ended. */
    public CompletableFuture<WorkerEnd> finish(Duration limit) {
        if (!isAlive()) {
            kill("");
            return ended;
        }
        finishing = true;
        long id = nextId();
        CompletableFuture<FrameReader> _ =
                ask(new FrameWriter().begin(FrameType.FINALIZE, 0, 0, id).end(), id);
        CompletableFuture<WorkerEnd> _ = ended.copy()
                .orTimeout(limit.toMillis(), TimeUnit.MILLISECONDS)
                .whenComplete((_, failure) -> {
                    if (failure instanceof TimeoutException) {
                        kill("it had not ended " + limit.toSeconds() + " s after the call of finalize");
                    }
                });
        return ended;
    }

    private void run() {
        try {
            hello.complete(connect());
            turns.receiveAlways(receive);
        } catch (BackendException e) {
            fail(e);
        } catch (FrameException e) {
            fail(new BackendException(
                    ErrorCode.INTERNAL,
                    unhealthy(command.instance()) + " Its first message is wrong: " + e.getMessage(),
                    e));
        } catch (Throwable e) { // such as no threads or no memory: others wait for the end of the process
            log("start of a process", e);
            fail(new BackendException(
                    ErrorCode.INTERNAL, unhealthy(command.instance()) + " The process could not be started: " + e, e));
        }
        turns.stop();
        orLog(frames::onDisconnect);
        WorkerEnd end = new WorkerEnd(await(), reason(), lastLines());
        failAnswers(end);
        hello.completeExceptionally(failure(end));
        orLog(() -> frames.onEnd(end));
        ended.complete(end);
        failAnswers(end);
        turns.wake();
        orLog(this::reapGroup);
    }

    /** Says why the process cannot be used, and ends it. */
    private void fail(BackendException why) {
        kill(String.valueOf(why.getMessage()));
        hello.completeExceptionally(why);
    }

    /** Waits for the end of the process and its output, ends its forks, and returns its status. */
    private int await() {
        int status = NONE;
        try {
            Channel open = channel;
            if (open != null) {
                open.close();
            }
            status = awaitExit();
            logger.log(DEBUG, "process of " + command.instance() + " ended with status " + status);
            if (life != NONE) {
                SocketCalls.close(life);
            }
            killGroup();
            OutputReader reader = output;
            if (reader != null) {
                awaitOutput(reader);
                reader.close();
            }
        } catch (Throwable e) {
            log("end of a process", e);
        }
        return status;
    }

    /**
     * Kills processes that the model has started and that do not have the socket. Theirs is the number of the process that has
     * just ended, which the kernel does not use again before all others.
     */
    private void killGroup() {
        if (isLeader()) {
            ProcessCalls.killGroup(requireNonNull(process).pid());
        }
    }

    /** Reaps ended processes of the group, if this process has become their parent. */
    private void reapGroup() {
        long deadline = System.nanoTime() + END_LIMIT.toNanos();
        while (isLeader()
                && ProcessCalls.reapGroup(requireNonNull(process).pid())
                && System.nanoTime() - deadline < 0) {
            LockSupport.parkNanos(this, REAP_PAUSE_NANOS);
        }
    }

    /** Returns whether the process that was started is the one that has made the group: no wrapper is in between. */
    private boolean isLeader() {
        Process leader = process;
        return leader != null
                && hello.isDone()
                && !hello.isCompletedExceptionally()
                && hello.join().process() == leader.pid();
    }

    private void orLog(Runnable action) {
        try {
            action.run();
        } catch (Throwable e) {
            log("end of a process", e);
        }
    }

    private void log(String what, Throwable problem) {
        logger.log(WARNING, what + " of " + command.instance(), problem);
    }

    /** Starts the process, and returns its first frame. */
    private Hello connect() throws IOException {
        String token = StartSocket.randomText();
        try (StartSocket socket = StartSocket.open()) {
            launch(socket.address(), token);
            Channel open = new Channel(accept(socket, "connect"), executor, this::kill);
            channel = open;
            CompletableFuture<Void> _ = requireNonNull(process).onExit().thenRun(open::shutdown);
            Hello said = readHello(open);
            if (!said.problem().isEmpty()) {
                int _ = awaitExit(); // without a signal
                throw new BackendException(ErrorCode.INTERNAL, said.problem());
            }
            if (!said.token().equals(token)) {
                throw new FrameException("token: wrong (expected: that of the command line)");
            }
            life = accept(socket, "connect a second time");
            return said;
        }
    }

    private void launch(String socket, String token) {
        List<String> arguments = new ArrayList<>(command.python());
        arguments.add(
                command.runner().resolve("nereid_python").resolve("__main__.py").toString());
        arguments.add("--channel=" + socket);
        arguments.add("--life=" + socket);
        arguments.add("--token=" + token);
        // The thread that starts the process lives as long as it.
        arguments.add("--parent-death-signal=" + ProcessHandle.current().pid());
        arguments.add("triton_python_backend_stub");
        arguments.add(command.instance()); // so that lists of processes say which is which
        ProcessBuilder builder = new ProcessBuilder(arguments)
                .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
                .redirectErrorStream(true);
        builder.environment().clear();
        builder.environment().putAll(command.environment());
        ending.lock();
        try {
            if (killed) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "the start was given up");
            }
            launch(builder);
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "Python cannot be started: " + e.getMessage() + ". It was chosen as " + command.origin() + '.',
                    e);
        } finally {
            ending.unlock();
        }
    }

    @GuardedBy("ending")
    private void launch(ProcessBuilder builder) throws IOException {
        OutputPipe pipe = OutputPipe.open();
        try {
            process = builder.redirectOutput(pipe.redirect()).start();
        } catch (IOException e) {
            pipe.close();
            throw e;
        } finally {
            pipe.started();
        }
        output = OutputReader.start(
                pipe.input(), "python output " + command.instance(), frames::onLine, System::nanoTime);
    }

    private int accept(StartSocket socket, String what) throws IOException {
        Process started = requireNonNull(process);
        long deadline = System.nanoTime() + CONNECT_LIMIT.toNanos();
        while (true) {
            int connection = socket.accept(CONNECT_SLICE_MILLIS);
            if (connection >= 0) {
                return connection;
            } else if (!started.isAlive()) {
                int status = awaitExit();
                OutputReader reader = requireNonNull(output);
                awaitOutput(reader);
                throw failure(new WorkerEnd(status, reason(), reader.lastLines()));
            } else if (System.nanoTime() - deadline > 0) {
                throw new BackendException(
                        ErrorCode.INTERNAL,
                        unhealthy(command.instance()) + " It did not " + what + " within " + CONNECT_LIMIT.toSeconds()
                                + " s. Python was chosen as " + command.origin() + '.');
            }
        }
    }

    /** Waits for the last lines of a process that has ended; its children may hold the output open. */
    private static void awaitOutput(OutputReader reader) {
        try {
            reader.awaitEnd(OUTPUT_LIMIT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private Hello readHello(Channel open) {
        List<Hello> said = new ArrayList<>();
        while (said.isEmpty()) {
            boolean more = open.receive(true, frame -> {
                if (!said.isEmpty()) {
                    dispatch(frame);
                    return;
                }
                if (frame.type() != FrameType.HELLO) {
                    throw new FrameException("type of the first frame: " + frame.type() + " (expected: HELLO)");
                }
                said.add(Hello.read(frame));
            });
            if (!more && said.isEmpty()) {
                throw failure(new WorkerEnd(awaitExit(), reason(), lastLines()));
            }
        }
        return said.getFirst();
    }

    private boolean receive() {
        return receive(true);
    }

    private boolean receiveShortly() {
        return receive(false);
    }

    private boolean receive(boolean waits) {
        Channel open = requireNonNull(channel);
        try {
            return open.receive(waits, dispatch);
        } catch (FrameException e) {
            kill("it sent a wrong message: " + e.getMessage());
            return false;
        } catch (OutOfMemoryError e) {
            kill("no memory was left for a message of it");
            return false;
        } catch (RuntimeException | Error e) {
            log("message", e);
            kill("internal error: " + e);
            return false;
        }
    }

    private void dispatch(FrameReader frame) {
        int type = frame.type();
        if (type == FrameType.DONE || type == FrameType.COMPLETED) {
            CompletableFuture<FrameReader> answer = answers.remove(frame.id());
            if (answer == null) {
                throw new FrameException("id of an answer: " + frame.id() + " (expected: that of a question)");
            }
            answer.complete(frame.copy());
        } else {
            frames.onFrame(frame);
        }
    }

    /** Waits for the exit of the process, and kills it if it does not come. */
    private int awaitExit() {
        Process started = process;
        if (started == null) {
            return -1;
        }
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    if (started.waitFor(END_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                        return started.exitValue();
                    } else if (!finishing) {
                        setReason("it had closed its connection and did not end");
                        started.destroyForcibly();
                    }
                } catch (InterruptedException e) {
                    interrupted = true;
                    started.destroyForcibly();
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private void setReason(String why) {
        ending.lock();
        try {
            if (reason == null) {
                reason = why;
            }
        } finally {
            ending.unlock();
        }
    }

    private String reason() {
        ending.lock();
        try {
            return Optional.ofNullable(reason).orElse("");
        } finally {
            ending.unlock();
        }
    }

    private void failAnswers(WorkerEnd end) {
        for (Long id : List.copyOf(answers.keySet())) {
            CompletableFuture<FrameReader> answer = answers.remove(id);
            if (answer != null) {
                answer.completeExceptionally(failure(end));
            }
        }
    }

    /** Returns the error of a start that the end of the process has cut. */
    private BackendException failure(WorkerEnd end) {
        StringBuilder text =
                new StringBuilder(unhealthy(command.instance())).append(' ').append(end.describe());
        if (!end.lastLines().isEmpty()) {
            text.append(" It printed at last: ").append(String.join(" | ", end.lastLines()));
        }
        return new BackendException(ErrorCode.INTERNAL, text.toString());
    }

    /** Returns the text of the reference for an instance with a process that cannot serve. */
    public static String unhealthy(String instance) {
        return "Stub process '" + instance + "' is not healthy.";
    }
}
