package dev.nereid.scheduler.rate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Device;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.jspecify.annotations.Nullable;

/** Properties of the rate limiter under any order of events. */
final class RateLimiterProperties {
    private static final int STEPS = 200;
    private static final int GLOBAL = 3;

    @Property(tries = 300)
    void neverGivesOutMoreThanThereIs(@ForAll long seed, @ForAll @IntRange(min = 1, max = 8) int instances) {
        Run run = new Run(seed, instances);
        for (int step = 0; step < STEPS; step++) {
            run.step();
            run.check();
        }
    }

    @Property(tries = 300)
    void endsWithAllReturned(@ForAll long seed, @ForAll @IntRange(min = 1, max = 8) int instances) {
        Run run = new Run(seed, instances);
        for (int step = 0; step < STEPS; step++) {
            run.step();
        }
        run.finish();

        assertThat(run.all).noneMatch(actor -> actor.holds);
        assertThat(run.limiter.waiting()).isZero();
        // All of the resource is free again: an instance that takes all of it is granted a permit at once.
        Actor greedy = new Actor(new int[] {GLOBAL, 2}, 1, run.limiter, run);
        greedy.stage();
        assertThat(greedy.holds).isTrue();
    }

    @Property(tries = 300)
    void alwaysGrantsAPermit(@ForAll long seed, @ForAll @IntRange(min = 1, max = 8) int instances) {
        Run run = new Run(seed, instances);
        for (int step = 0; step < STEPS; step++) {
            run.step();
            boolean waits = run.all.stream().anyMatch(actor -> actor.requests && !actor.closed);
            boolean runs = run.all.stream().anyMatch(actor -> actor.holds);
            assertThat(runs || !waits).as("no instance runs although one waits").isTrue();
        }
    }

    @Property(tries = 300)
    void theFirstIsNeverOvertaken(@ForAll long seed, @ForAll @IntRange(min = 2, max = 8) int instances) {
        Run run = new Run(seed, instances);
        for (int step = 0; step < STEPS; step++) {
            Actor first = run.first();
            run.granted.clear();
            run.step();
            boolean still = first != null && !first.closed && first.requests && !first.holds;
            // An instance that was granted a permit before the first one must have arrived with a lower load, or with
            // an
            // equal one and a higher priority.
            for (Actor granted : run.granted) {
                assertThat(!still || Actor.ORDER.compare(granted, first) < 0)
                        .as("granted with load %d before %d", granted.stagedLoad, first == null ? 0 : first.stagedLoad)
                        .isTrue();
            }
        }
    }

    /**
     * Instances of two resources that take random steps. All devices share one of the resources, the other belongs to
     * the processors.
     */
    private static final class Run {
        final RateLimiter limiter = new RateLimiter(List.of(
                new RateLimiter.ResourceLimit("G", GLOBAL, OptionalInt.empty()),
                new RateLimiter.ResourceLimit("D", 2, OptionalInt.of(0))));
        final List<Actor> all = new ArrayList<>();
        final List<Actor> granted = new ArrayList<>();
        private final SplittableRandom random;
        private long stagings;

        Run(long seed, int instances) {
            random = new SplittableRandom(seed);
            for (int i = 0; i < instances; i++) {
                int[] need = {random.nextInt(GLOBAL + 1), random.nextInt(3)};
                all.add(new Actor(need, random.nextInt(4), limiter, this));
            }
        }

        void step() {
            Actor actor = all.get(random.nextInt(all.size()));
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> actor.stage();
                case 4, 5 -> actor.release();
                case 6 -> actor.giveBack();
                default -> {
                    if (random.nextInt(10) == 0) {
                        actor.close();
                    }
                }
            }
        }

        /** Ends all executions. */
        void finish() {
            for (boolean found = true; found; ) {
                found = false;
                for (Actor actor : all) {
                    if (actor.holds) {
                        found = true;
                        actor.release();
                    }
                }
            }
        }

        void check() {
            for (int resource = 0; resource < 2; resource++) {
                int at = resource;
                int taken = all.stream()
                        .filter(actor -> actor.holds)
                        .mapToInt(actor -> actor.need[at])
                        .sum();
                assertThat(taken).isLessThanOrEqualTo(resource == 0 ? GLOBAL : 2);
            }
        }

        /** Returns the waiting instance that goes first; {@code null} if none waits. */
        @Nullable
        Actor first() {
            return all.stream()
                    .filter(actor -> actor.requests && !actor.holds && !actor.closed)
                    .min(Actor.ORDER)
                    .orElse(null);
        }
    }

    /** An instance as a test knows it. */
    private static final class Actor {
        /** Who has had less, then the higher priority, then who has waited longer. */
        static final Comparator<Actor> ORDER = Comparator.<Actor>comparingLong(actor -> actor.stagedLoad)
                .thenComparingInt(actor -> actor.weight)
                .thenComparingLong(actor -> actor.stagedOrder);

        final int[] need;
        private final int weight;
        private final RateLimitRegistration registration;
        private final Run run;
        boolean requests;
        boolean holds;
        boolean closed;
        long stagedLoad;
        long stagedOrder;

        Actor(int[] need, int priority, RateLimiter limiter, Run run) {
            this.need = need;
            this.weight = Math.max(1, priority);
            this.run = run;
            registration = limiter.register(
                    Device.CPU,
                    new RateProfile(
                            priority,
                            List.of(
                                    new RateProfile.Resource("G", true, need[0]),
                                    new RateProfile.Resource("D", false, need[1]))));
        }

        void stage() {
            if (!requests && !closed) {
                requests = true;
                noteStaging();
                registration.stage(() -> {
                    assertThat(holds).as("granted twice").isFalse();
                    requests = false;
                    holds = true;
                    run.granted.add(this);
                });
            }
        }

        private void noteStaging() {
            stagedLoad = registration.load();
            stagedOrder = run.stagings++;
        }

        void release() {
            end(true);
        }

        void giveBack() {
            end(false);
        }

        private void end(boolean executed) {
            if (holds) {
                holds = false;
                if (requests) { // staged again in the same step
                    stagedLoad = registration.load() + (executed ? weight : 0);
                    stagedOrder = run.stagings++;
                }
                if (executed) {
                    registration.release();
                } else {
                    registration.releaseUnused();
                }
            }
        }

        void close() {
            closed = true;
            requests = false;
            registration.close();
            registration.close();
        }
    }
}
