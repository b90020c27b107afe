package dev.nereid.server.demand;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.server.demand.Planning.Decisions;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests which models are loaded and evicted. Every model takes 10 bytes, the budget is 30. */
final class PlanningTest {
    private final Planning planning = new Planning(30);
    private final Map<String, ModelActions.ModelUse> uses = new HashMap<>();

    @BeforeEach
    void setUp() {
        for (String model : List.of("a", "b", "c", "d", "e")) {
            planning.expect(model, 10, false);
        }
    }

    @Test
    void loadsWhatFits() {
        Acquisition first = acquire("a");

        assertThat(decide().loads()).containsExactly("a");
        assertThat(planning.used()).isEqualTo(10);
        assertThat(decide().isEmpty()).isTrue();

        load("a");
        assertThat(decide().held()).containsExactly(first);
        assertThat(planning.used()).isEqualTo(10);
    }

    @Test
    void loadsAModelOnceForSeveralAcquisitions() {
        Acquisition first = acquire("a");
        Acquisition second = acquire("a");
        Acquisition both = acquire("a", "b");

        assertThat(decide().loads()).containsExactly("a", "b");
        load("a");
        assertThat(decide().held()).containsExactly(first, second);
        load("b");
        assertThat(decide().held()).containsExactly(both);
    }

    @Test
    void evictsTheLeastRecentlyUsedIdleModel() {
        loaded("a", "b", "c");
        use("a", 3, true);
        use("b", 1, false);
        use("c", 2, true);
        acquire("d");

        Decisions decisions = decide();
        assertThat(decisions.evictions()).containsExactly("c");
        assertThat(decisions.loads()).isEmpty();
        assertThat(decide().isEmpty()).isTrue();

        planning.evicted("c", true);
        assertThat(decide().loads()).as("its memory is not free yet").isEmpty();
        planning.closed("c", 10);
        assertThat(decide().loads()).containsExactly("d");
        assertThat(planning.used()).isEqualTo(30);
    }

    @Test
    void choosesAnotherModelIfOneIsInUseAfterAll() {
        loaded("a", "b", "c");
        use("a", 1, true);
        use("b", 2, true);
        acquire("d");
        assertThat(decide().evictions()).containsExactly("a");

        use("a", 5, false);
        planning.evicted("a", false);

        assertThat(decide().evictions()).containsExactly("b");
    }

    @Test
    void comparesTimesThatOverflow() {
        loaded("a", "b", "c");
        use("a", Long.MIN_VALUE + 5, true);
        use("b", Long.MAX_VALUE - 5, true);
        use("c", Long.MIN_VALUE, true);
        acquire("d");

        assertThat(decide().evictions()).containsExactly("b");
    }

    @Test
    void waitsWhileAllModelsAreInUse() {
        loaded("a", "b", "c");
        use("a", 1, false);
        Acquisition waiting = acquire("d");

        Decisions decisions = decide();
        assertThat(decisions.isEmpty()).isTrue();
        assertThat(decisions.isBlocked()).isTrue();

        planning.release(waiting);
        assertThat(decide().isBlocked()).isFalse();
    }

    @Test
    void accountsAModelThatGrowsOrShrinks() {
        loaded("a", "b");
        planning.resized("a", 10, 15);
        assertThat(planning.used()).isEqualTo(25);

        planning.resized("a", 15, 4);
        assertThat(planning.used()).isEqualTo(14);
        planning.closed("a", 4);
        assertThat(planning.used()).isEqualTo(10);
    }

    @Test
    void evictsForAModelThatGrowsBeyondTheBudget() {
        loaded("a", "b", "c");
        use("a", 1, true);
        use("b", 2, true);
        use("c", 0, true);
        planning.resized("c", 10, 12);
        assertThat(planning.used()).as("no more than the budget").isEqualTo(30);
        assertThat(planning.taken()).isEqualTo(32);
        assertThat(planning.snapshot()).containsEntry("c", 12L);
        assertThat(planning.isShort()).isTrue();

        assertThat(decide().evictions()).containsExactly("a");
        planning.evicted("a", true);
        planning.closed("a", 10);
        assertThat(decide().isEmpty()).isTrue();

        assertThat(planning.used()).isEqualTo(22);
        assertThat(planning.isShort()).isFalse();
        acquire("a");
        assertThat(decide().loads()).as("8 bytes are left").isEmpty();
    }

    @Test
    void reservesForTheNextLoadWhatTheLastOneTook() {
        loaded("a");
        planning.resized("a", 10, 14);
        planning.unloaded("a", new InferenceException(ErrorCode.UNAVAILABLE, "unloaded"));
        planning.closed("a", 14);

        acquire("a");

        assertThat(decide().loads()).containsExactly("a");
        assertThat(planning.used()).isEqualTo(10);
    }

