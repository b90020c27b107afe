package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.spi.BackendException;
import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Tests of fences: on random schedules of real threads, no event is used after it was destroyed, and none is left. */
final class EventFenceProperties {
    private static final int THREADS = 3;
    private static final int FENCES = 50;

    private final FakeCudaDriver driver = new FakeCudaDriver();
    private final GpuContext gpu = new GpuContext(driver, 0);
    private final FakeClock clock = new FakeClock();
    private final EventPool events = new EventPool(gpu, new PollingWait(clock, clock::advanceNanos));

    @Property(tries = 100)
    void neverUsesDestroyedEvents(@ForAll long seed) throws InterruptedException, ExecutionException {
        Random random = new Random(seed);
        long stream = gpu.call(CudaDriver::createStream);
        EventPool pool = new EventPool(gpu, PollingWait.system());
        List<EventFence> fences = new ArrayList<>();
        for (int i = 0; i < FENCES; i++) {
            fences.add(pool.record(stream));
        }
        assertThat(pool.inUse()).isEqualTo(FENCES);
        try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                long order = random.nextLong();
                running.add(threads.submit(() -> queryAll(fences, new Random(order))));
            }
            int closeAt = random.nextInt(FENCES + 1);
            for (int i = 0; i < FENCES; i++) {
                if (i == closeAt) {
                    pool.close();
                }
                fences.get(i).release();
            }
            pool.close();
            for (Future<?> each : running) {
                each.get();
            }
        }
        assertThat(pool.inUse()).isZero();
        assertThat(driver.events()).isZero();
        gpu.run(it -> it.destroyStream(stream));
    }

    private static Void queryAll(List<EventFence> fences, Random random) {
        for (int i = 0; i < 4 * FENCES; i++) {
            EventFence fence = fences.get(random.nextInt(FENCES));
            if (random.nextBoolean()) {
                fence.isDone();
            } else {
                assertThat(fence.await(Duration.ofMinutes(1))).isTrue();
            }
        }
        return null;
    }

    @Example
    void waitsUntilTheWorkHasEnded() {
        EventFence fence = events.record(gpu.call(CudaDriver::createStream));

        assertThat(fence.isDone()).isFalse();
        assertThat(fence.await(Duration.ZERO)).isFalse();
        assertThat(fence.await(Duration.ofSeconds(1))).isTrue();
        assertThat(fence.isDone()).isTrue();
        fence.release();
        assertThatIllegalStateException().isThrownBy(fence::release);
        assertThat(fence.isDone()).isTrue();
        assertThat(events.inUse()).isZero();
    }

    @Example
    void usesEventsAgain() {
        long stream = gpu.call(CudaDriver::createStream);
        List<Long> handles = new ArrayList<>();
        EventFence first = events.record(stream);
        assertThat(first.withEvent(handles::add)).isTrue();
        first.release();
        EventFence second = events.record(stream);
        assertThat(second.withEvent(handles::add)).isTrue();

        assertThat(handles).hasSize(2).containsOnly(handles.getFirst());
        assertThat(first.withEvent(handles::add)).isFalse();
        assertThat(first.isDone()).as("asks nothing").isTrue();
        assertThat(second.isDone()).isFalse();
        second.release();
    }

    @Example
    void failsWithTheGpu() {
        EventFence fence = events.record(gpu.call(CudaDriver::createStream));
        driver.fail(719);

        assertThat(fence.isDone()).isTrue();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> fence.await(Duration.ofSeconds(1)))
                .withMessage("GPU 0: cuCtxSetCurrent: 719 CUDA_ERROR");
        fence.release();
        events.close();
        assertThat(gpu.failure()).isPresent();
    }

    @Example
    void pausesAfterSpinning() {
        List<Long> pauses = new ArrayList<>();
        PollingWait wait = new PollingWait(
                () -> {
                    clock.advanceNanos(4_000);
                    return clock.getAsLong();
                },
                pauses::add);

        assertThat(wait.until(() -> false, 16_500)).isFalse();
        assertThat(pauses).containsExactly(PollingWait.PAUSE_NANOS, 500L);
    }
}
