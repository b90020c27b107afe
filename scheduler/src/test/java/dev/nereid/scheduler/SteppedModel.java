package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.SharedResources.Need;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** One model of several, its requests, and its changing instances. Confined. */
public final class SteppedModel {
    public static final int MAX_BATCH = 4;

    private final ModelSettings settings;
    private final LeakCheckingMemory memory;
    private final Scheduling scheduling;
    private final SteppedScheduler scheduler;
    private final ExpectedRequests expected = new ExpectedRequests(MAX_BATCH);
    private final List<Cancellation> cancellations = new ArrayList<>();
    private final Set<Integer> read = new HashSet<>();
    private final Set<Integer> mayFail = new HashSet<>();
    private final List<SteppedWorker> workers = new ArrayList<>();

    /**
     * The scheduling of its requests.
     *
     * @param planner decides about batches
     * @param delay for how long requests wait for others, in nanoseconds
     * @param priorities its levels
     * @param ordered whether the order of responses is preserved
     */
    public record Scheduling(BatchPlanner planner, long delay, PriorityPolicy priorities, boolean ordered) {}

    public SteppedModel(String name, LeakCheckingMemory memory, Scheduling scheduling) {
        this.settings = ModelSettings.builder(name, 1)
                .maxBatchSize(MAX_BATCH)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .build();
        this.memory = memory;
        this.scheduling = scheduling;
        this.scheduler = new SteppedScheduler(
                settings,
                scheduling.planner(),
                new BatchingPolicy(true, List.of(), 0, scheduling.ordered(), scheduling.priorities()),
                memory,
                ExecutionTraits.DEFAULT);
    }

    /** Adds a worker with one instance for each need. */
    public void add(ExecutionLimiter limiter, List<Need> needs, SteppedWorker.Execution execution) {
        workers.add(new SteppedWorker(scheduler, limiter, needs, (worker, need, batch) -> {
            worker.begin(batch);
            expected.begin(batch, now());
            execution.execute(worker, need, batch);
        }));
    }

    private long now() {
        return scheduler.clock.getAsLong();
    }

    public List<SteppedWorker> workers() {
        return workers;
    }

    /** Returns how many workers take batches. */
    public long serving() {
        return workers.stream().filter(worker -> !worker.isRetired()).count();
    }

    public void submit(int items, int width, ExpectedRequest.Options options) {
        int index = cancellations.size();
        Requests builder = Requests.to(settings, memory)
                .id(String.valueOf(index))
                .priority(options.priority())
                .timeoutMicros(options.timeoutMicros())
                .floats("IN", Shape.of(items, width), index);
        if (options.hasDeadline()) {
            builder.deadline(now() + ExpectedRequest.DEADLINE_NANOS);
        }
        long level = scheduling.priorities().level(options.priority());
        QueuePolicy policy = scheduling.priorities().policy(level);
        boolean admitted = policy.admits(expected.waiting(level));
        RecordingObserver observer =
                expected.add(ExpectedRequest.at(now(), index, level, policy, items, width, options));
        cancellations.add(scheduler.submit(builder.of(items), observer));
        assertThat(observer.hasEnded()).as("refused if full").isEqualTo(!admitted);
    }

    public void cancel(int index) {
        if (!cancellations.isEmpty()) {
            int which = index % cancellations.size();
            mayFail.add(which);
            cancellations.get(which).cancel();
            assertThat(expected.waits(which)).as("completed at once").isFalse();
        }
    }

    /** Records that requests do not complete with a response. */
    public void fail(Batch batch) {
        batch.requests().forEach(request -> mayFail.add(Integer.valueOf(request.id())));
    }

    public void pass(long nanos, boolean expires) {
        if (expires) {
            scheduler.advance(nanos);
            expected.checkTime(now());
        } else {
            scheduler.clock.advanceNanos(nanos);
        }
    }

    /** Closes a response, if there is one. */
    public void read(int index) {
        if (!cancellations.isEmpty()) {
            readThis(index % cancellations.size());
        }
    }

    private void readThis(int index) {
        RecordingObserver observer = expected.observer(index);
        if (!observer.hasEnded() || !read.add(index) || observer.responses().isEmpty()) {
            return;
        }
        float[] content = observer.floats("OUT");
        for (int i = 0; i < content.length; i++) {
            assertThat(content[i]).isEqualTo(index + i);
        }
        observer.close();
    }

    /** Steps a worker that was retired, or whose queue is stopped and empty. */
    public void leave(SteppedWorker worker) {
        worker.leave(
                worker.isRetired()
                        ? () -> worker.isIdle() && worker.executed().stream().allMatch(this::isOver)
                        : () -> workers.stream().allMatch(SteppedWorker::isIdle)
                                && expected.all().stream().allMatch(request -> isOver(request.index())));
    }

    private boolean isOver(int index) {
        RecordingObserver observer = expected.observer(index);
        return observer.hasEnded() && (observer.responses().isEmpty() || read.contains(index));
    }

    public void check() {
        workers.forEach(SteppedWorker::check);
        if (scheduling.ordered()) {
            expected.checkOrder();
        }
    }

    /** Nothing waits without need, after every instance did what it could. */
    public void checkDone() {
        expected.checkDelay(now(), scheduling.delay());
    }

    public void stop() {
        scheduler.queue.stop();
    }

    /** All requests are completed: reads the responses and ends the workers. */
    public void end() {
        for (ExpectedRequest request : expected.all()) {
            RecordingObserver observer = expected.observer(request.index());
            observer.check();
            assertThat(observer.hasEnded())
                    .as("request %s completed", request.index())
                    .isTrue();
            checkOutcome(request.index(), observer);
        }
        assertThat(expected.executed()).doesNotHaveDuplicates();
        workers.stream().filter(SteppedWorker::isFree).forEach(this::leave);
        check();
        for (ExpectedRequest request : expected.all()) {
            readThis(request.index());
            check();
        }
        assertThat(scheduler.inFlight()).isZero();
        assertThat(scheduler.queue.waiting()).isZero();
        scheduler.queue.close();
    }

    /** Checks that an executed request has its response unless it may fail, and that another one has a reason. */
    private void checkOutcome(int index, RecordingObserver observer) {
        if (!expected.executed().contains(index)) {
            assertThat(observer.error().code()).isIn(ErrorCode.CANCELLED, ErrorCode.UNAVAILABLE);
        } else if (!mayFail.contains(index)) {
            observer.response();
        }
    }
}