    @Test
    void loadsAModelAgainThatGrewBeyondTheBudget() {
        loaded("a");
        use("a", 1, true);
        planning.resized("a", 10, 31);

        assertThat(decide().evictions()).containsExactly("a");
        Acquisition again = acquire("a");
        assertThat(decide().isEmpty()).as("its memory is not free yet").isTrue();
        planning.evicted("a", true);
        planning.closed("a", 31);

        assertThat(decide().loads()).containsExactly("a");
        load("a");
        assertThat(decide().held()).containsExactly(again);
        assertThat(planning.used()).isEqualTo(10);
    }

    @Test
    void doesNotRefuseAModelForWhatItTakesWhileItIsClosed() {
        loaded("a");
        planning.expect("p", 15, true);
        use("a", 1, true);
        planning.resized("a", 10, 31);
        assertThat(decide().evictions()).containsExactly("a");

        Acquisition again = acquire("a");

        assertThat(decide().refused()).isEmpty();
        planning.evicted("a", true);
        planning.closed("a", 31);
        assertThat(decide().loads()).containsExactly("a");
        assertThat(again.phase()).isEqualTo(Acquisition.Phase.GRANTED);
    }

    @Test
    void keepsWhatANewGenerationTookWhenAReplacedOneGrows() {
        loaded("a");
        planning.begun("a", 12);
        planning.expect("a", 12, false);
        planning.loaded("a");
        planning.resized("a", 10, 18);
        planning.closed("a", 18);
        planning.unloaded("a", new InferenceException(ErrorCode.UNAVAILABLE, "unloaded"));
        planning.closed("a", 12);

        acquire("a");

        assertThat(decide().loads()).containsExactly("a");
        assertThat(planning.used()).isEqualTo(12);
    }

    @Test
    void neverEvictsPinnedModels() {
        planning.expect("a", 10, true);
        loaded("a", "b", "c");
        use("a", 1, true);
        use("b", 9, true);
        acquire("d");

        assertThat(decide().evictions()).containsExactly("b");
    }

    @Test
    void neverEvictsModelsThatAreHeld() {
        loaded("b", "c");
        Acquisition held = acquire("a");
        decide();
        load("a");
        assertThat(decide().held()).containsExactly(held);
        use("a", 1, true);
        use("b", 2, true);
        acquire("d");
        assertThat(decide().evictions()).containsExactly("b");
        evict("b");
        assertThat(decide().loads()).containsExactly("d");

        acquire("e");
        planning.release(held);

        assertThat(decide().evictions()).containsExactly("a");
    }

    @Test
    void refusesWhatNeverFits() {
        planning.expect("large", 31, false);
        planning.expect("p", 15, true);
        Acquisition large = acquire("large");
        Acquisition two = acquire("a", "b");
        Acquisition one = acquire("c");

        Decisions decisions = decide();

        assertThat(decisions.refused()).containsOnlyKeys(large, two);
        assertThat(decisions.refused().get(large).publicMessage())
                .isEqualTo("model 'large' cannot be loaded: 31 bytes of memory, but the budget leaves 15 bytes beside"
                        + " pinned models (expected: a larger --model-memory-budget)");
        assertThat(decisions.loads()).containsExactly("c");
        assertThat(one.phase()).isEqualTo(Acquisition.Phase.GRANTED);
    }

    @Test
    void acquiresAllModelsOrNone() {
        loaded("a", "b");
        use("a", 1, false);
        use("b", 2, false);
        acquire("c", "d");

        Decisions decisions = decide();

        assertThat(decisions.isEmpty()).as("c alone would fit").isTrue();
        assertThat(planning.used()).isEqualTo(20);
        acquire("e");
        assertThat(decide().loads()).as("what fits passes").containsExactly("e");
    }

    @Test
    void doesNotBlockPipelinesThatNeedMoreThanFitsTogether() {
        Acquisition first = acquire("a", "b");
        Acquisition second = acquire("b", "c", "d");
        assertThat(decide().loads()).containsExactly("a", "b");
        load("a");
        load("b");
        assertThat(decide().held()).containsExactly(first);
        use("a", 1, true);
        use("b", 1, true);
        assertThat(decide().isEmpty()).as("both are held").isTrue();

        planning.release(first);

        assertThat(decide().evictions()).containsExactly("a");
        evict("a");
        assertThat(decide().loads()).containsExactly("c", "d");
        load("c");
        load("d");
        assertThat(decide().held()).containsExactly(second);
    }

