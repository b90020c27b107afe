package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Which requests go past the queue, and which do not. */
final class UnqueuedBatchTest {
    private static final int MAX_BATCH = 3;
    private static final BatchPlanner PLANNER = new BatchPlanner(MAX_BATCH, List.of(), 0);

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(MAX_BATCH)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, () -> 0);
    private final List<ScheduledRequest> requests = new ArrayList<>();
    private final InstanceHandle handle = new InstanceHandle(() -> {}, () -> 0);
    private QueueParts queue = new QueueParts(PLANNER, PriorityPolicy.NONE);

    private final class QueueParts {
        final QueueLock lock = new QueueLock();
        final WaitingRequests waiting;
        final RequestBatcher batcher;
        final IdleInstances idleInstances;
        final UnqueuedBatch unqueued;

        QueueParts(BatchPlanner planner, PriorityPolicy priorities) {
            EqualInputs equalInputs = new EqualInputs(model);
            waiting = new WaitingRequests(priorities, equalInputs);
            batcher = new RequestBatcher(lock, planner, waiting, () -> 0, null);
            idleInstances = new IdleInstances(lock, batcher);
            unqueued = new UnqueuedBatch(priorities, equalInputs.joinAll(), batcher, idleInstances);
            idleInstances.add();
            idleInstances.addIdle(handle);
        }
    }

    @AfterEach
    void releaseAll() {
        for (Executable taken : handle.taken) {
            taken.request().fail(SchedulerErrors.unexpected(model, new IllegalStateException("end of test")));
            taken.request().release();
        }
        requests.forEach(request -> request.reject(SchedulerErrors.cancelled(), FailureReason.OTHER));
        assertThat(scope.drain().count()).isZero();
        memory.close();
    }

    @Test
    void passesRequestsThatMakeOneBatch() {
        add(MAX_BATCH);

        assertThat(queue.unqueued.pass(requests)).isSameAs(handle);

        assertThat(handle.taken).extracting(Executable::request).containsExactlyElementsOf(requests);
        assertThat(queue.waiting.length()).isZero();
        assertThat(queue.idleInstances.mayRunDirectly()).as("idle").isFalse();
    }

    @Test
    void leavesOutRequestsThatAreCancelled() {
        add(MAX_BATCH);
        requests.get(1).cancel();

        assertThat(queue.unqueued.pass(requests)).isSameAs(handle);

        assertThat(handle.taken)
                .extracting(Executable::request)
                .containsExactly(requests.getFirst(), requests.getLast());
    }

    @Test
    void keepsTheInstanceIdleIfAllAreCancelled() {
        add(MAX_BATCH);
        requests.forEach(ScheduledRequest::cancel);

        checkQueued();
    }

    @Test
    void queuesMoreThanABatch() {
        add(MAX_BATCH + 1);

        checkQueued();
    }

    @Test
    void queuesRequestsThatWaitForOthers() {
        queue = new QueueParts(new BatchPlanner(MAX_BATCH, List.of(), 1_000), PriorityPolicy.NONE);
        add(MAX_BATCH - 1);

        checkQueued();
    }

    @Test
    void queuesBehindWaitingRequests() {
        add(2);
        queue.waiting.add(new QueueEntry(requests.removeFirst(), null, queue.waiting::remove));

        checkQueued();

        ScheduledRequest waiting = queue.waiting.poll();
        assertThat(waiting).isNotNull();
        requests.add(waiting);
    }

    @Test
    void queuesRequestsWithADeadlineOrForTheInstanceThread() {
        requests.add(request(changed -> changed.deadline(1_000)));
        checkQueued();

        ScheduledRequest bound = request(changed -> changed);
        bound.requireInstanceThread();
        assertThat(queue.unqueued.pass(List.of(bound))).isNull();
        requests.add(bound);
    }

    @Test
    void queuesRequestsWithATimeout() {
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, true, 0);
        queue = new QueueParts(PLANNER, new PriorityPolicy(0, 0, policy, Map.of()));
        requests.add(request(changed -> changed.timeoutMicros(1_000)));

        checkQueued();
    }

    @Test
    void queuesRequestsOfLimitedOrSeveralLevels() {
        add(MAX_BATCH);
        queue = new QueueParts(
                PLANNER,
                new PriorityPolicy(0, 0, new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 9), Map.of()));
        checkQueued();

        queue = new QueueParts(PLANNER, new PriorityPolicy(2, 1, QueuePolicy.NONE, Map.of()));
        checkQueued();
    }

    @Test
    void queuesRequestsOfAQueueThatIsHeldOrStopped() {
        add(1);
        queue.batcher.hold(2);
        checkQueued();

        queue = new QueueParts(PLANNER, PriorityPolicy.NONE);
        queue.batcher.stop();
        checkQueued();
    }

    @Test
    void queuesRequestsIfNoInstanceIsIdle() {
        add(1);
        queue.idleInstances.acquireIdle();

        assertThat(queue.unqueued.pass(requests)).isNull();
    }

    private void checkQueued() {
        assertThat(queue.unqueued.pass(requests)).isNull();
        assertThat(handle.taken).isEmpty();
        assertThat(queue.idleInstances.mayRunDirectly()).as("idle").isTrue();
    }

    private void add(int number) {
        for (int i = 0; i < number; i++) {
            requests.add(request(changed -> changed));
        }
    }

    private ScheduledRequest request(UnaryOperator<Requests> options) {
        Requests made = options.apply(Requests.to(model, memory).floats("IN", Shape.of(1, 2), 0));
        return new ScheduledRequest(scope, null, made.of(1), new RecordingObserver(), 0);
    }
}
