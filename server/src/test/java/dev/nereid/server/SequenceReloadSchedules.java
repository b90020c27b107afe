package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.api.Refusals;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.repository.ModelRepository;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.server.SequenceReference.Outcome;
import dev.nereid.server.SequenceReference.Request;
import dev.nereid.server.control.ModelLifecycle;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import dev.nereid.testkit.FakeClock;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * A random schedule of up to 50 sequences on a model that is loaded again, unloaded, and left alone meanwhile. The test
 * takes the steps in order, and awaits what {@link SequenceReference} says of each; the instances have threads of their
 * own. Confined.
 */
final class SequenceReloadSchedules implements AutoCloseable {
    static final int SLOTS = 2;
    static final int INSTANCES = 2;
    static final Duration IDLE = Duration.ofMillis(100);

    /** A backend with a state that is the sum of the inputs since the start. Responses tell the generation. */
    static final String BACKEND = """
            package adding;

            import dev.nereid.spi.*;
            import java.lang.foreign.ValueLayout;

            public final class Adding implements BackendProvider {
                public String name() { return "adding"; }

                public Backend create(BackendContext context) {
                    return model -> place -> batch -> execute(batch, model.parameters().required("generation"));
                }

                private static void execute(Batch batch, String generation) {
                    Tensor start = batch.gather("START");
                    Tensor present = batch.gather("SUM_IN");
                    Tensor next = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(batch.size(), 1));
                    for (int row = 0; row < batch.size(); row++) {
                        InferenceRequest request = batch.requests().get(row);
                        if (request.isNullRequest()) {
                            continue;
                        }
                        float sum = present.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, row)
                                + request.requireInput("INPUT0").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                        next.data().setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, row, sum);
                        request.response().allocate("OUTPUT0", DataType.FP32, Shape.of(1, 1))
                                .data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum);
                        request.response().parameter("generation", generation);
                        request.response().parameter("start", start.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, row) == 1);
                    }
                }
            }
            """;

    private static final int IDS = 50;

    /** A request that was sent, and what is expected of it. */
    private record Sent(Request request, RecordingObserver observer, Cancellation cancellation) {}

    private final String description;
    private final Random random;
    private final TestModels models;
    private final String strategy;
    private final FakeClock clock = new FakeClock();
    private final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
    private final TensorPool memory = new TensorPool(1 << 26, 1 << 20, true);
    private final ModelLifecycle lifecycle;
    private final RequestSubmission submission;
    private final SequenceReference reference = new SequenceReference(SLOTS * INSTANCES, IDLE.toNanos());
    private final List<Sent> waiting = new ArrayList<>();
    private final List<Sent> done = new ArrayList<>();
    private int loads;

    SequenceReloadSchedules(long seed, boolean direct, BackendRegistry backends, Path directory) throws Exception {
        random = new Random(seed);
        description = (direct ? "direct" : "oldest") + ", seed " + seed;
        strategy = direct ? "direct { }" : "oldest { max_candidate_sequences: " + SLOTS + " }";
        models = new TestModels(directory.resolve("models"));
        ServerOptions options = ServerOptions.of(models.root()).with(o -> o.explicit());
        lifecycle = new ModelLifecycle(
                new ModelRepository(List.of(models.root()), List.of(), false),
                backends,
                new FileCopies(directory),
                options.models(),
                options.lifecycle().control(),
                new SchedulerEnvironment(memory, clock, timeouts),
                directory);
        lifecycle.start();
        submission = new RequestSubmission(
                lifecycle.models(), Optional.empty(), memory, Refusals.counting(false), () -> false);
        load();
    }

    private void load() throws Exception {
        loads++;
        models.model(
                "m",
                """
            backend: "adding"
            max_batch_size: %d
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
            instance_group { count: %d kind: KIND_CPU }
            sequence_batching {
              max_sequence_idle_microseconds: %d
              %s
              control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
              state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: [ 1 ] }
            }
            """.formatted(SLOTS, INSTANCES, IDLE.toNanos() / 1000, strategy)
                        + TestModels.parameter("generation", Integer.toString(loads)));
        reference.load(loads);
        lifecycle
                .control()
                .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get();
    }

    private void unload() throws Exception {
        reference.unload();
        lifecycle.control().unload("m", false).toCompletableFuture().get();
    }

    /** Takes random steps, and then ends everything. */
    void run(int steps) throws Exception {
        for (int i = 0; i < steps; i++) {
            step();
            check("step " + i);
        }
        if (!reference.isLoaded()) {
            load();
        }
        if (random.nextBoolean()) {
            reference.ids().forEach(id -> send(id, false, true));
        }
        for (int i = 0; i < IDS && !(reference.ids().isEmpty() && waiting.isEmpty()); i++) {
            check("end");
            advance(IDLE.toNanos());
        }
        check("end");
        assertThat(waiting).as(description).isEmpty();
        await("live", () -> statistics().toString(), () -> statistics().live() == 0);
        assertThat(statistics().slotsUsed()).as("%s: slots", description).isZero();
        await("free slots", () -> statistics().toString(), () -> statistics().slots() == SLOTS * INSTANCES);
        await(
                "bytes of states",
                () -> statistics().toString(),
                () -> statistics().stateBytes() == 0);
    }

