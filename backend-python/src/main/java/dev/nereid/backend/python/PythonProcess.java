package dev.nereid.backend.python;

import dev.nereid.backend.python.call.ModelCalls;
import dev.nereid.backend.python.call.SharedTensorMemory;
import dev.nereid.backend.python.execute.Executions;
import dev.nereid.backend.python.execute.ModelTensors;
import dev.nereid.backend.python.frame.CompletedFrame;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.memory.SharedMemory;
import dev.nereid.backend.python.process.Worker;
import dev.nereid.backend.python.process.WorkerEnd;
import dev.nereid.backend.python.process.WorkerFrames;
import dev.nereid.backend.python.report.MetricFrames;
import dev.nereid.backend.python.report.ProcessLog;
import dev.nereid.backend.python.report.ReadyChecks;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A process with the program of a model: opened, perhaps asked to complete a configuration, initialized, and then executing
 * batches for one instance. Safe for use by any thread; {@link #execute} by one at a time.
 */
final class PythonProcess implements WorkerFrames, AutoCloseable {
    /** DONE of OPEN: the class has {@code auto_complete_config}. */
    private static final int COMPLETES = 1;

    /** DONE of INITIALIZE: the class has {@code is_ready}. */
    private static final int CHECKS = 2;

    /** Purpose of the start of a process, in the text of a failure. */
    private static final String COMPLETION = " for auto-complete";

    private static final int DECOUPLED = 1;
    private static final int ERRORS = 1;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    private static final Duration TRIM_INTERVAL = Duration.ofSeconds(5);

    private final ModelProgram program;
    private final String name;
    private final Executor executor;
    private final System.Logger logger;
    private final AtomicBoolean trims = new AtomicBoolean();
    private final ProcessLog log;
    private final SharedMemory memory;
    private final MetricFrames metrics;
    private final Worker worker;
    private final CompletableFuture<Boolean> opened;
    private final CompletableFuture<Void> disconnected = new CompletableFuture<>();
    private final CompletableFuture<WorkerEnd> stopped = new CompletableFuture<>();
    private volatile @Nullable Executions executions;
    private volatile ModelCalls calls;
    private volatile @Nullable ReadyChecks checks;
    private volatile @Nullable DelayedTask trim;
    private volatile boolean over;

    private PythonProcess(ModelContext model, ModelProgram program, String name, Device device, String purpose) {
        this.program = program;
        this.name = name;
        this.executor = model.executor();
        this.logger = model.logger();
        this.log = program.log().process(name);
        this.memory = new SharedMemory(this::send, program.budget(), model.logger(), System::nanoTime);
        this.metrics = new MetricFrames(program.families(), this::send);
        this.calls = newCalls(model);
        this.worker = Worker.start(program.worker(name, device), this, model.executor(), model.logger());
        this.opened = worker.hello().thenCompose(hello -> {
            log.write(Level.INFO, hello.describe() + ", process " + hello.process());
            return open(purpose);
        });
    }

    /** Starts a process, which imports the program. Returns at once; the caller owns the process. */
    static PythonProcess start(ModelContext model, ModelProgram program, String name, Device device) {
        return new PythonProcess(model, program, name, device, "");
    }

    /** Starts a process as {@link #start} that completes the configuration, with the name of its later instance. */
    static PythonProcess startCompletion(ModelContext model, ModelProgram program, String name) {
        return new PythonProcess(model, program, name, Device.CPU, COMPLETION);
    }

    String name() {
        return name;
    }

    private CompletableFuture<Boolean> open(String purpose) {
        long id = worker.nextId();
        FrameWriter frame = new FrameWriter()
                .begin(FrameType.OPEN, 0, 0, id)
                .map(program.open(name))
                .end();
        CompletableFuture<FrameReader> done = worker.ask(frame, id);
        log.sendLevels(this::send);
        return done.thenApply(answer -> (checked(answer, purpose).count() & COMPLETES) != 0);
    }

    /** Returns whether the class completes configurations; fails with a {@link BackendException} of its import. */
    CompletableFuture<Boolean> opened() {
        return opened;
    }

    /**
     * Has the model complete its configuration, given as JSON.
     *
     * @return fails with a {@link BackendException} if the model raised an exception
     */
    CompletableFuture<CompletedFrame> complete(String config) {
        long id = worker.nextId();
        FrameWriter frame = new FrameWriter()
                .begin(FrameType.COMPLETE, 0, 0, id)
                .text(config)
                .end();
        return worker.ask(frame, id)
                .thenApply(answer -> CompletedFrame.read(
                        answer.type() == FrameType.COMPLETED ? answer : checked(answer, COMPLETION)));
    }

    /**
     * Initializes the model, of which the configuration is complete; then batches are executed.
     *
     * @return fails with a {@link BackendException} if {@code initialize} raised an exception; else completed after it
     */
    CompletableFuture<Void> initialize(ModelContext model, Map<String, String> arguments, ModelTensors tensors) {
        boolean decoupled = model.settings().decoupled();
        int inlineLimit = program.settings().inlineLimit();
        executions = new Executions(name, worker, memory, tensors, decoupled, inlineLimit, log::error);
        calls = newCalls(model);
        long id = worker.nextId();
        FrameWriter frame = new FrameWriter()
                .begin(FrameType.INITIALIZE, 0, 0, id)
                .u32(decoupled ? DECOUPLED : 0)
                .map(arguments)
                .texts(tensors.inputs())
                .texts(tensors.outputs())
                .end();
        return worker.ask(frame, id).thenAccept(answer -> {
            boolean hasChecks = (checked(answer, "").count() & CHECKS) != 0;
            checks = ReadyChecks.of(name, hasChecks, this::send, log, model, System::nanoTime);
        });
    }

    /** Returns an answer that is no error. */
    private FrameReader checked(FrameReader answer, String purpose) {
        if ((answer.flags() & ERRORS) == 0) {
            return answer;
        }
        String text = answer.text("error");
        String trace = answer.text("text for the log");
        String environment = answer.text("environment");
        log.error(
                "Failed to initialize Python stub" + purpose + ": " + text,
                trace + (trace.isEmpty() || environment.isEmpty() ? "" : "\n") + environment);
        throw new BackendException(ErrorCode.INTERNAL, text);
    }

    /**
     * Returns the calls of the program. Calls during an import or a completion may only query models, and get
     * responses.
     */
    private ModelCalls newCalls(ModelContext model) {
        return new ModelCalls(
                model.models(),
                this::send,
                new SharedTensorMemory(memory),
                program.settings().inlineLimit(),
                model.logger());
    }

    private void send(FrameWriter frame) {
        worker.send(frame);
    }

    /** Executes a batch, as {@link Executions#execute(Batch, Runnable)}. */
    void execute(Batch batch, Runnable ended) {
        Executions ready = executions;
        if (ready == null) {
            ended.run();
            throw new BackendException(ErrorCode.UNAVAILABLE, Worker.unhealthy(name));
        }
        try {
            log.refreshLevels();
            ready.execute(batch, ended);
        } finally {
            trimLater();
        }
    }

    /** Executes a batch that is deferred, as {@link Executions#execute(Batch, DeferredExecution, Runnable)}. */
    void execute(Batch batch, DeferredExecution handle, Runnable ended) {
        Executions ready = executions;
        if (ready == null) {
            ended.run();
            handle.fail(new BackendException(ErrorCode.UNAVAILABLE, Worker.unhealthy(name)));
            return;
        }
        log.refreshLevels();
        ready.execute(batch, handle, ended);
        trimLater();
    }

    /** Checks whether the model is ready, as {@link ReadyChecks#check}. */
    CompletionStage<Void> checkReady() {
        ReadyChecks ready = checks;
        if (ready == null) {
            return CompletableFuture.completedStage(null);
        }
        CompletionStage<Void> result = ready.check();
        if (awaited()) {
            worker.want();
        }
        return result;
    }

    /** Completes when the process cannot be used, before its end is awaited, on its thread and never exceptionally. */
    CompletableFuture<Void> disconnected() {
        return disconnected;
    }

    /** Completes with the end of the process before its requests fail, on its thread and never exceptionally. */
    CompletableFuture<WorkerEnd> stopped() {
        return stopped;
    }

    /** Returns the end of the process after its requests have failed, as {@link Worker#ended}. */
    CompletableFuture<WorkerEnd> ended() {
        return worker.ended();
    }

    boolean isAlive() {
        return worker.isAlive();
    }

    /** Kills the process, as {@link Worker#kill}. */
    void kill(String why) {
        worker.kill(why);
    }

    /** Ends the process as {@link Worker#finish} after its calls; each of the two may take as long as {@code limit}. */
    CompletableFuture<WorkerEnd> finish(Duration limit) {
        ModelCalls open = calls;
        if (open.open() == 0) {
            return worker.finish(limit);
        }
        CompletableFuture<Void> idle = new CompletableFuture<>();
        open.onIdle(() -> idle.complete(null));
        return idle.completeOnTimeout(null, limit.toMillis(), TimeUnit.MILLISECONDS)
                .thenCompose(done -> worker.finish(limit));
    }

    /** Returns the memory of the process alone and the memory shared with the server, in bytes. */
    long memoryUsage() {
        return memory.byteSize() + worker.residentBytes();
    }

    /** Unmaps shared memory that is not used for a while, as long as there is any. */
    private void trimLater() {
        if (!trims.getPlain() && memory.byteSize() > 0 && !trims.getAndSet(true)) {
            startTrim();
        }
    }

    private void startTrim() {
        DelayedTask next = DelayedTask.start(TRIM_INTERVAL, executor, this::trim);
        trim = next;
        if (over) {
            next.cancel();
        }
    }

    private void trim() {
        memory.trim();
        if (memory.byteSize() > 0) {
            startTrim();
        } else {
            trims.set(false);
            trimLater();
        }
    }

    /** Asks the process for the stacks of its threads, as {@link Worker#printStacks}. */
    void printStacks() {
        worker.printStacks();
    }

    @Override
    public boolean awaited() {
        Executions ready = executions;
        ModelCalls open = calls;
        ReadyChecks asked = checks;
        return (ready != null && ready.awaited()) || open.open() > 0 || (asked != null && asked.isCalling());
    }

    @Override
    public void onFrame(FrameReader frame) {
        Executions ready = executions;
        if ((ready != null && ready.onFrame(frame)) || onCallFrame(ready, frame)) {
            return;
        }
        switch (frame.type()) {
            case FrameType.RELEASED -> memory.onReleased(frame);
            case FrameType.SEGMENT_WANTED -> memory.onSegmentWanted(frame.id());
            case FrameType.SEGMENT_RETURNED -> memory.onSegmentReturned(frame.id());
            case FrameType.LOG -> log.onLog(frame);
            case FrameType.METRIC -> metrics.onMetric(frame);
            case FrameType.READY -> onReady(frame);
            case FrameType.NOTICE -> program.notices().onNotice(frame);
            default -> {
                // A later minor version of the protocol may have more types.
            }
        }
    }

    private boolean onCallFrame(@Nullable Executions running, FrameReader frame) {
        ModelCalls open = calls;
        switch (frame.type()) {
            case FrameType.CALL -> {
                open.onCall(frame, id -> running == null ? null : running.running(id));
                trimLater();
            }
            case FrameType.CALL_CREDIT -> open.onCredit(frame.id(), frame.count());
            case FrameType.CALL_CANCEL -> open.onCancel(frame.id());
            case FrameType.CALL_DROP -> open.onDrop(frame.id());
            case FrameType.CONTROL -> open.onControl(frame);
            default -> {
                return false;
            }
        }
        return true;
    }

    private void onReady(FrameReader frame) {
        ReadyChecks ready = checks;
        if (ready != null) {
            ready.onReady(frame);
        }
    }

    @Override
    public void onLine(String line) {
        log.line(line);
    }

    @Override
    public void onDisconnect() {
        disconnected.complete(null);
    }

    @Override
    public void onEnd(WorkerEnd end) {
        over = true;
        stopped.complete(end);
        Executions ready = executions;
        if (ready != null) {
            orLog(() -> ready.onEnd(end));
        }
        orLog(calls::close);
        ReadyChecks open = checks;
        if (open != null) {
            orLog(() -> open.close(Worker.unhealthy(name) + ' ' + end.describe()));
        }
        DelayedTask waiting = trim;
        if (waiting != null) {
            waiting.cancel();
        }
        orLog(metrics::close);
        orLog(memory::close);
        orLog(log::close);
    }

    /** Does one of the things that have to be done at the end, whatever becomes of the others. */
    private void orLog(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException | Error e) {
            logger.log(Level.WARNING, "end of the process of " + name, e);
        }
    }

    /** Ends a process that no instance has taken, and waits for its end. */
    @Override
    public void close() {
        if (opened.isDone() && !opened.isCompletedExceptionally()) {
            worker.finish(CLOSE_LIMIT).join();
        } else {
            worker.kill("the start was given up");
            worker.ended().join();
        }
    }
}
