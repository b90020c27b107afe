package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.repository.ModelFingerprint;
import dev.nereid.server.repository.TreeStamp;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What is loaded and unloaded after one look at the repository after the other; times in seconds. */
final class PollStateTest {
    private static final ModelFingerprint OLD = files(1);
    private static final ModelFingerprint NEW = files(2);

    private final PollState state = new PollState(Duration.ofSeconds(10), Duration.ofSeconds(2));

    private static ModelFingerprint files(long nanos) {
        return new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(nanos, 1, 1));
    }

    @Test
    void takesAModelUpWhenItsFilesAreStable() {
        assertDecision(look(0, Map.of("m", OLD)), "", "", 2);
        assertDecision(look(1, Map.of("m", OLD)), "", "", 1);
        assertDecision(look(2, Map.of("m", OLD)), "m", "", 10);
        state.ended("m", true, seconds(3));
        assertDecision(look(12, Map.of("m", OLD)), "", "", 10);
    }

    @Test
    void leavesAModelAloneWhileItIsCopied() {
        assertDecision(look(0, Map.of("m", files(1))), "", "", 2);
        assertDecision(look(2, Map.of("m", files(2))), "", "", 2);
        assertDecision(look(4, Map.of("m", files(3))), "", "", 2);
        assertDecision(look(6, Map.of("m", files(3))), "m", "", 10);
    }

    @Test
    void unloadsAModelThatStaysAway() {
        load("m");
        assertDecision(look(20, Map.of()), "", "", 2);
        assertDecision(look(21, Map.of("m", OLD)), "", "", 10); // moved away and back
        assertDecision(look(30, Map.of()), "", "", 2);
        assertDecision(look(32, Map.of()), "", "m", 10);
        state.ended("m", true, seconds(32));
        assertDecision(look(42, Map.of()), "", "", 10);
    }

    @Test
    void unloadsAModelOfTheStartThatVanishedBeforeTheFirstLook() {
        state.begin(Set.of("m", "kept"));
        assertDecision(look(0, Map.of("kept", OLD)), "", "", 2);
        assertDecision(look(2, Map.of("kept", OLD)), "kept", "m", 10);
        state.ended("m", true, seconds(3));
        state.ended("kept", true, seconds(3));
        assertDecision(look(12, Map.of("kept", OLD)), "", "", 10);
    }

    @Test
    void decidesNothingAboutAModelThatIsStillLoading() {
        look(0, Map.of("m", OLD));
        assertDecision(look(2, Map.of("m", OLD)), "m", "", 10);
        assertDecision(look(12, Map.of("m", NEW)), "", "", 10);
        assertDecision(look(22, Map.of("m", NEW)), "", "", 10);
        state.ended("m", true, seconds(23));
        assertDecision(look(32, Map.of("m", NEW)), "", "", 2);
        assertDecision(look(34, Map.of("m", NEW)), "m", "", 10);
    }

    @Test
    void triesAFailedLoadAgainAfterTwiceTheTimeEachTime() {
        look(0, Map.of("m", OLD));
        look(2, Map.of("m", OLD));
        state.ended("m", false, seconds(2));
        assertDecision(look(11, Map.of("m", OLD)), "", "", 10);
        assertDecision(look(12, Map.of("m", OLD)), "m", "", 10);
        state.ended("m", false, seconds(12));
        assertDecision(look(31, Map.of("m", OLD)), "", "", 10);
        assertDecision(look(32, Map.of("m", OLD)), "m", "", 10);
        long now = 32;
        for (int retry = 2; retry < 12; retry++) {
            state.ended("m", false, seconds(now));
            long pause = 10L * Math.min(PollState.MAX_BACKOFF, 1L << retry);
            assertDecision(look(now + pause - 1, Map.of("m", OLD)), "", "", 10);
            now += pause;
            assertDecision(look(now, Map.of("m", OLD)), "m", "", 10);
        }
        state.ended("m", true, seconds(now));
        assertDecision(look(now + 10_000, Map.of("m", OLD)), "", "", 10);
    }

    @Test
    void takesNewFilesOfAFailedModelUpAtOnce() {
        look(0, Map.of("m", OLD));
        look(2, Map.of("m", OLD));
        state.ended("m", false, seconds(2));
        assertDecision(look(3, Map.of("m", NEW)), "", "", 2);
        assertDecision(look(5, Map.of("m", NEW)), "m", "", 10);
    }

    @Test
    void needsOneLookWithoutAWindow() {
        PollState eager = new PollState(Duration.ofSeconds(10), Duration.ZERO);

        assertDecision(eager.look(Map.of("m", OLD), seconds(0)), "m", "", 10);
    }

    private void load(String name) {
        look(0, Map.of(name, OLD));
        look(2, Map.of(name, OLD));
        state.ended(name, true, seconds(2));
    }

    private PollState.Decision look(long second, Map<String, ModelFingerprint> present) {
        return state.look(present, seconds(second));
    }

    /** Far from zero, and across the end of the scale: times are compared by their difference. */
    private static long seconds(long second) {
        return Long.MAX_VALUE - TimeUnit.SECONDS.toNanos(5) + TimeUnit.SECONDS.toNanos(second);
    }

    private static void assertDecision(PollState.Decision decision, String loads, String unloads, long pause) {
        assertThat(String.join(",", decision.loads())).as("loads").isEqualTo(loads);
        assertThat(String.join(",", decision.unloads())).as("unloads").isEqualTo(unloads);
        assertThat(decision.pauseNanos()).as("pause").isEqualTo(TimeUnit.SECONDS.toNanos(pause));
    }
}
