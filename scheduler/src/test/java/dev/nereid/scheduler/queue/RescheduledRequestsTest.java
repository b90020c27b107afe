package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.FailingTimer;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Requests that are rescheduled after an execution. */
final class RescheduledRequestsTest {
    private static final int NUMBER = 3;
    private static final long DEADLINE = 1_000;

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FailingTimer timer = new FailingTimer();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, () -> 0);
    private final RequestQueue queue = new RequestQueue(
            new BatchPlanner(8, List.of(), 0), PriorityPolicy.NONE, new EqualInputs(model), () -> 0, timer, null);
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final InstanceHandle handle;

    RescheduledRequestsTest() {
        queue.setRescheduledRequests();
        handle = queue.source().register(() -> {}, () -> 0);
    }

    @AfterEach
    void allIsOver() {
        assertThat(queue.waiting()).isZero();
        assertThat(scope.drain().count()).isZero();
        queue.stop();
        assertThat(queue.source().take(handle)).as("nothing comes back").isFalse();
        memory.close();
    }

    @Test
    void schedulesTheirDeadlinesAgain() {
        List<ScheduledRequest> rescheduled = execute();
        timer.fire(); // for the time before the execution

        rescheduler().reschedule(NUMBER, rescheduled);

        assertThat(timer.scheduled()).isEqualTo(2);
        end();
    }

    @Test
    void rejectsAllIfNoInstanceIsLeft() {
        List<ScheduledRequest> rescheduled = execute();
        assertThat(queue.source().deregister(handle)).isEmpty();

        rescheduler().reschedule(NUMBER, rescheduled);

        assertThat(observers)
                .hasSize(NUMBER)
                .allSatisfy(observer -> assertThat(observer.error().code()).isEqualTo(ErrorCode.UNAVAILABLE));
    }

    @Test
    void leavesThemInTheQueueIfTheirDeadlineCannotBeScheduled() {
        List<ScheduledRequest> rescheduled = execute();
        timer.fire();
        timer.failNext();

        assertThatThrownBy(() -> rescheduler().reschedule(NUMBER, rescheduled)).hasMessage("for a test");

        assertThat(queue.waiting()).isEqualTo(NUMBER);
        end();
    }

    @Test
    void failsAllIfOneCannotBeQueued() {
        List<ScheduledRequest> rescheduled = execute();
        rescheduled.get(1).setPosition(() -> {});

        assertThatThrownBy(() -> rescheduler().reschedule(NUMBER, rescheduled)).hasMessageStartingWith("position:");

        assertThat(observers)
                .hasSize(NUMBER)
                .allSatisfy(observer -> assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL));
    }

    private Rescheduler rescheduler() {
        return Objects.requireNonNull(handle.rescheduler());
    }

    /** Takes a batch, and ends its execution; returns its requests, which wait again. */
    private List<ScheduledRequest> execute() {
        for (int i = 0; i < NUMBER; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            CheckedRequest checked = Requests.to(model, memory)
                    .floats("IN", Shape.of(1, 2), 0)
                    .deadline(DEADLINE)
                    .of(1);
            queue.offer(new ScheduledRequest(scope, null, checked, observer, 0), false);
        }
        assertThat(queue.source().poll(handle)).isTrue();
        List<ScheduledRequest> rescheduled = new ArrayList<>();
        for (Executable inputs : handle.taken()) {
            ScheduledRequest request = inputs.request();
            request.setPosition(rescheduler().newPosition(request));
            assertThat(request.reschedule(1, 0)).isTrue();
            rescheduled.add(request);
        }
        handle.taken().clear();
        return rescheduled;
    }

    /** Completes the waiting requests. */
    private void end() {
        queue.drain().forEach(ScheduledRequest::abandon);
    }
}
