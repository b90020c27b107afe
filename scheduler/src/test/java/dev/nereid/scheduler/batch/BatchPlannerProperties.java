package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The planner decides as the steps do by which the reference server forms a batch. */
final class BatchPlannerProperties {
    private static final int MAX_SIZE = 5;
    private static final int MAX_TIME = 20;

    /**
     * A request that waits.
     *
     * @param size its items
     * @param joins whether its inputs are equal to those of the first one
     * @param enqueued when it came
     */
    record Waiting(int size, boolean joins, long enqueued) {}

    /** A queue, and the rules for it. */
    record Situation(List<Waiting> queue, int maxBatch, Set<Integer> preferred, long delay, long now) {}

    /** The possible faults of a step. */
    enum Fault {
        NONE,
        STEP_1_STARTS_BEHIND_THE_HEAD,
        STEP_2_MARKS_NOTHING_BEFORE_THE_LARGEST_PREFERRED_SIZE,
        STEP_2_STOPS_BEFORE_THE_LARGEST_BATCH_ONLY_IF_PREFERRED,
        STEP_2_JOINS_OTHER_INPUTS,
        STEP_2_MARKS_THE_FIRST_PREFERRED_SIZE,
        STEP_3_COUNTS_FROM_THE_NEWEST,
        STEP_4_DELAY_OF_ZERO_COUNTS_AS_EXCEEDED,
        STEP_5_SENDS_NOTHING,
        STEP_6_WAITS_ALTHOUGH_NOTHING_CAN_JOIN,
        STEP_7_WAITS_WITHOUT_A_DELAY,
        STEP_10_WAITS_FOR_THE_WHOLE_DELAY
    }

    /** A decision: how many to take, or how long to wait if none. */
    record Decision(int taken, long waitNanos) {}

    /** The steps for an empty batch. The planner runs when an instance is free, which takes all requests at once. */
    private static final class Steps {
        private final Situation situation;
        private final Fault fault;
        private int count;
        private int best;
        private long size;
        private boolean sendNow;

        Steps(Situation situation, Fault fault) {
            this.situation = situation;
            this.fault = fault;
        }

        Decision decide() {
            List<Waiting> queue = situation.queue();
            long maxPreferred = situation.preferred().stream()
                    .mapToInt(Integer::intValue)
                    .max()
                    .orElse(situation.maxBatch());
            // Steps 1 and 2.
            int head = fault == Fault.STEP_1_STARTS_BEHIND_THE_HEAD && queue.size() > 1 ? 1 : 0;
            for (Waiting request : queue.subList(head, queue.size())) {
                if (stops(request, maxPreferred)) {
                    sendNow = true;
                    break;
                }
                add(request);
            }
            // Step 3.
            List<Waiting> pending = queue.subList(0, count);
            long age = pending.stream()
                    .mapToLong(Waiting::enqueued)
                    .map(came -> situation.now() - came)
                    .reduce(fault == Fault.STEP_3_COUNTS_FROM_THE_NEWEST ? Math::min : Math::max)
                    .orElse(0);
            boolean delays = situation.delay() > 0;
            boolean exceeded =
                    (delays || fault == Fault.STEP_4_DELAY_OF_ZERO_COUNTS_AS_EXCEEDED) && age >= situation.delay();
            if (best != 0 && !exceeded) { // step 4
                return new Decision(best, 0);
            }
            if (count == 0) { // step 5
                return new Decision(fault == Fault.STEP_5_SENDS_NOTHING ? 1 : 0, 0);
            }
            if ((sendNow && fault != Fault.STEP_6_WAITS_ALTHOUGH_NOTHING_CAN_JOIN) || size >= maxPreferred) { // step 6
                return new Decision(count, 0);
            }
            if (exceeded || (!delays && fault != Fault.STEP_7_WAITS_WITHOUT_A_DELAY)) { // step 7
                return new Decision(count, 0);
            }
            // Steps 8 and 9 are about a batch that has begun to form and still waits for an instance.
            long wait = situation.delay() - (fault == Fault.STEP_10_WAITS_FOR_THE_WHOLE_DELAY ? 0 : age); // step 10
            return new Decision(0, wait);
        }

