package dev.nereid.scheduler.admission;

import static dev.nereid.scheduler.admission.RequestAdmission.Verdict.ADMITTED;
import static dev.nereid.scheduler.admission.RequestAdmission.Verdict.TOO_MANY_BYTES;
import static dev.nereid.scheduler.admission.RequestAdmission.Verdict.TOO_MANY_REQUESTS;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The bounds themselves, also where many threads come at once. */
@Timeout(60)
final class RequestAdmissionTest {
    @Test
    void leavesNoTraceOfWhatItRefuses() {
        AdmissionCounts server = new AdmissionCounts(new AdmissionLimits(3, 100));
        RequestAdmission load = new RequestAdmission(server, new AdmissionLimits(2, 50));
        assertThat(load.enter(30)).isEqualTo(ADMITTED);

        assertThat(load.enter(21)).isEqualTo(TOO_MANY_BYTES);
        assertThat(load.enter(20)).isEqualTo(ADMITTED);
        assertThat(load.enter(0)).isEqualTo(TOO_MANY_REQUESTS);

        assertThat(load.requests()).isEqualTo(2);
        assertThat(load.bytes()).isEqualTo(50);
        assertThat(server.requests.count()).isEqualTo(2);
        assertThat(server.bytes.count()).isEqualTo(50);
        load.leave(30);
        load.leave(20);
        assertThat(server.requests.count() + server.bytes.count() + load.requests() + load.bytes())
                .isZero();
    }

    @Test
    void checksEachOfTheFourLimits() {
        assertThat(new RequestAdmission(new AdmissionCounts(AdmissionLimits.NONE), new AdmissionLimits(0, 9)).enter(10))
                .isEqualTo(TOO_MANY_BYTES);
        assertThat(new RequestAdmission(new AdmissionCounts(new AdmissionLimits(0, 9)), AdmissionLimits.NONE).enter(10))
                .isEqualTo(TOO_MANY_BYTES);
        AdmissionCounts server = new AdmissionCounts(new AdmissionLimits(1, 0));
        RequestAdmission full = new RequestAdmission(server, AdmissionLimits.NONE);
        assertThat(full.enter(1)).isEqualTo(ADMITTED);
        assertThat(full.enter(1)).isEqualTo(TOO_MANY_REQUESTS);
        assertThat(new RequestAdmission(server, AdmissionLimits.NONE).enter(1)).isEqualTo(TOO_MANY_REQUESTS);
    }

    @Test
    void staysExactAtTheEndOfTheNumbers() {
        RequestAdmission load =
                new RequestAdmission(new AdmissionCounts(AdmissionLimits.NONE), new AdmissionLimits(0, Long.MAX_VALUE));
        assertThat(load.enter(Long.MAX_VALUE - 1)).isEqualTo(ADMITTED);

        assertThat(load.enter(2)).isEqualTo(TOO_MANY_BYTES);
        assertThat(load.enter(Long.MAX_VALUE)).isEqualTo(TOO_MANY_BYTES);
        assertThat(load.enter(1)).isEqualTo(ADMITTED);
    }

    /** Many threads, two models, four bounds: what the threads themselves count never exceeds any of them. */
    @Test
    void neverExceedsALimit() throws InterruptedException {
        AdmissionLimits serverLimits = new AdmissionLimits(5, 300);
        AdmissionLimits modelLimits = new AdmissionLimits(4, 200);
        AdmissionCounts server = new AdmissionCounts(serverLimits);
        List<Counted> models = List.of(
                new Counted(new RequestAdmission(server, modelLimits)),
                new Counted(new RequestAdmission(server, modelLimits)));
        AtomicLong requests = new AtomicLong();
        AtomicLong bytes = new AtomicLong();
        AtomicLong admitted = new AtomicLong();
        List<String> violations = new CopyOnWriteArrayList<>();
        int threads = 8;
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Thread> running = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            SplittableRandom random = new SplittableRandom(t);
            running.add(Thread.ofPlatform().start(() -> {
                await(start);
                for (int i = 0; i < 20_000; i++) {
                    Counted model = models.get(random.nextInt(2));
                    long size = random.nextLong(0, 120);
                    if (model.load.enter(size) != ADMITTED) {
                        continue;
                    }
                    // Counted after the entry and before the leave: never more than is in flight.
                    check(violations, "requests", requests.incrementAndGet(), serverLimits.requests());
                    check(violations, "bytes", bytes.addAndGet(size), serverLimits.bytes());
                    check(violations, "requests of a model", model.requests.incrementAndGet(), modelLimits.requests());
                    check(violations, "bytes of a model", model.bytes.addAndGet(size), modelLimits.bytes());
                    if (random.nextInt(4) == 0) {
                        Thread.onSpinWait();
                    }
                    admitted.incrementAndGet();
                    requests.decrementAndGet();
                    bytes.addAndGet(-size);
                    model.requests.decrementAndGet();
                    model.bytes.addAndGet(-size);
                    model.load.leave(size);
                }
            }));
        }
        for (Thread thread : running) {
            thread.join();
        }

        assertThat(violations).isEmpty();
        assertThat(admitted.get()).isPositive();
        assertThat(server.requests.count()).isZero();
        assertThat(server.bytes.count()).isZero();
        assertThat(models).allMatch(model -> model.load.requests() == 0 && model.load.bytes() == 0);
    }

    /** However many are refused meanwhile, one that fits is never turned away. */
    @Test
    void refusalsBlockNoOtherRequest() throws InterruptedException {
        RequestAdmission load =
                new RequestAdmission(new AdmissionCounts(AdmissionLimits.NONE), new AdmissionLimits(10, 100));
        AtomicBoolean over = new AtomicBoolean();
        List<Thread> refused = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            refused.add(Thread.ofPlatform().start(() -> {
                while (!over.get()) {
                    assertThat(load.enter(101)).isEqualTo(TOO_MANY_BYTES);
                }
            }));
        }

        int turnedAway = 0;
        for (int i = 0; i < 50_000; i++) {
            if (load.enter(100) == ADMITTED) {
                load.leave(100);
            } else {
                turnedAway++;
            }
        }
        over.set(true);
        for (Thread thread : refused) {
            thread.join();
        }

        assertThat(turnedAway).isZero();
    }

    private static void check(List<String> violations, String what, long count, long bound) {
        if (count > bound) {
            violations.add(what + ": " + count + " (expected: at most " + bound + ")");
        }
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new AssertionError(e);
        }
    }

    private static final class Counted {
        final RequestAdmission load;
        final AtomicLong requests = new AtomicLong();
        final AtomicLong bytes = new AtomicLong();

        Counted(RequestAdmission load) {
            this.load = load;
        }
    }
}
