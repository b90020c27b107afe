package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests when a backend's declaration of short executions is honored. */
final class DirectExecutionPolicyTest {
    private static final long SHORT = 1_000;
    private static final long LONG = 2_000_000;
    private static final long BLOCKED = 100_000_000;
    private static final int TRIAL = 64;
    private static final int PROBATION = 4096;
    private static final int MAX_PROBATION = 1 << 20;

    private final DirectExecutionPolicy executions = of(true, false);

    @BeforeEach
    void passTrial() {
        DirectTrial.pass(executions);
    }

    @Test
    void triesADeclarationOnTheInstancesThreadFirst() {
        DirectExecutionPolicy fresh = of(true, false);
        execute(fresh, TRIAL - 1, SHORT);
        assertThat(fresh.areTrusted()).isFalse();

        execute(fresh, 1, SHORT);

        assertThat(fresh.areTrusted()).isTrue();
    }

    @Test
    void prolongsTheTrialForALongExecution() {
        DirectExecutionPolicy fresh = of(true, false);
        execute(fresh, 1, LONG);
        execute(fresh, TRIAL + 32 - 1, SHORT);
        assertThat(fresh.areTrusted()).isFalse();

        execute(fresh, 1, SHORT);

        assertThat(fresh.areTrusted()).isTrue();
    }

    @Test
    void neverTrustsExecutionsThatAllBlock() {
        DirectExecutionPolicy fresh = of(true, false);
        execute(fresh, 2 * PROBATION, BLOCKED);
        assertThat(fresh.areTrusted()).isFalse();
    }

    @Test
    void isRefutedByOneDirectExecutionThatBlocks() {
        executions.recordDirect(BLOCKED, false);
        assertThat(executions.areTrusted()).isFalse();

        execute(MAX_PROBATION - 1, SHORT);
        assertThat(executions.areTrusted()).isFalse();
        execute(1, SHORT);

        assertThat(executions.areTrusted()).isTrue();
    }

    @Test
    void losesTrustByLongExecutionsThatTheBackendDefers() {
        executions.recordDirect(LONG, true);
        executions.recordDirect(LONG, true);
        assertThat(executions.areTrusted()).isTrue();
        executions.recordDirect(LONG, true);
        assertThat(executions.areTrusted()).isFalse();
    }

    @Test
    void isRefutedByOneExecutionThatBlocksTheInstancesThread() {
        execute(1, BLOCKED - 1);
        assertThat(executions.areTrusted()).as("a large batch").isTrue();

        execute(1, BLOCKED);

        assertThat(executions.areTrusted()).isFalse();
    }

    @Test
    void trustsAgainAfterManyShortExecutionsOnTheInstancesThread() {
        refute();
        execute(PROBATION - 1, SHORT);
        assertThat(executions.areTrusted()).isFalse();

        execute(1, SHORT);

        assertThat(executions.areTrusted()).isTrue();
        executions.recordDirect(LONG, false);
        executions.recordDirect(LONG, false);
        assertThat(executions.areTrusted()).as("after two of three strikes").isTrue();
    }

    @Test
    void isRefutedOnceByExecutionsOfOneTime() {
        refute();
        executions.recordDirect(LONG, false); // was under way on another thread

        execute(PROBATION + 32 - 1, SHORT);
        assertThat(executions.areTrusted()).isFalse();
        execute(1, SHORT);

        assertThat(executions.areTrusted()).isTrue();
    }

    @Test
    void wantsTwiceAsManyEachTimeUpToAMillion() {
        long needed = PROBATION;
        for (int refutation = 0; refutation < 12; refutation++) {
            refute();
            execute(needed - 1, SHORT);
            assertThat(executions.areTrusted()).isFalse();
            execute(1, SHORT);
            assertThat(executions.areTrusted()).isTrue();
            needed = Math.min(2 * needed, 1 << 20);
        }
    }

    @Test
    void hasLongExecutionsMadeGoodForBeforeItTrustsAgain() {
        refute();
        execute(1, LONG);
        execute(PROBATION, SHORT);
        assertThat(executions.areTrusted()).isFalse();

        execute(32, SHORT);

        assertThat(executions.areTrusted()).isTrue();
    }

    @Test
    void neverTrustsAgainWhatStaysLong() {
        refute();
        for (int i = 0; i < PROBATION; i++) {
            execute(1, LONG);
            execute(32, SHORT);
        }
        assertThat(executions.areTrusted()).isFalse();
    }

    @Test
    void trustsNoBackendThatDoesNotGiveItsWordAndNoDecoupledModel() {
        for (DirectExecutionPolicy never : new DirectExecutionPolicy[] {of(false, false), of(true, true)}) {
            for (int i = 0; i < 2 * PROBATION; i++) {
                never.recordOnInstanceThread(SHORT);
            }
            assertThat(never.areTrusted()).isFalse();
        }
    }

    private void refute() {
        for (int i = 0; i < 3; i++) {
            executions.recordDirect(LONG, false);
        }
        assertThat(executions.areTrusted()).isFalse();
    }

    private void execute(long times, long nanos) {
        execute(executions, times, nanos);
    }

    private static void execute(DirectExecutionPolicy executions, long times, long nanos) {
        for (long i = 0; i < times; i++) {
            executions.recordOnInstanceThread(nanos);
        }
    }

    private static DirectExecutionPolicy of(boolean promised, boolean decoupled) {
        ModelSettings model = ModelSettings.builder("m", 1)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        return new DirectExecutionPolicy(model, new ExecutionTraits("fake", false, promised));
    }
}
