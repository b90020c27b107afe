package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests which threads are woken for what, and what a batch decision examines. The former is tested by threads that
 * wait, the latter step by step.
 */
@Timeout(60)
final class RequestQueueTest {
    private static final long HOUR = Duration.ofHours(1).toNanos();
    private static final long BRIEF = Duration.ofMillis(20).toNanos();
    private static final PriorityPolicy WITH_TIMEOUT =
            new PriorityPolicy(0, 0, new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 10, false, 0), Map.of());

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, System::nanoTime);
    private final List<Waiter> waiters = new ArrayList<>();
    private RequestQueue queue = SteppedScheduler.queue(scope);

    @AfterEach
    void closeAll() {
        queue.stop();
        waiters.forEach(Waiter::join);
        assertThat(queue.waiting()).isZero();
        assertThat(scope.drain().count()).isZero();
        memory.close();
    }

    /** An instance whose thread takes one batch, or ends because the queue stops. */
    private final class Waiter {
        private final InstanceHandle handle = queue.source().register(() -> {}, () -> 0);
        private final Thread thread;

        /** How often the thread looked at the clock: once at first, and once each time it woke. */
        private final AtomicInteger looks = new AtomicInteger();

        private volatile List<String> batch = List.of();
        private volatile boolean interrupted;

        private Waiter() {
            thread = Thread.ofPlatform().unstarted(this::take);
        }

        private void take() {
            if (queue.source().take(handle)) {
                interrupted = Thread.currentThread().isInterrupted();
                batch = end(handle);
            }
        }

        /** Waits until the thread sleeps: forever, or for a time. */
        Waiter await(Thread.State state) {
            while (thread.getState() != state) {
                assertThat(thread.getState()).isNotEqualTo(Thread.State.TERMINATED);
                Thread.onSpinWait();
            }
            return this;
        }

        void join() {
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        List<String> batch() {
            join();
            return batch;
        }
    }

    private void queue(BatchPlanner planner) {
        queue = new RequestQueue(
                planner,
                PriorityPolicy.NONE,
                new EqualInputs(scope.settings()),
                this::look,
                new TimeoutQueue(() -> {}),
                null);
    }

    private long look() {
        for (Waiter waiter : waiters) {
            if (waiter.thread.equals(Thread.currentThread())) {
                waiter.looks.incrementAndGet();
            }
        }
        return System.nanoTime();
    }

    /** Starts an instance and waits until it sleeps. */
    private Waiter idle() {
        Waiter waiter = new Waiter();
        waiters.add(waiter);
        waiter.thread.start();
        return waiter.await(Thread.State.WAITING);
    }

    private void offer(String id) {
        offer(id, System.nanoTime());
    }

    private void offer(String id, long enqueuedNanos) {
        offer(id, 1, enqueuedNanos);
    }

    private ScheduledRequest offer(String id, int items, long enqueuedNanos) {
        CheckedRequest checked = Requests.to(model, memory)
                .id(id)
                .floats("IN", Shape.of(items, 2), 0)
                .of(items);
        ScheduledRequest request = new ScheduledRequest(
                scope, null, checked.arrivedAt(enqueuedNanos), new RecordingObserver(), enqueuedNanos);
        assertThat(queue.offer(request, false)).isEqualTo(OfferResult.Outcome.ACCEPTED);
        return request;
    }

    /** Completes the requests of a handle. */
    private static List<String> end(InstanceHandle handle) {
        List<String> ids = new ArrayList<>();
        for (Executable taken : handle.taken) {
            ScheduledRequest request = taken.request();
            ids.add(request.checked().id());
            request.fail(new BackendException(ErrorCode.INTERNAL, "no backend"));
            request.release();
        }
        handle.taken.clear();
        return ids;
    }

    @Test
    void wakesOneIdleInstanceForEachBatch() {
        queue(BatchPlanner.oneByOne());
        Waiter first = idle();
        Waiter second = idle();
        Waiter third = idle();

        offer("a");
        offer("b");

        assertThat(List.of(third.batch(), second.batch()))
                .as("those that became idle last")
                .containsExactlyInAnyOrder(List.of("a"), List.of("b"));
        assertThat(first.looks).hasValue(1);
        assertThat(first.thread.getState()).isEqualTo(Thread.State.WAITING);
    }

    @Test
    void wakesTheOneThatBecameIdleLast() {
        queue(BatchPlanner.oneByOne());
        Waiter first = idle();
        Waiter second = idle();
        Waiter third = idle();

        offer("a");
        assertThat(third.batch()).containsExactly("a");
        offer("b");
        assertThat(second.batch()).containsExactly("b");

        assertThat(first.looks).hasValue(1);
        assertThat(first.thread.getState()).isEqualTo(Thread.State.WAITING);
    }

    @Test
    void wakesNoRetiredInstance() {
        queue(BatchPlanner.oneByOne());
        Waiter first = idle();
        Waiter second = idle();
        Waiter third = idle();

        queue.source().retire(second.handle);
        assertThat(second.batch()).isEmpty();
        offer("a");
        assertThat(third.batch()).containsExactly("a");
        offer("b");

        assertThat(first.batch()).containsExactly("b");
    }

    @Test
    void sleepsOnWhenInterruptedWhileIdle() {
        queue(BatchPlanner.oneByOne());
        Waiter waiter = idle();

        waiter.thread.interrupt();
        while (waiter.thread.isInterrupted()) {
            Thread.onSpinWait();
        }
        waiter.await(Thread.State.WAITING);
        offer("a");

        assertThat(waiter.batch()).containsExactly("a");
        assertThat(waiter.looks).as("not when it was interrupted").hasValue(2);
        assertThat(waiter.interrupted).as("interrupt status kept").isTrue();
    }

    @Test
    void sleepsOnWhenInterruptedAsTheLeader() {
        queue(new BatchPlanner(2, List.of(), HOUR));
        Waiter leader = idle();
        offer("a");
        leader.await(Thread.State.TIMED_WAITING);

        leader.thread.interrupt();
        while (leader.looks.get() < 3) {
            Thread.onSpinWait();
        }
        leader.await(Thread.State.TIMED_WAITING);
        offer("b");

        assertThat(leader.batch()).containsExactly("a", "b");
    }

    @Test
    void wakesNoInstanceForARequestThatMustWait() {
        queue(new BatchPlanner(3, List.of(), HOUR));
        Waiter other = idle();
        Waiter leader = idle();

        offer("a");
        leader.await(Thread.State.TIMED_WAITING);
        offer("b");
        offer("c");

        assertThat(leader.batch()).containsExactly("a", "b", "c");
        assertThat(other.looks).hasValue(1);
    }

    @Test
    void waitsWithoutPollingWhileEmpty() {
        queue(BatchPlanner.oneByOne());
        Waiter waiter = idle();

        assertThat(waiter.thread.getState()).as("asleep without an end").isEqualTo(Thread.State.WAITING);
        offer("a");

        assertThat(waiter.batch()).containsExactly("a");
        assertThat(waiter.looks).hasValue(2);
    }

    @Test
    void wakesNoInstanceUntilTheHoldEnds() {
        queue(new BatchPlanner(1, List.of(), 0));
        queue.hold(2);
        Waiter one = idle();
        Waiter other = idle();
        offer("a");
        assertThat(one.thread.getState()).as("asleep without an end").isEqualTo(Thread.State.WAITING);
        assertThat(other.thread.getState()).as("asleep without an end").isEqualTo(Thread.State.WAITING);

        offer("b");

        assertThat(List.of(one.batch(), other.batch())).containsExactlyInAnyOrder(List.of("a"), List.of("b"));
        assertThat(one.looks).hasValue(2);
        assertThat(other.looks).hasValue(2);
    }

    @Test
    void wakesAnInstanceWhenTheHoldEnds() {
        queue(BatchPlanner.oneByOne());
        queue.hold(2);
        Waiter waiter = idle();
        offer("a");
        assertThat(waiter.thread.getState()).as("asleep without an end").isEqualTo(Thread.State.WAITING);

        queue.endHold();

        assertThat(waiter.batch()).containsExactly("a");
    }

    @Test
    void piledUpRequestsWaitForAFreeInstance() {
        queue(new BatchPlanner(8, List.of(), 0));
        InstanceHandle busy = queue.source().register(() -> {}, () -> 0);
        offer("a");
        offer("b");
        offer("c");
        assertThat(queue.waiting()).isEqualTo(3);

        assertThat(queue.source().poll(busy)).isTrue();

        assertThat(end(busy)).containsExactly("a", "b", "c");
    }

    @Test
    void aLeaderSleepsUntilTheDelayIsOver() {
        queue(new BatchPlanner(8, List.of(), BRIEF));
        Waiter leader = idle();
        long start = System.nanoTime();

        offer("a", start);

        assertThat(leader.batch()).containsExactly("a");
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(BRIEF);
    }

    /** It waits for an hour otherwise, and this test for a minute. */
    @Test
    void sleepsNoLongerThanTheRestOfTheDelay() {
        queue(new BatchPlanner(8, List.of(), HOUR));
        Waiter leader = idle();

        offer("a", System.nanoTime() - HOUR + BRIEF);

        assertThat(leader.batch()).containsExactly("a");
    }

    @Test
    void aFullBatchWakesTheLeader() {
        queue(new BatchPlanner(2, List.of(), HOUR));
        Waiter leader = idle();
        offer("a");
        leader.await(Thread.State.TIMED_WAITING);

        offer("b");

        assertThat(leader.batch()).containsExactly("a", "b");
    }

    @Test
    void wakesTheLeaderForAPreferredSizeOnly() {
        queue(new BatchPlanner(8, List.of(3), HOUR));
        Waiter leader = idle();
        offer("a");
        leader.await(Thread.State.TIMED_WAITING);
        assertThat(leader.looks).hasValue(2);

        offer("b");
        leader.await(Thread.State.TIMED_WAITING);
        offer("c");

        assertThat(leader.batch()).containsExactly("a", "b", "c");
        assertThat(leader.looks).as("woken for what is full, and not before").hasValue(3);
    }

    @Test
    void wakesTheLeaderIfACancellationLeavesAPreferredSize() {
        queue(new BatchPlanner(8, List.of(3, 8), HOUR));
        Waiter leader = idle();
        offer("a");
        leader.await(Thread.State.TIMED_WAITING);
        ScheduledRequest cancelled = offer("cancelled", 4, System.nanoTime());
        offer("b", 2, System.nanoTime());
        assertThat(leader.looks).as("neither size is preferred").hasValue(2);

        cancelled.cancel();

        assertThat(leader.batch()).containsExactly("a", "b");
    }

    @Test
    void servesInOrderOfArrivalOverAllInstances() {
        queue(BatchPlanner.oneByOne());
        InstanceHandle one = queue.source().register(() -> {}, () -> 0);
        InstanceHandle other = queue.source().register(() -> {}, () -> 0);
        List.of("a", "b", "c", "d").forEach(this::offer);
        List<String> order = new ArrayList<>();

        for (InstanceHandle handle : List.of(other, one, one, other)) {
            assertThat(queue.source().poll(handle)).isTrue();
            order.addAll(end(handle));
        }

        assertThat(order).containsExactly("a", "b", "c", "d");
    }

    @Test
    void plansFromTheHeadOfTheQueue() {
        BatchPlanner planner = new BatchPlanner(2, List.of(), 100);
        PriorityPolicy levels = new PriorityPolicy(2, 2, QueuePolicy.NONE, Map.of());
        try (QueuedRequests queued = new QueuedRequests(planner, levels, FakeInstance::copy)) {
            queued.submit("low", 2);
            assertThat(queued.scheduler.step()).as("waits for another").isFalse();
            queued.submit("high", 1);
            queued.submit("higher than the first", 1);

            queued.scheduler.drain();

            assertThat(queued.batches()).containsExactly(List.of("high", "higher than the first"));
        }
    }

    @Test
    void appliesPoliciesBeforeItFormsABatch() {
        BatchPlanner planner = new BatchPlanner(2, List.of(), 0);
        try (QueuedRequests queued = new QueuedRequests(planner, WITH_TIMEOUT, FakeInstance::copy)) {
            queued.submit("late");
            queued.scheduler.clock.advanceNanos(11); // no timeout fired
            queued.submit("a");
            queued.submit("b");

            assertThat(queued.scheduler.step()).isTrue();

            assertThat(queued.batches()).containsExactly(List.of("a", "b"));
            queued.observer("late").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void rejectsExpiredRequestsOutsideTheLock() {
        try (QueuedRequests queued = new QueuedRequests(WITH_TIMEOUT)) {
            AtomicBoolean free = new AtomicBoolean();
            CheckedRequest checked = Requests.to(queued.model, queued.memory)
                    .floats("IN", Shape.of(1, 2), 0)
                    .of(1);
            long now = queued.scheduler.clock.getAsLong();
            ScheduledRequest late = new ScheduledRequest(
                    queued.scheduler.model,
                    queued.scheduler.order,
                    checked.arrivedAt(now),
                    new OnError(() -> free.set(isFree(queued.scheduler.queue))),
                    now);
            queued.scheduler.queue.offer(late, false);
            queued.scheduler.clock.advanceNanos(11);

            queued.scheduler.step();

            assertThat(late.isCompleted()).isTrue();
            assertThat(free).isTrue();
        }
    }

    /** Returns whether another thread can take the lock of a queue. */
    private static boolean isFree(RequestQueue queue) {
        try {
            return Thread.ofPlatform().daemon(true).start(queue::waiting).join(Duration.ofSeconds(30));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Runs an action when it receives an error. */
    private record OnError(Runnable action) implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(InferenceException error) {
            action.run();
        }
    }
}
