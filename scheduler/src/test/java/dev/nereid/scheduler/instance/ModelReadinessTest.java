package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The readiness of a model with two instances. */
@Timeout(60)
final class ModelReadinessTest {
    private static final Readiness BROKEN = Readiness.notReady(ErrorCode.INTERNAL, "broken");
    private static final Readiness LATE =
            Readiness.notReady(ErrorCode.UNAVAILABLE, "instance 'i0' has not ended its readiness check within 10 s");

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeClock clock = new FakeClock();
    private final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
    private final FakeInstance first = new FakeInstance(FakeInstance::copy);
    private final FakeInstance second = new FakeInstance(FakeInstance::copy);

    /** The checks that have begun. */
    private final List<CompletableFuture<Void>> checks = new ArrayList<>();

    @AutoClose
    private final ModelScheduler scheduler = ModelScheduler.start(
            new ModelPlan(ModelSettings.builder("m", 1).build(), BatchingPolicy.NONE),
            List.of(
                    SteppedScheduler.slot("i0", first, RateProfile.NONE),
                    SteppedScheduler.slot("i1", second, RateProfile.NONE)),
            new SchedulerEnvironment(memory, clock, timeouts));

    private static void broken(FakeInstance instance, BackendException failure) {
        instance.readiness(() -> CompletableFuture.failedStage(failure));
    }

    /** Makes the checks of an instance end when the test says so. */
    private void later(FakeInstance instance) {
        instance.readiness(() -> {
            CompletableFuture<Void> check = new CompletableFuture<>();
            checks.add(check);
            return check;
        });
    }

    private CompletableFuture<Readiness> check() {
        return scheduler.checkReady().toCompletableFuture();
    }

    private void advance(long nanos) {
        clock.advanceNanos(nanos);
        timeouts.runExpired(clock.getAsLong());
    }

    @Test
    void isReadyWhileOneInstanceIs() {
        assertThat(check()).isCompletedWithValue(Readiness.READY);

        broken(first, new BackendException(ErrorCode.INTERNAL, "broken"));
        assertThat(check()).isCompletedWithValue(Readiness.READY);
        assertThat(scheduler.isReady()).isTrue();
        assertThat(scheduler.problems()).isEmpty();

        broken(second, new BackendException(ErrorCode.NOT_FOUND, "no file"));
        assertThat(check()).isCompletedWithValue(BROKEN);
        assertThat(scheduler.isReady()).isFalse();
        assertThat(scheduler.problems()).isEqualTo("instances that are not ready: i0 (broken), i1 (no file)");

        first.readiness(() -> CompletableFuture.completedStage(null));
        assertThat(check()).isCompletedWithValue(Readiness.READY);
    }

    @Test
    void isNotReadyAfterItsStop() {
        scheduler.drain();
        assertThat(check()).isCompletedWithValue(Readiness.NOT_READY);
    }

    /** The backend is about to let the instances go on, so that the server stays in service. */
    @Test
    void anUnavailableInstanceIsNotReadyAndLeavesTheServerReady() {
        later(first);
        first.availability.unavailable("process is started");
        second.availability.unavailable("process is started, too");

        assertThat(check()).isCompletedWithValue(Readiness.notReady(ErrorCode.UNAVAILABLE, "process is started"));
        assertThat(scheduler.isReady()).isTrue();
        assertThat(scheduler.problems())
                .isEqualTo("instances that are not ready: i0 (process is started), i1 (process is started, too)");
        assertThat(checks).as("is not checked").isEmpty();

        second.availability.available();
        assertThat(check()).isCompletedWithValue(Readiness.READY);
        assertThat(scheduler.problems()).isEmpty();
    }

    /** It takes batches to fail them at once, and another attempt follows. */
    @Test
    void aFailingInstanceTakesBatchesAndLeavesTheServerReady() {
        later(first);
        first.availability.failing("process does not start");
        second.availability.failing("process does not start either");

        assertThat(check()).isCompletedWithValue(Readiness.notReady(ErrorCode.UNAVAILABLE, "process does not start"));
        assertThat(scheduler.isReady()).isTrue();
        assertThat(scheduler.problems()).contains("i0 (process does not start), i1 (process does not start either)");
        assertThat(first.availability.isAvailable()).as("takes batches").isTrue();
        assertThat(checks).as("is not checked").isEmpty();

        second.availability.available();
        assertThat(check()).isCompletedWithValue(Readiness.READY);
    }

    @Test
    void waitsForACheckWhoseResultAllShare() {
        later(first);
        broken(second, new BackendException(ErrorCode.NOT_FOUND, "no file"));
        CompletableFuture<Readiness> one = check();
        CompletableFuture<Readiness> other = check();
        assertThat(scheduler.isReady()).as("as it was before").isTrue();
        assertThat(one).isNotDone();
        assertThat(checks).hasSize(1);

        checks.getFirst().complete(null);

        assertThat(one).isCompletedWithValue(Readiness.READY);
        assertThat(other).isCompletedWithValue(Readiness.READY);
        CompletableFuture<Readiness> third = check();
        assertThat(checks).hasSize(2);
        checks.get(1).completeExceptionally(new BackendException(ErrorCode.INTERNAL, "broken"));
        assertThat(third).as("the reason of what was known first").isCompletedWithValueMatching(r -> !r.isReady());
    }

    @Test
    void waitsForTheFirstOfSeveralChecksThatIsReady() {
        later(first);
        later(second);
        CompletableFuture<Readiness> check = check();
        checks.get(0).completeExceptionally(new BackendException(ErrorCode.INTERNAL, "broken"));
        assertThat(check).isNotDone();
        checks.get(1).complete(null);
        assertThat(check).isCompletedWithValue(Readiness.READY);

        CompletableFuture<Readiness> failing = check();
        checks.get(3).completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "no file"));
        checks.get(2).completeExceptionally(new BackendException(ErrorCode.INTERNAL, "broken"));
        assertThat(failing).isCompletedWithValue(BROKEN);
    }

    @Test
    void aCheckThatTakesTooLongIsNotReadyUntilItEnds() {
        later(first);
        later(second);
        CompletableFuture<Readiness> check = check();
        advance(ReadinessCheck.LIMIT_NANOS - 1);
        assertThat(check).isNotDone();
        advance(1);
        assertThat(check).isCompletedWithValue(LATE);
        assertThat(scheduler.isReady()).isFalse();
        assertThat(check()).isCompletedWithValue(LATE);
        assertThat(checks).as("not checked again").hasSize(2);

        checks.get(0).complete(null);
        CompletableFuture<Readiness> next = check();
        assertThat(next).isNotDone();
        assertThat(checks).hasSize(3);
        checks.get(2).complete(null);

        assertThat(next).isCompletedWithValue(Readiness.READY);
        assertThat(timeouts.runExpired(clock.getAsLong()))
                .as("no timeout is left")
                .isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void aCheckThatThrowsIsNotReady() {
        second.availability.unavailable("process is started");
        first.readiness(() -> {
            throw new IllegalStateException("a bug");
        });
        assertThat(check())
                .isCompletedWithValue(
                        Readiness.notReady(ErrorCode.INTERNAL, "readiness check of instance 'i0' failed: a bug"));
        first.readiness(() -> CompletableFuture.failedStage(new IllegalStateException("another bug")));
        assertThat(check())
                .isCompletedWithValue(
                        Readiness.notReady(ErrorCode.INTERNAL, "readiness check of instance 'i0' failed: another bug"));
    }
}
