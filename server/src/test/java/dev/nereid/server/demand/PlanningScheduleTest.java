package dev.nereid.server.demand;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.server.demand.ModelActions.ModelUse;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Random schedules against a simple model of the world, which knows what is loaded, used and held, and checks each
 * decision. Actions complete in any order, also with failures, models take other amounts than was expected, and some
 * grow beyond the budget or shrink while they serve.
 */
@Tag("slow")
final class PlanningScheduleTest {
    private static final int STEPS = 4_000;
    private static final int SCHEDULES = 25;

    private enum State {
        UNLOADED,
        LOADING,
        LOADED,
        EVICTING,
        CLOSING
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void keepsToTheBudgetAndDecidesEverything(long seed) {
        for (int i = 0; i < SCHEDULES; i++) {
            new World(new Random(seed * 1_000 + i), i % 3 == 0, i % 3 == 1).run();
        }
    }

    private static final class World {
        private final Random random;
        private final boolean isExact;
        private final boolean isGrowing;
        private final long budget;
        private final Planning planning;
        private final Map<String, State> states = new TreeMap<>();
        private final Map<String, Long> loadSizes = new HashMap<>();
        private final Map<String, Long> sizes = new HashMap<>();
        private final Map<String, Long> usedAt = new HashMap<>();
        private final Set<String> busy = new TreeSet<>();
        private final Set<String> pinned = new TreeSet<>();
        private final List<Acquisition> undecided = new ArrayList<>();
        private final List<Acquisition> held = new ArrayList<>();
        private final Set<Acquisition> decided = new HashSet<>();
        private long now;

        World(Random random, boolean isExact, boolean isGrowing) {
            this.random = random;
            this.isExact = isExact;
            this.isGrowing = isGrowing;
            budget = 20L + random.nextInt(60);
            planning = new Planning(budget);
            for (int i = 0; i < 8; i++) {
                String model = "m" + i;
                boolean isPinned = i == 0 && random.nextBoolean();
                states.put(model, State.UNLOADED);
                sizes.put(model, 1L + random.nextInt(isPinned ? 10 : 25));
                loadSizes.put(model, size(model));
                usedAt.put(model, 0L);
                if (isPinned) {
                    pinned.add(model);
                }
                planning.expect(model, expected(model), isPinned);
            }
        }

        private long expected(String model) {
            return isExact ? size(model) : Math.max(1, size(model) + random.nextInt(7) - 3);
        }

        private long size(String model) {
            return sizes.get(model);
        }

        void run() {
            for (int i = 0; i < STEPS; i++) {
                step();
                check();
            }
            settle();
        }

        private void step() {
            now++;
            String model = "m" + random.nextInt(8);
            switch (random.nextInt(isGrowing ? 13 : 12)) {
                case 0, 1 -> acquire(random.nextInt(3) + 1);
                case 2 -> finishLoad(model, random.nextInt(5) > 0);
                case 3 -> finishLoad(model, true);
                case 4, 5 -> finishEviction(model);
                case 6 -> finishClose(model);
                case 7 -> toggleUse(model);
                case 8 -> abandon();
                case 9, 10 -> releaseOne();
                case 12 -> resize(model);
                default -> decide();
            }
        }

        private void acquire(int count) {
            if (undecided.size() > 12) {
                return;
            }
            Set<String> models = new TreeSet<>();
            for (int i = 0; i < count; i++) {
                models.add("m" + random.nextInt(8));
            }
            Acquisition acquisition = new Acquisition(List.copyOf(models), (_, _) -> {});
            undecided.add(acquisition);
            planning.acquire(acquisition);
        }

        private void finishLoad(String model, boolean succeeds) {
            if (states.get(model) != State.LOADING) {
                return;
            }
            if (succeeds) {
                sizes.put(model, loadSizes.get(model));
                planning.begun(model, size(model));
                planning.expect(model, size(model), pinned.contains(model));
                planning.loaded(model);
                states.put(model, State.LOADED);
                usedAt.put(model, now);
            } else {
                planning.failed(model, new InferenceException(ErrorCode.INTERNAL, "failed"));
                states.put(model, State.UNLOADED);
            }
        }

        private void finishEviction(String model) {
            if (states.get(model) == State.EVICTING) {
                boolean isEvicted = !busy.contains(model);
                planning.evicted(model, isEvicted);
                states.put(model, isEvicted ? State.CLOSING : State.LOADED);
            }
        }

        private void finishClose(String model) {
            if (states.get(model) == State.CLOSING) {
                planning.closed(model, size(model));
                states.put(model, State.UNLOADED);
            }
        }