    private void step() throws Exception {
        int kind = random.nextInt(100);
        if (kind < 80) {
            long id = 1L + random.nextInt(IDS);
            List<Long> live = reference.ids();
            if (random.nextInt(3) > 0 && !live.isEmpty()) {
                id = live.get(random.nextInt(live.size()));
            }
            boolean lives = live.contains(id);
            send(id, random.nextInt(lives ? 12 : 6) < (lives ? 1 : 5), random.nextInt(5) == 0);
        } else if (kind < 87) {
            List<Sent> all = waiting.isEmpty() || random.nextInt(4) == 0 ? done : waiting;
            if (!all.isEmpty()) {
                Sent one = all.get(random.nextInt(all.size()));
                reference.cancel(one.request());
                one.cancellation().cancel();
            }
        } else if (kind < 93) {
            advance(IDLE.toNanos() / (1 + random.nextInt(4)));
        } else if (kind < 98 || !reference.isLoaded()) {
            load();
        } else {
            unload();
        }
    }

    private void advance(long nanos) {
        await("asleep", () -> threads().keySet().toString(), SequenceReloadSchedules::areThreadsAsleep);
        reference.advance(nanos);
        clock.advanceNanos(nanos);
        timeouts.runExpired(clock.getAsLong());
    }

    private void send(long id, boolean start, boolean end) {
        Request request = new Request(id, start, end, 1f + random.nextInt(9));
        reference.add(request);
        TensorBuffer buffer = memory.allocate(Float.BYTES);
        buffer.segment().set(ValueLayout.JAVA_FLOAT, 0, request.value);
        InputTensor input =
                InputTensor.of("INPUT0", DataType.FP32.name(), new long[] {1, 1}, buffer.segment(), MemoryPlace.HOST);
        Sequence position = new Sequence(new Sequence.Id.Numeric(id), start, end);
        RecordingObserver observer = new RecordingObserver();
        Cancellation cancellation = submission.begin(
                new InferRequest(
                        ModelRef.latest("m"),
                        "",
                        List.of(input),
                        List.of(),
                        Map.of(),
                        new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)),
                        buffer::close),
                observer,
                clock.getAsLong());
        waiting.add(new Sent(request, observer, cancellation));
    }

    /** Awaits what has ended according to the reference, and compares it. */
    private void check(String step) {
        for (Sent sent : List.copyOf(waiting)) {
            String what = description + ", " + step + ": " + sent.request();
            if (sent.request().outcome == Outcome.NONE) {
                assertThat(sent.observer().terminals()).as(what).isZero();
            } else {
                check(sent, what);
                waiting.remove(sent);
                done.add(sent);
            }
        }
        if (reference.isLoaded()) {
            await(
                    step,
                    () -> statistics() + " instead of " + reference.slotsUsed() + ", " + reference.backlog(),
                    () -> {
                        SequenceStatistics use = statistics();
                        return use.slotsUsed() == reference.slotsUsed() && use.backlog() == reference.backlog();
                    });
        }
    }

    private static void check(Sent sent, String what) {
        Request request = sent.request();
        if (request.outcome == Outcome.ANSWERED) {
            RecordingObserver.Values values;
            try {
                values = sent.observer().response();
            } catch (AssertionError e) {
                throw new AssertionError(what, e);
            }
            assertThat(values.values()).as(what).containsExactly(request.sum);
            assertThat(values.parameters())
                    .as(what)
                    .containsEntry("generation", new ParameterValue.Text(Integer.toString(request.generation)))
                    .containsEntry("start", new ParameterValue.Bool(request.start));
            return;
        }
        ErrorCode code;
        try {
            code = sent.observer().error().code();
        } catch (AssertionError e) {
            throw new AssertionError(what, e);
        }
        assertThat(code)
                .as(what)
                .isEqualTo(
                        switch (request.outcome) {
                            case CANCELLED -> ErrorCode.CANCELLED;
                            case NOT_LOADED -> ErrorCode.NOT_FOUND;
                            default -> ErrorCode.INVALID_ARGUMENT;
                        });
    }

    private SequenceStatistics statistics() {
        return lifecycle.models().sequences().getFirst();
    }

    private void await(String step, Supplier<String> found, BooleanSupplier holds) {
        long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError(description + ", " + step + ": " + found.get());
            }
            Thread.onSpinWait();
        }
    }

    /**
     * Returns whether all threads of instances wait for work. One that waits for the lock of the sequences does not: it
     * may have sent a response, and not yet recorded the end of the execution.
     */
    private static boolean areThreadsAsleep() {
        return threads().values().stream().allMatch(SequenceReloadSchedules::isAsleep);
    }

    private static boolean isAsleep(StackTraceElement[] trace) {
        return Arrays.stream(trace).anyMatch(frame -> isMethod(frame, LockSupport.class, "park"))
                && Arrays.stream(trace).noneMatch(frame -> isMethod(frame, ReentrantLock.class, "lock"));
    }

    private static boolean isMethod(StackTraceElement frame, Class<?> of, String name) {
        return frame.getClassName().equals(of.getName())
                && frame.getMethodName().equals(name);
    }

    /** Returns the threads of all instances, and where they are. */
    private static Map<Thread, StackTraceElement[]> threads() {
        Map<Thread, StackTraceElement[]> all = new HashMap<>(Thread.getAllStackTraces());
        all.keySet().removeIf(thread -> !thread.getName().startsWith("instance/m/"));
        return all;
    }

    /** Closes the models, and checks that all memory is returned and each request was answered once. */
    @Override
    public void close() {
        assertThat(lifecycle.close(Duration.ofSeconds(30))).as("closed").isTrue();
        for (Sent sent : done) {
            assertThat(sent.observer().terminals())
                    .as("%s: %s", description, sent.request())
                    .isEqualTo(1);
        }
        assertThat(memory.bytesInUse()).as("%s: bytes in use", description).isZero();
        memory.close();
    }
}
