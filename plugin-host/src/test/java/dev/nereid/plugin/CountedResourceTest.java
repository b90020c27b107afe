package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The states of a counted resource, one after another, and under threads that race. */
final class CountedResourceTest {
    private static final int THREADS = 6;
    private static final int STEPS = 400;

    @Test
    void waitsForTheCloseBeforeItOpensAnew() throws Exception {
        CountDownLatch closing = new CountDownLatch(1);
        CountDownLatch mayClose = new CountDownLatch(1);
        Checked lifecycle = new Checked() {
            @Override
            public void close(Thing thing) {
                closing.countDown();
                awaitUninterrupted(mayClose);
                super.close(thing);
            }
        };
        CountedResource<Thing> resource = new CountedResource<>("it", lifecycle, false);
        CountedResource.Lease<Thing> first = resource.acquire();

        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            Future<?> closed = threads.submit(first::close);
            closing.await();
            Future<CountedResource.Lease<Thing>> second = threads.submit(resource::acquire);
            assertThat(second.isDone()).isFalse();
            assertThat(lifecycle.opened).hasValue(1);
            mayClose.countDown();
            closed.get();
            second.get().close();
        }
        assertThat(lifecycle.opened).hasValue(2);
        lifecycle.check();
    }

    @Test
    void failsThoseThatWaitedForAnOpeningThatFails() throws Exception {
        CountDownLatch opening = new CountDownLatch(1);
        CountDownLatch mayFail = new CountDownLatch(1);
        CountedResource<Thing> resource = new CountedResource<>(
                "it",
                new Checked() {
                    @Override
                    public Thing open() {
                        opening.countDown();
                        awaitUninterrupted(mayFail);
                        throw new BackendException(ErrorCode.UNAVAILABLE, "no memory");
                    }
                },
                false);

        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            Future<?> first = threads.submit(resource::acquire);
            opening.await();
            Future<?> second = threads.submit(resource::acquire);
            mayFail.countDown();
            assertThatThrownBy(first::get).hasRootCauseMessage("no memory");
            assertThatThrownBy(second::get).hasRootCauseMessage("no memory");
        }
    }

    @Test
    void opensAfterAnErrorOfTheVirtualMachine() {
        AtomicBoolean failed = new AtomicBoolean();
        Checked lifecycle = new Checked() {
            @Override
            public Thing open() {
                if (!failed.getAndSet(true)) {
                    throw new OutOfMemoryError("Metaspace");
                }
                return super.open();
            }
        };
        CountedResource<Thing> resource = new CountedResource<>("it", lifecycle, false);

        assertThatThrownBy(resource::acquire).isInstanceOf(OutOfMemoryError.class);
        resource.acquire().close();
        lifecycle.check();
    }

    @Test
    void endsAWaitThatIsInterrupted() throws Exception {
        CountDownLatch opening = new CountDownLatch(1);
        CountDownLatch mayOpen = new CountDownLatch(1);
        CountedResource<Thing> resource = new CountedResource<>(
                "it",
                new Checked() {
                    @Override
                    public Thing open() {
                        opening.countDown();
                        awaitUninterrupted(mayOpen);
                        return super.open();
                    }
                },
                false);
        try (ExecutorService threads = Executors.newFixedThreadPool(1)) {
            Future<CountedResource.Lease<Thing>> first = threads.submit(resource::acquire);
            opening.await();
            Thread.currentThread().interrupt();
            assertThatThrownBy(resource::acquire).hasMessage("interrupted while it was created or closed");
            assertThat(Thread.interrupted()).isTrue();
            mayOpen.countDown();
            first.get().close();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void isNeverOpenTwiceNorClosedUnderALease(boolean kept) throws Exception {
        Checked lifecycle = new Checked();
        lifecycle.failOneIn = 5;
        CountedResource<Thing> resource = new CountedResource<>("it", lifecycle, kept);

        do { // until threads have met each other in closing and opening, unless the resource is kept
            race(resource);
        } while (!kept && lifecycle.opened.get() <= 10);

        resource.end();
        lifecycle.check();
        assertThat(kept).isEqualTo(lifecycle.opened.get() == 1);
    }

    @RepeatedTest(200)
    void closesOnceWhenTheEndMeetsTheLastLease() throws Exception {
        Checked lifecycle = new Checked();
        CountedResource<Thing> resource = new CountedResource<>("it", lifecycle, true);
        CountedResource.Lease<Thing> lease = resource.acquire();
        CountDownLatch start = new CountDownLatch(1);

        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            Future<?> ended = threads.submit(() -> {
                awaitUninterrupted(start);
                resource.end();
            });
            Future<?> released = threads.submit(() -> {
                awaitUninterrupted(start);
                lease.close();
            });
            start.countDown();
            ended.get();
            released.get();
        }

        lifecycle.check();
        assertThat(lifecycle.opened).hasValue(1);
    }

    private static void race(CountedResource<Thing> resource) throws Exception {
        CountDownLatch start = new CountDownLatch(THREADS);
        try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> all = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                SplittableRandom random = new SplittableRandom(thread);
                all.add(threads.submit(() -> {
                    start.countDown();
                    awaitUninterrupted(start);
                    List<CountedResource.Lease<Thing>> leases = new ArrayList<>();
                    for (int step = 0; step < STEPS; step++) {
                        if (leases.isEmpty() || (leases.size() < 3 && random.nextBoolean())) {
                            acquire(resource, leases);
                        } else {
                            leases.remove(random.nextInt(leases.size())).close();
                        }
                        leases.forEach(lease -> assertThat(lease.get().open).isTrue());
                    }
                    leases.forEach(CountedResource.Lease::close);
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        }
    }

    private static void acquire(CountedResource<Thing> resource, List<CountedResource.Lease<Thing>> leases) {
        try {
            leases.add(resource.acquire());
        } catch (BackendException e) {
            assertThat(e).hasMessage("not this time");
        }
    }

    private static void awaitUninterrupted(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Thing {
        private volatile boolean open = true;
    }

    /** Opens things, one at a time, and some never. */
    private static class Checked implements CountedResource.Lifecycle<Thing> {
        final AtomicInteger opened = new AtomicInteger();
        private final AtomicInteger tries = new AtomicInteger();
        private final AtomicInteger alive = new AtomicInteger();
        private final AtomicInteger faults = new AtomicInteger();
        private int failOneIn = Integer.MAX_VALUE;

        @Override
        public Thing open() {
            if (alive.incrementAndGet() != 1) {
                faults.incrementAndGet();
            }
            Thread.onSpinWait();
            if (tries.incrementAndGet() % failOneIn == 0) {
                alive.decrementAndGet();
                throw new BackendException(ErrorCode.UNAVAILABLE, "not this time");
            }
            opened.incrementAndGet();
            return new Thing();
        }

        @Override
        public void close(Thing thing) {
            if (!thing.open) {
                faults.incrementAndGet();
            }
            thing.open = false;
            Thread.onSpinWait();
            if (alive.decrementAndGet() != 0) {
                faults.incrementAndGet();
            }
        }

        /** Checks that never two things were open, and that none is. */
        void check() {
            assertThat(faults).hasValue(0);
            assertThat(alive).hasValue(0);
        }
    }
}
