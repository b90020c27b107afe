package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Leases against a close, on one thread and on several. See also {@code LeaseCounterStress}. */
final class LeaseCounterTest {
    private final AtomicInteger ends = new AtomicInteger();

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 8, 100})
    void endsWithTheLastLease(int processors) {
        LeaseCounter leases = new LeaseCounter(processors);
        assertThat(leases.acquire()).isTrue();
        assertThat(leases.acquire()).isTrue();

        leases.close(ends::incrementAndGet);

        assertThat(leases.acquire()).isFalse();
        leases.release();
        assertThat(ends).hasValue(0);
        leases.release();
        assertThat(ends).hasValue(1);
    }

    @Test
    void endsAtOnceWithoutLeases() {
        LeaseCounter leases = new LeaseCounter();
        leases.acquire();
        leases.release();

        leases.close(ends::incrementAndGet);

        assertThat(ends).hasValue(1);
        assertThat(leases.acquire()).isFalse();
    }

    /** Each thread has a stripe of its own: those of one are negative, of the other positive. */
    @Test
    void countsLeasesThatOtherThreadsRelease() throws Exception {
        LeaseCounter leases = new LeaseCounter(8);
        try (ExecutorService others = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 100; i++) {
                assertThat(others.submit(leases::acquire).get()).isTrue();
            }
            leases.close(ends::incrementAndGet);
            for (int i = 0; i < 99; i++) {
                others.submit(leases::release).get();
                assertThat(ends).hasValue(0);
            }
            others.submit(leases::release).get();
        }
        assertThat(ends).hasValue(1);
    }

    /** Two threads on one stripe wait for each other's cache line. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4, 16, 100})
    void spreadsThreads(int processors) {
        LeaseCounter leases = new LeaseCounter(processors);
        int shared = 0;
        for (long thread = 1; thread <= 1000; thread++) {
            assertThat(leases.stripe(thread)).as("threads in a row").isNotEqualTo(leases.stripe(thread + 1));
            for (int other = 1; other <= 100; other++) {
                shared += leases.stripe(thread) == leases.stripe(thread + other) ? 1 : 0;
            }
        }

        assertThat(shared / 100_000.0).isLessThanOrEqualTo(processors == 1 ? 0.15 : 0.5 / Math.min(processors, 16));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void suspendsWithoutLeasesAlone(int processors) {
        LeaseCounter leases = new LeaseCounter(processors);
        leases.acquire();

        assertThat(leases.suspend()).isFalse();
        assertThat(leases.acquire()).isFalse();
        leases.resume();
        assertThat(leases.acquire()).isTrue();
        leases.release();
        leases.release();
        assertThat(leases.suspend()).isTrue();
        leases.close(ends::incrementAndGet);

        assertThat(ends).hasValue(1);
        assertThat(leases.acquire()).isFalse();
    }

    @Test
    void countsLeasesThatAreReleasedWhileItIsSuspended() {
        LeaseCounter leases = new LeaseCounter();
        leases.acquire();
        leases.suspend();
        leases.release();
        leases.resume();

        leases.close(ends::incrementAndGet);

        assertThat(ends).hasValue(1);
    }

    @Tag("slow")
    @Test
    void neverEndsDuringALease() throws Exception {
        for (int round = 0; round < 200; round++) {
            LeaseCounter leases = new LeaseCounter(4);
            AtomicInteger ended = new AtomicInteger();
            CountDownLatch begun = new CountDownLatch(4);
            List<Future<Integer>> users = new ArrayList<>();
            try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
                for (int i = 0; i < 4; i++) {
                    users.add(threads.submit(() -> use(leases, begun, ended)));
                }
                begun.await();
                leases.close(ended::incrementAndGet);
                for (Future<Integer> user : users) {
                    assertThat(user.get()).as("ends seen during a lease").isZero();
                }
            }
            assertThat(ended).hasValue(1);
        }
    }

    private static int use(LeaseCounter leases, CountDownLatch begun, AtomicInteger ended) {
        int early = 0;
        boolean first = true;
        while (leases.acquire()) {
            early += ended.get();
            if (first) {
                begun.countDown();
                first = false;
            }
            leases.release();
        }
        return early;
    }
}