    @Test
    void promisesFreedMemoryToOneAcquisitionOnly() {
        loaded("a", "b", "c");
        use("a", 1, true);
        use("b", 2, true);
        acquire("d");
        acquire("e");

        assertThat(decide().evictions()).containsExactly("a", "b");
        evict("a");
        assertThat(decide().loads()).containsExactly("d");
        evict("b");
        assertThat(decide().loads()).containsExactly("e");
    }

    @Test
    void loadsAModelAgainThatWasJustEvicted() {
        loaded("a", "b", "c");
        use("a", 1, true);
        acquire("d");
        assertThat(decide().evictions()).containsExactly("a");
        Acquisition again = acquire("a");
        use("b", 2, true);
        assertThat(decide().evictions()).as("room for both").containsExactly("b");

        evict("a");
        evict("b");

        assertThat(decide().loads()).containsExactly("d", "a");
        load("a");
        assertThat(decide().held()).containsExactly(again);
    }

    @Test
    void endsAcquisitionsOfALoadThatFailed() {
        Acquisition one = acquire("a");
        Acquisition both = acquire("a", "b");
        decide();
        InferenceException reason = new InferenceException(ErrorCode.INTERNAL, "broken");

        planning.failed("a", reason);

        assertThat(decide().refused()).containsEntry(one, reason).containsEntry(both, reason);
        assertThat(planning.used()).as("b is still loading").isEqualTo(10);
        assertThat(decide().isEmpty()).isTrue();
    }

    @Test
    void accountsWhatAModelTakesBeyondItsReservation() {
        loaded("b", "c");
        use("b", 1, true);
        Acquisition larger = acquire("a");
        decide();
        planning.begun("a", 15);
        planning.expect("a", 15, false);
        planning.loaded("a");
        assertThat(planning.used()).isEqualTo(30);

        Decisions decisions = decide();
        assertThat(decisions.held()).containsExactly(larger);
        assertThat(decisions.evictions()).containsExactly("b");
        evict("b");
        decide();

        assertThat(planning.snapshot()).containsEntry("a", 15L);
        assertThat(planning.used()).isEqualTo(25);
    }

    @Test
    void evictsAModelThatIsTooLargeAfterAll() {
        Acquisition larger = acquire("a");
        decide();
        planning.begun("a", 40);
        planning.expect("a", 40, false);
        planning.loaded("a");
        assertThat(decide().held()).containsExactly(larger);
        use("a", 1, true);

        planning.release(larger);

        assertThat(decide().evictions()).containsExactly("a");
        planning.evicted("a", true);
        planning.closed("a", 40);
        assertThat(planning.used()).isZero();
        assertThat(decide().isEmpty()).isTrue();
        Acquisition again = acquire("a");
        assertThat(decide().refused()).containsOnlyKeys(again);
    }

    @Test
    void accountsAReloadWhileTheFormerGenerationIsClosed() {
        loaded("a");
        planning.begun("a", 10);
        planning.loaded("a");
        assertThat(planning.used()).isEqualTo(20);

        planning.closed("a", 10);

        assertThat(planning.used()).isEqualTo(10);
    }

    @Test
    void endsWhatWaitsWhenTheServerStops() {
        loaded("a", "b");
        Acquisition loading = acquire("c");
        decide();
        Acquisition waiting = acquire("d");
        decide();
        InferenceException reason = new InferenceException(ErrorCode.UNAVAILABLE, "stops");

        planning.stop(reason);

        assertThat(decide().refused()).containsOnlyKeys(waiting);
        load("c");
        assertThat(decide().held()).containsExactly(loading);
    }

    private Acquisition acquire(String... models) {
        Acquisition acquisition = new Acquisition(List.of(models), (_, _) -> {});
        planning.acquire(acquisition);
        return acquisition;
    }

    private Decisions decide() {
        return planning.decide(uses);
    }

    private void use(String model, long nanos, boolean isIdle) {
        uses.put(model, new ModelActions.ModelUse(model, nanos, isIdle));
    }

    private void load(String model) {
        planning.begun(model, 10);
        planning.loaded(model);
    }

    private void loaded(String... models) {
        List<Acquisition> all = new ArrayList<>();
        for (String model : models) {
            all.add(acquire(model));
        }
        assertThat(decide().loads()).containsExactly(models);
        for (String model : models) {
            load(model);
        }
        assertThat(decide().held()).hasSize(models.length);
        all.forEach(planning::release);
    }

    private void evict(String model) {
        uses.remove(model);
        planning.evicted(model, true);
        planning.closed(model, 10);
    }
}
