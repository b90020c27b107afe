package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Batch;
import java.util.ArrayList;
import java.util.List;

/** The expected states of the requests to one model, and invariants over them. Confined. */
final class ExpectedRequests {
    private final int maxBatchSize;
    private final List<ExpectedRequest> all = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<Integer> executed = new ArrayList<>();

    /** How many waits began. */
    private int orders;

    /**
     * Begins without any.
     *
     * @param maxBatchSize the maximum number of items in a batch
     */
    ExpectedRequests(int maxBatchSize) {
        this.maxBatchSize = maxBatchSize;
    }

    /** Adds a request, and returns its observer. */
    RecordingObserver add(ExpectedRequest request) {
        RecordingObserver observer = new RecordingObserver();
        all.add(request.in(orders++));
        observers.add(observer);
        return observer;
    }

    /** Returns the requests in the order of their arrivals. */
    List<ExpectedRequest> all() {
        return all;
    }

    List<RecordingObserver> observers() {
        return observers;
    }

    RecordingObserver observer(int index) {
        return observers.get(index);
    }

    /** Returns the requests in the order in which their executions began. */
    List<Integer> executed() {
        return executed;
    }

    /** Returns whether a request was neither executed nor completed. */
    boolean waits(int index) {
        return !executed.contains(index) && !observers.get(index).hasEnded();
    }

    /** Counts the waiting requests of a level. */
    long waiting(long level) {
        return all.stream()
                .filter(one -> one.level() == level && waits(one.index()))
                .count();
    }

    /** Records a batch that begins: all its requests may be executed, and go before all others. */
    void begin(Batch batch, long now) {
        int first = Integer.parseInt(batch.requests().getFirst().id());
        for (var request : batch.requests()) {
            ExpectedRequest taken = all.get(Integer.parseInt(request.id()));
            assertThat(waits(taken.index())).as("waited until now").isTrue();
            assertThat(taken.isDead(now)).as("executed after its timeout").isFalse();
            assertThat(taken.width()).isEqualTo(all.get(first).width());
            for (ExpectedRequest other : all) {
                assertThat(waits(other.index()) && !other.isDead(now) && other.goesBefore(taken, now))
                        .as("%s goes before %s", other, taken)
                        .isFalse();
            }
            executed.add(taken.index());
        }
        assertThat(batch.size()).isLessThanOrEqualTo(maxBatchSize);
    }

    /** Records that a request waits again, behind all others, unless it is completed. */
    void again(int index, long now) {
        if (!observers.get(index).hasEnded()) {
            executed.removeIf(other -> other == index);
            all.set(index, all.get(index).again(now, orders++));
        }
    }

    /** Of two executed requests, the one that began first completes first. */
    void checkOrder() {
        boolean open = false;
        for (int index : executed) {
            boolean ended = observers.get(index).hasEnded();
            assertThat(open && ended).as("request %s overtakes", index).isFalse();
            open |= !ended;
        }
    }

    /** No expired request waits. */
    void checkTime(long now) {
        for (ExpectedRequest one : all) {
            assertThat(waits(one.index()) && one.isDead(now))
                    .as("request %s waits after its timeout", one.index())
                    .isFalse();
        }
    }

    /** No request waits longer than the queue delay. */
    void checkDelay(long now, long delay) {
        for (ExpectedRequest one : all) {
            assertThat(waits(one.index()) && now - one.waiting().since() >= delay)
                    .as("request %s waits too long", one.index())
                    .isFalse();
        }
    }
}
