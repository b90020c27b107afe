package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.repository.ModelFingerprint;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The loads and unloads after each of several scans of the repository; times in seconds. */
final class PollStateTest {
    private static final ModelFingerprint OLD = files(1);
    private static final ModelFingerprint NEW = files(2);

    private final PollState state = new PollState(Duration.ofSeconds(10), Duration.ofSeconds(2));

    private static ModelFingerprint files(long nanos) {
        return new ModelFingerprint(Map.of(), Map.of(), new ModelFingerprint.TreeStamp(nanos, 1, 1));
    }

    @Test
    void takesAModelUpWhenItsFilesAreStable() {
        assertDecision(scan(0, Map.of("m", OLD)), "", "", 2);
        assertDecision(scan(1, Map.of("m", OLD)), "", "", 1);
        assertDecision(scan(2, Map.of("m", OLD)), "m", "", 10);
        state.ended("m", true, seconds(3));
        assertDecision(scan(12, Map.of("m", OLD)), "", "", 10);
    }

    @Test
    void leavesAModelAloneWhileItIsCopied() {
        assertDecision(scan(0, Map.of("m", files(1))), "", "", 2);
        assertDecision(scan(2, Map.of("m", files(2))), "", "", 2);
        assertDecision(scan(4, Map.of("m", files(3))), "", "", 2);
        assertDecision(scan(6, Map.of("m", files(3))), "m", "", 10);
    }

    @Test
    void unloadsAModelThatStaysAway() {
        load("m");
        assertDecision(scan(20, Map.of()), "", "", 2);
        assertDecision(scan(21, Map.of("m", OLD)), "", "", 10); // moved away and back
        assertDecision(scan(30, Map.of()), "", "", 2);
        assertDecision(scan(32, Map.of()), "", "m", 10);
        state.ended("m", true, seconds(32));
        assertDecision(scan(42, Map.of()), "", "", 10);
    }

    @Test
    void unloadsAModelOfTheStartThatVanishedBeforeTheFirstScan() {
        state.begin(Set.of("m", "kept"));
        assertDecision(scan(0, Map.of("kept", OLD)), "", "", 2);
        assertDecision(scan(2, Map.of("kept", OLD)), "kept", "m", 10);
        state.ended("m", true, seconds(3));
        state.ended("kept", true, seconds(3));
        assertDecision(scan(12, Map.of("kept", OLD)), "", "", 10);
    }

    @Test
    void decidesNothingAboutAModelThatIsStillLoading() {
        scan(0, Map.of("m", OLD));
        assertDecision(scan(2, Map.of("m", OLD)), "m", "", 10);
        assertDecision(scan(12, Map.of("m", NEW)), "", "", 10);
        assertDecision(scan(22, Map.of("m", NEW)), "", "", 10);
        state.ended("m", true, seconds(23));
        assertDecision(scan(32, Map.of("m", NEW)), "", "", 2);
        assertDecision(scan(34, Map.of("m", NEW)), "m", "", 10);
    }

    @Test
    void triesAFailedLoadAgainAfterTwiceTheTimeEachTime() {
        scan(0, Map.of("m", OLD));
        scan(2, Map.of("m", OLD));
        state.ended("m", false, seconds(2));
        assertDecision(scan(11, Map.of("m", OLD)), "", "", 10);
        assertDecision(scan(12, Map.of("m", OLD)), "m", "", 10);
        state.ended("m", false, seconds(12));
        assertDecision(scan(31, Map.of("m", OLD)), "", "", 10);
        assertDecision(scan(32, Map.of("m", OLD)), "m", "", 10);
        long now = 32;
        for (int retry = 2; retry < 12; retry++) {
            state.ended("m", false, seconds(now));
            long pause = 10L * Math.min(PollState.MAX_BACKOFF, 1L << retry);
            assertDecision(scan(now + pause - 1, Map.of("m", OLD)), "", "", 10);
            now += pause;
            assertDecision(scan(now, Map.of("m", OLD)), "m", "", 10);
        }
        state.ended("m", true, seconds(now));
        assertDecision(scan(now + 10_000, Map.of("m", OLD)), "", "", 10);
    }

    @Test
    void takesNewFilesOfAFailedModelUpAtOnce() {
        scan(0, Map.of("m", OLD));
        scan(2, Map.of("m", OLD));
        state.ended("m", false, seconds(2));
        assertDecision(scan(3, Map.of("m", NEW)), "", "", 2);
        assertDecision(scan(5, Map.of("m", NEW)), "m", "", 10);
    }

    @Test
    void needsOneScanWithoutAWindow() {
        PollState eager = new PollState(Duration.ofSeconds(10), Duration.ZERO);

        assertDecision(eager.decide(Map.of("m", OLD), seconds(0)), "m", "", 10);
    }

    private void load(String name) {
        scan(0, Map.of(name, OLD));
        scan(2, Map.of(name, OLD));
        state.ended(name, true, seconds(2));
    }

    private PollState.Decision scan(long second, Map<String, ModelFingerprint> present) {
        return state.decide(present, seconds(second));
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
