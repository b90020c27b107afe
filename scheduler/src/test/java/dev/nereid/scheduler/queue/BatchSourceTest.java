package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Direct execution when taking a batch fails. */
final class BatchSourceTest {
    private final StackOverflowError overflow = new StackOverflowError("for a test");

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, () -> 0);
    private final QueueLock lock = new QueueLock();
    private final WaitingRequests requests =
            new WaitingRequests(PriorityPolicy.NONE, new EqualInputs(scope.settings()));
    private final RequestBatcher batcher = new RequestBatcher(lock, BatchPlanner.oneByOne(), requests, () -> 0, null);
    private final IdleInstances idleInstances = new IdleInstances(lock, batcher);
    private final BatchSource source = new BatchSource(lock, batcher, idleInstances, () -> 0);
    private final InstanceHandle direct = source.register(() -> {}, () -> 0);

    /** Fails when its load is read for the choice of the instance to wake. */
    private final InstanceHandle faulty = source.register(() -> {}, () -> {
        throw overflow;
    });

    BatchSourceTest() {
        lock.lock();
        InstanceHandle other = source.register(() -> {}, () -> 0);
        for (InstanceHandle handle : List.of(direct, faulty, other)) {
            handle.thread = Thread.currentThread(); // in place of its own
        }
        idleInstances.addIdle(faulty);
        idleInstances.addIdle(other); // there has to be a choice
        add("a");
        add("b");
        direct.waiting = true; // as its own thread does all the time
    }

    @Test
    void throwsToTheDirectThreadAndWakesTheInstanceThread() {
        assertThatThrownBy(() -> source.finishDirectRun(direct, true)).isSameAs(overflow);

        checkLeftToTheInstanceThread();
    }

    @Test
    void wakesTheInstanceThreadIfNoOtherCanBeWoken() {
        assertThatThrownBy(() -> source.finishDirectRun(direct, false)).isSameAs(overflow);

        assertThat(direct.waiting).as("waiting").isFalse();
        direct.taken.add(requests.poll());
        complete();
    }

    @Test
    void throwsToTheOfferingThreadAndWakesTheInstanceThread() {
        assertThatThrownBy(() -> idleInstances.serveDirectly(direct, 0)).isSameAs(overflow);

        checkLeftToTheInstanceThread();
    }

    private void checkLeftToTheInstanceThread() {
        assertThat(direct.waiting).as("waiting").isFalse();
        assertThat(direct.taken)
                .extracting(taken -> taken.request().checked().id())
                .containsExactly("a");
        assertThat(requests.length()).isEqualTo(1);
        complete();
    }

    private void complete() {
        direct.taken.add(requests.poll());
        for (Executable taken : direct.taken) {
            taken.request().fail(new BackendException(ErrorCode.INTERNAL, "no backend"));
            taken.request().release();
        }
    }

    private void add(String id) {
        CheckedRequest checked = Requests.to(model, memory)
                .id(id)
                .floats("IN", Shape.of(1, 2), 0)
                .of(1);
        ScheduledRequest request = new ScheduledRequest(scope, null, checked, new RecordingObserver(), 0);
        requests.add(new QueueEntry(request, null, requests::remove));
    }
}