        private void resize(String model) {
            if (states.get(model) == State.LOADED || states.get(model) == State.EVICTING) {
                long before = size(model);
                sizes.put(model, random.nextInt(4) == 0 ? budget + 1 + random.nextInt(20) : 1L + random.nextInt(25));
                planning.resized(model, before, size(model));
            }
        }

        private void toggleUse(String model) {
            if (!busy.remove(model) && (states.get(model) == State.LOADED || states.get(model) == State.EVICTING)) {
                busy.add(model);
                usedAt.put(model, now);
            }
        }

        private void abandon() {
            if (!undecided.isEmpty() && random.nextInt(4) == 0) {
                planning.release(undecided.remove(random.nextInt(undecided.size())));
            }
        }

        private void releaseOne() {
            if (!held.isEmpty()) {
                planning.release(held.remove(random.nextInt(held.size())));
            }
        }

        private Planning.Decisions decide() {
            Map<String, ModelUse> uses = new HashMap<>();
            states.forEach((model, state) -> {
                if (state == State.LOADED) {
                    uses.put(model, new ModelUse(model, usedAt.get(model), !busy.contains(model)));
                }
            });
            Planning.Decisions decisions = planning.decide(uses);
            decisions.evictions().forEach(this::checkEviction);
            checkOrder(decisions.evictions(), uses);
            for (String model : decisions.loads()) {
                // What is closing may be loaded again: its former generation is accounted until it is closed.
                assertThat(states.get(model)).isIn(State.UNLOADED, State.CLOSING);
                if (states.get(model) == State.CLOSING) {
                    planning.closed(model, size(model)); // the world keeps one generation of a model
                }
                states.put(model, State.LOADING);
            }
            decisions.evictions().forEach(model -> states.put(model, State.EVICTING));
            for (Acquisition acquisition : decisions.held()) {
                decided(acquisition);
                assertThat(acquisition.models()).allMatch(model -> states.get(model) == State.LOADED);
                held.add(acquisition);
            }
            decisions.refused().forEach(this::checkRefusal);
            return decisions;
        }

        /** No model is refused for what it has grown to. */
        private void checkRefusal(Acquisition acquisition, InferenceException reason) {
            decided(acquisition);
            if (isGrowing && pinned.isEmpty() && acquisition.models().size() == 1) {
                long atLoad = loadSizes.get(acquisition.models().getFirst()) + 3; // at most that is expected
                assertThat(reason.publicMessage().equals("failed") || atLoad > budget)
                        .as(reason.publicMessage())
                        .isTrue();
            }
        }

        private void checkEviction(String model) {
            assertThat(states.get(model)).isEqualTo(State.LOADED);
            assertThat(busy).doesNotContain(model);
            assertThat(pinned).doesNotContain(model);
            assertThat(held).noneMatch(acquisition -> acquisition.models().contains(model));
        }

        /** One eviction alone is that of the least recently used model that nothing keeps. */
        private void checkOrder(List<String> evictions, Map<String, ModelUse> uses) {
            if (isGrowing // a model that has grown stays at first
                    || evictions.size() != 1
                    || !undecided.stream().allMatch(one -> one.models().size() == 1)) {
                return;
            }
            Set<String> kept = new HashSet<>(pinned);
            held.forEach(one -> kept.addAll(one.models()));
            undecided.forEach(one -> kept.addAll(one.models()));
            long chosen = usedAt.get(evictions.getFirst());
            uses.values().stream()
                    .filter(use -> use.isIdle() && !kept.contains(use.key()))
                    .forEach(use -> assertThat(use.usedNanos()).isGreaterThanOrEqualTo(chosen));
        }

        private void decided(Acquisition acquisition) {
            assertThat(decided.add(acquisition)).as("decided once").isTrue();
            assertThat(undecided.remove(acquisition)).as("not abandoned").isTrue();
        }

        private void check() {
            assertThat(planning.used()).isBetween(0L, budget);
            if (isExact) {
                long taken = 0;
                for (Map.Entry<String, State> model : states.entrySet()) {
                    taken += model.getValue() == State.UNLOADED ? 0 : size(model.getKey());
                }
                assertThat(planning.used()).isEqualTo(taken);
            }
        }

        /** Once everything ends and nothing is in use, every acquisition is decided. */
        private void settle() {
            busy.clear();
            for (int i = 0; i < 500 && !undecided.isEmpty(); i++) {
                decide();
                for (String model : states.keySet()) {
                    finishLoad(model, true);
                    finishEviction(model);
                    finishClose(model);
                }
                decide();
                while (!held.isEmpty()) {
                    releaseOne();
                }
                check();
            }
            assertThat(undecided)
                    .as("%s of %s, pinned %s", planning.snapshot(), budget, pinned)
                    .extracting(Acquisition::models)
                    .isEmpty();
        }
    }
}