        private boolean stops(Waiting request, long maxPreferred) {
            if (count == 0) {
                return false;
            }
            long after = size + request.size();
            if (after > maxPreferred
                    && best == 0
                    && fault != Fault.STEP_2_MARKS_NOTHING_BEFORE_THE_LARGEST_PREFERRED_SIZE) {
                best = count;
            }
            long limit = fault == Fault.STEP_2_STOPS_BEFORE_THE_LARGEST_BATCH_ONLY_IF_PREFERRED
                    ? Math.max(situation.maxBatch(), maxPreferred) + 1L
                    : situation.maxBatch();
            return after > limit || !(request.joins() || fault == Fault.STEP_2_JOINS_OTHER_INPUTS);
        }

        private void add(Waiting request) {
            size += request.size();
            count++;
            boolean marks = fault != Fault.STEP_2_MARKS_THE_FIRST_PREFERRED_SIZE || best == 0;
            if (marks && isPreferred()) {
                best = count;
            }
        }

        private boolean isPreferred() {
            return situation.preferred().isEmpty()
                    ? size == situation.maxBatch()
                    : situation.preferred().contains((int) size);
        }
    }

    @Property(tries = 20_000)
    void decidesAsTheSteps(@ForAll("situations") Situation situation) {
        assertThat(decided(situation)).isEqualTo(new Steps(situation, Fault.NONE).decide());
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
    void anyFaultIsFound(Fault fault) {
        Random random = new Random(4_711);
        boolean found = false;
        for (int i = 0; i < 20_000 && !found; i++) {
            Situation situation = situation(random);
            found = !decided(situation).equals(new Steps(situation, fault).decide());
        }

        assertThat(found).isTrue();
    }

    private static Decision decided(Situation situation) {
        BatchPlanner planner =
                new BatchPlanner(situation.maxBatch(), List.copyOf(situation.preferred()), situation.delay());
        View view = new View(situation.queue());
        int taken = planner.take(view, situation.now(), false);
        boolean waits = taken == 0 && !situation.queue().isEmpty();
        return new Decision(taken, waits ? planner.waitNanos(view, situation.now()) : 0);
    }

    @Provide
    Arbitrary<Situation> situations() {
        return Arbitraries.randomValue(BatchPlannerProperties::situation);
    }

    private static Situation situation(Random random) {
        int maxBatch = 1 + random.nextInt(8);
        List<Waiting> queue = random.ints(random.nextInt(7), 1, MAX_SIZE)
                .mapToObj(size -> new Waiting(size, random.nextInt(6) > 0, random.nextInt(MAX_TIME)))
                .toList();
        Set<Integer> preferred = Set.copyOf(
                random.ints(random.nextInt(3), 1, maxBatch + 1).boxed().toList());
        long delay = random.nextBoolean() ? 0 : 1 + random.nextInt(MAX_TIME);
        return new Situation(queue, maxBatch, preferred, delay, MAX_TIME + random.nextInt(MAX_TIME) - 1L);
    }

    /** The queue as the planner sees it. */
    private static final class View implements QueueView {
        private final List<Waiting> queue;
        private int at = -1;

        View(List<Waiting> queue) {
            this.queue = queue;
        }

        @Override
        public void rewind() {
            at = -1;
        }

        @Override
        public boolean next() {
            at++;
            return at < queue.size();
        }

        @Override
        public ScheduledRequest current() {
            throw new UnsupportedOperationException("current: a planner looks at sizes and times only");
        }

        @Override
        public int batchSize() {
            return queue.get(at).size();
        }

        @Override
        public long enqueuedNanos() {
            return queue.get(at).enqueued();
        }

        @Override
        public boolean joins() {
            return queue.get(at).joins();
        }
    }
}
