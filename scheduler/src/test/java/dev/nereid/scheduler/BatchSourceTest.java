package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** What becomes of a seat that is lent when taking a batch fails. */
final class BatchSourceTest {
    private final OutOfMemoryError noMemory = new OutOfMemoryError("for a test");

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
    private final BatchTaker taker = new BatchTaker(lock, BatchPlanner.oneByOne(), requests, () -> 0, null);
    private final Seats seats = new Seats(lock, taker);
    private final BatchSource source = new BatchSource(lock, requests, taker, seats, () -> 0);
    private final Seat lent = source.seat(() -> {}, () -> 0);

    /** Fails when it is asked whether it is the one to be called. */
    private final Seat faulty = source.seat(() -> {}, () -> {
        throw noMemory;
    });

    BatchSourceTest() {
        lock.lock();
        seats.takeBack(faulty);
        seats.takeBack(source.seat(() -> {}, () -> 0)); // there has to be a choice
        add("a");
        add("b");
        lent.waiting = true; // as its own thread does all the time
    }

    @Test
    void theBorrowerIsToldAndTheInstancesOwnThreadIsCalled() {
        assertThatThrownBy(() -> source.giveBack(lent, true)).isSameAs(noMemory);

        checkLeftToItsOwnThread();
    }

    @Test
    void theInstancesOwnThreadIsCalledTooIfNoOtherCanBeCalledInItsPlace() {
        assertThatThrownBy(() -> source.giveBack(lent, false)).isSameAs(noMemory);

        assertThat(lent.waiting).as("waiting").isFalse();
        lent.taken.add(requests.poll());
        answer();
    }

    @Test
    void whoOffersIsToldAndTheInstancesOwnThreadIsCalled() {
        assertThatThrownBy(() -> seats.serveLent(lent, 0)).isSameAs(noMemory);

        checkLeftToItsOwnThread();
    }

    private void checkLeftToItsOwnThread() {
        assertThat(lent.waiting).as("waiting").isFalse();
        assertThat(lent.taken).extracting(request -> request.call().id()).containsExactly("a");
        assertThat(requests.length()).isEqualTo(1);
        answer();
    }

    private void answer() {
        lent.taken.add(requests.poll());
        for (ScheduledRequest request : lent.taken) {
            request.fail(new BackendException(ErrorCode.INTERNAL, "no backend"));
            request.release();
        }
    }

    private void add(String id) {
        CheckedCall call =
                Calls.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 0).of(1);
        ScheduledRequest request = new ScheduledRequest(scope, null, call, new RecordingObserver(), 0, 0);
        requests.add(new QueueEntry(request, null, requests::remove));
    }
}
