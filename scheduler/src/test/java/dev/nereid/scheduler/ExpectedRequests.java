package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Batch;
import java.util.ArrayList;
import java.util.List;

/** What a test knows of the calls to one model, and what has to hold for them whatever happens. Confined. */
final class ExpectedRequests {
    private final int maxBatchSize;
    private final List<ExpectedRequest> all = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<Integer> executed = new ArrayList<>();

    /**
     * Begins without any.
     *
     * @param maxBatchSize the most items in a batch
     */
    ExpectedRequests(int maxBatchSize) {
        this.maxBatchSize = maxBatchSize;
    }

    /** Adds a call, and returns who is to observe it. */
    RecordingObserver add(ExpectedRequest call) {
        RecordingObserver observer = new RecordingObserver();
        all.add(call);
        observers.add(observer);
        return observer;
    }

    /** Returns the calls in the order in which they came. */
    List<ExpectedRequest> all() {
        return all;
    }

    List<RecordingObserver> observers() {
        return observers;
    }

    RecordingObserver observer(int index) {
        return observers.get(index);
    }

    /** Returns the calls in the order in which their executions began. */
    List<Integer> executed() {
        return executed;
    }

    /** Says whether a call neither was executed nor answered. */
    boolean waits(int index) {
        return !executed.contains(index) && !observers.get(index).hasEnded();
    }

    /** Counts the calls of a level that wait. */
    long waiting(long level) {
        return all.stream()
                .filter(one -> one.level() == level && waits(one.index()))
                .count();
    }

    /** Takes note of a batch that begins: only those are in it that may be executed, and that go before all others. */
    void begin(Batch batch, long now) {
        int first = Integer.parseInt(batch.requests().getFirst().id());
        for (var request : batch.requests()) {
            ExpectedRequest taken = all.get(Integer.parseInt(request.id()));
            assertThat(waits(taken.index())).as("waited until now").isTrue();
            assertThat(taken.isDead(now)).as("executed when its time is over").isFalse();
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

    /** Of two that were executed, the one that began first is answered first. */
    void checkOrder() {
        boolean open = false;
        for (int index : executed) {
            boolean ended = observers.get(index).hasEnded();
            assertThat(open && ended).as("request %s overtakes", index).isFalse();
            open |= !ended;
        }
    }

    /** No call waits whose time is over. */
    void checkTime(long now) {
        for (ExpectedRequest one : all) {
            assertThat(waits(one.index()) && one.isDead(now))
                    .as("request %s waits when its time is over", one.index())
                    .isFalse();
        }
    }

    /** No call waits for longer than for others to go with. */
    void checkDelay(long now, long delay) {
        for (ExpectedRequest one : all) {
            assertThat(waits(one.index()) && now - one.arrival() >= delay)
                    .as("request %s waits too long", one.index())
                    .isFalse();
        }
    }
}
