package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class BatchPlannerTest {
    /**
     * A queue of requests, written as their sizes from the front. {@code x} stands behind those that cannot join the
     * first. The first came at the time 0, the next at 1, and so on, but for those that say {@code @} when they came.
     */
    private static final class Sizes implements QueueView {
        private final List<String> requests;
        private int at = -1;

        private Sizes(List<String> requests) {
            this.requests = requests;
        }

        static Sizes of(String text) {
            return new Sizes(text.isEmpty() ? List.of() : List.of(text.split(" ", -1)));
        }

        @Override
        public void rewind() {
            at = -1;
        }

        @Override
        public boolean next() {
            at++;
            return at < requests.size();
        }

        @Override
        public ScheduledRequest current() {
            throw new UnsupportedOperationException("current: a planner looks at sizes and times only");
        }

        @Override
        public int batchSize() {
            return Integer.parseInt(requests.get(at).replaceFirst("x?(@.*)?$", ""));
        }

        @Override
        public long enqueuedNanos() {
            String request = requests.get(at);
            int said = request.indexOf('@');
            return said < 0 ? at : Long.parseLong(request.substring(said + 1));
        }

        @Override
        public boolean joins() {
            return !requests.get(at).contains("x");
        }
    }

    private static int take(BatchPlanner planner, String queue, long now) {
        return planner.take(Sizes.of(queue), now, false);
    }

    @ParameterizedTest
    @CsvSource({
        "'', 0", // nothing waits
        "1, 1",
        "1 1 1, 3",
        "1 1 1 1 1 1 1 1 1, 8", // up to the largest batch
        "5 3 1, 2", // exactly the largest batch
        "5 4 1, 1", // what would exceed it waits, and nothing overtakes
        "1 2x 1, 1", // what cannot be joined waits, and nothing overtakes
        "9, 1", // the first is taken whatever its size
    })
    void takesAllThatFitsWithoutADelay(String queue, int taken) {
        assertThat(take(new BatchPlanner(8, List.of(), 0), queue, 0)).isEqualTo(taken);
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1", // nothing is reached: everything
        "1 1 1, 2",
        "1 1 1 1 1, 4", // the largest that is reached
        "1 1 1 1 1 1 1 1 1, 4",
        "3, 1",
        "3 2, 1", // would pass the largest preferred size without meeting one
        "1 2, 2", // passes none
    })
    void prefersSizesWithoutADelay(String queue, int taken) {
        assertThat(take(new BatchPlanner(8, List.of(2, 4), 0), queue, 0)).isEqualTo(taken);
        assertThat(take(new BatchPlanner(8, List.of(2, 4), 0), queue, 1_000))
                .as("later")
                .isEqualTo(taken);
    }

    @ParameterizedTest
    @CsvSource({
        "1, 0", // may wait
        "1 1, 2", // a preferred size
        "1 1 1, 2", // the largest preferred size on the way, and the rest waits
        "1 1 1 1, 4",
        "1 1 1 1 1 1 1 1, 4",
        "3, 0",
        "3 1, 2", // 4
        "3 2, 1", // would pass the largest preferred size without meeting one
        "1 2, 0", // 3 is not preferred and may grow
        "1 2 1x, 2", // 3 cannot grow
        "5, 1", // beyond the largest preferred size
        "3 6, 1", // 9 is too much
    })
    void prefersSizesWhileTheOldestMayWait(String queue, int taken) {
        BatchPlanner planner = new BatchPlanner(8, List.of(4, 2), 100);

        assertThat(take(planner, queue, 99)).isEqualTo(taken);
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1 1 1, 3", "3 2, 2", "1 1 1 1 1 1 1 1 1, 8", "1 2 1x, 2"})
    void takesAllThatFitsOnceTheOldestHasWaited(String queue, int taken) {
        BatchPlanner planner = new BatchPlanner(8, List.of(4, 2), 100);

        assertThat(take(planner, queue, 100)).isEqualTo(taken);
        assertThat(planner.take(Sizes.of(queue), 0, true)).as("in a hurry").isEqualTo(taken);
    }

    @ParameterizedTest
    @CsvSource({"1 1 1, 0", "4 4, 2", "4 5, 1", "4 3, 0"})
    void prefersTheLargestBatchIfNothingElseIsSaid(String queue, int taken) {
        assertThat(take(new BatchPlanner(8, List.of(), 100), queue, 0)).isEqualTo(taken);
    }

    @ParameterizedTest
    @CsvSource({"1 1, 1", "8 1, 1"})
    void takesOneByOne(String queue, int taken) {
        assertThat(take(BatchPlanner.oneByOne(), queue, 0)).isEqualTo(taken);
    }

    @ParameterizedTest
    @CsvSource({"1@50 1@0, 2", "1@50 1@1, 0", "1@0 1x@50, 1", "8@50 1@0, 1"})
    void countsTheDelayFromTheOldestAcrossLevels(String queue, int taken) {
        assertThat(take(new BatchPlanner(8, List.of(), 100), queue, 100)).isEqualTo(taken);
    }

    @Test
    void takesARequestOfTheFutureWithoutADelay() {
        // The time of one thread, the request of another that read the clock a little later.
        assertThat(take(new BatchPlanner(8, List.of(), 0), "1@7", 5)).isEqualTo(1);
    }

    @Test
    void doesNotOverflow() {
        String huge = Integer.MAX_VALUE + " " + Integer.MAX_VALUE;

        assertThat(take(BatchPlanner.oneByOne(), huge, 0)).isEqualTo(1);
        assertThat(take(new BatchPlanner(Integer.MAX_VALUE, List.of(), 0), huge, 0))
                .isEqualTo(1);
    }

    @Test
    void saysHowLongTheOldestMayWait() {
        BatchPlanner planner = new BatchPlanner(8, List.of(), 100);

        assertThat(planner.waitNanos(Sizes.of("1@9 1@0"), 30)).isEqualTo(70);
        assertThat(planner.waitNanos(Sizes.of("1 1"), 130)).isEqualTo(-30);
    }

    @Test
    void returnsTheSameDelayAfterADecision() {
        BatchPlanner planner = new BatchPlanner(8, List.of(), 100);
        Sizes queue = Sizes.of("1@9 1@0");

        assertThat(planner.take(queue, 30, false)).isZero();
        assertThat(planner.waitNanos(queue, 30)).isEqualTo(70);
    }

    @Test
    void countsTheBatchesToBeHad() {
        BatchPlanner planner = new BatchPlanner(8, List.of(), 0);

        assertThat(planner.batches(3, 8)).isEqualTo(1);
        assertThat(planner.batches(3, 9)).isEqualTo(2);
        assertThat(BatchPlanner.oneByOne().batches(3, 9)).isEqualTo(3);
    }
}
