package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.spi.BackendException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests of actions that follow work of a GPU. */
final class CompletionThreadTest {
    private final FakeCudaDriver driver = new FakeCudaDriver();
    private final GpuContext gpu = new GpuContext(driver, 0);
    private final EventPool events = new EventPool(gpu);
    private final long stream = gpu.call(CudaDriver::createStream);

    @Test
    void runsActionsInTheirOrderBeforeItCloses() {
        List<Integer> order = new ArrayList<>();
        try (CompletionThread thread = new CompletionThread("completions")) {
            for (int i = 0; i < 1000; i++) {
                int number = i;
                thread.add(events.record(stream), failure -> {
                    assertThat(failure).isNull();
                    order.add(number);
                });
            }
        }
        assertThat(order).isEqualTo(IntStream.range(0, 1000).boxed().toList());
        assertThat(events.inUse()).isZero();
    }

    @Test
    void doesWhatGoesBeforeTheEndOfTheWork() {
        List<String> ran = new ArrayList<>();
        try (CompletionThread thread = new CompletionThread("completions")) {
            thread.add(events.record(stream), _ -> ran.add("first"));
            EventFence fence = events.record(stream);
            thread.add(
                    fence,
                    () -> {
                        assertThat(fence.withEvent(event -> ran.add("before"))).isTrue();
                        throw new IllegalStateException("of a test");
                    },
                    failure -> {
                        assertThat(failure).isNull();
                        assertThat(fence.withEvent(event -> ran.add("never"))).isFalse();
                        ran.add("second");
                    });
        }
        assertThat(ran).containsExactly("first", "before", "second");
        assertThat(events.inUse()).isZero();
    }

    @Test
    void continuesAfterAnActionThatThrows() {
        List<String> ran = new ArrayList<>();
        try (CompletionThread thread = new CompletionThread("completions")) {
            thread.add(events.record(stream), _ -> {
                throw new IllegalStateException("of a test");
            });
            thread.add(events.record(stream), _ -> ran.add("second"));
        }
        assertThat(ran).containsExactly("second");
    }

    @Test
    void waitsAgainAfterAnErrorThatIsNotOfTheGpu() {
        List<String> ran = new ArrayList<>();
        AtomicInteger errors = new AtomicInteger(3);
        PollingWait failing = new PollingWait(
                () -> {
                    if (errors.getAndDecrement() > 0) {
                        throw new OutOfMemoryError("of a test");
                    }
                    return System.nanoTime();
                },
                LockSupport::parkNanos);
        EventPool pool = new EventPool(gpu, failing);
        CompletionThread thread = new CompletionThread("completions");
        for (int i = 0; i < 3; i++) {
            EventFence fence = pool.record(stream);
            thread.add(fence, failure -> {
                assertThat(failure).isNull();
                assertThat(fence.isDone()).isTrue();
                ran.add("ran");
            });
        }
        thread.close();

        assertThat(ran).hasSize(3);
        assertThat(errors.get()).isNegative();
        assertThat(pool.inUse()).isZero();
    }

    @Test
    void passesTheFailureOfTheGpu() {
        List<@Nullable BackendException> failures = new ArrayList<>();
        CompletionThread thread = new CompletionThread("completions");
        EventFence first = events.record(stream);
        EventFence second = events.record(stream);
        driver.fail(719);
        thread.add(first, failures::add);
        thread.add(second, failures::add);
        thread.close();

        assertThat(failures)
                .extracting(failure -> Objects.requireNonNull(failure).getMessage())
                .containsExactly(
                        "GPU 0: cuCtxSetCurrent: 719 CUDA_ERROR",
                        "GPU 0: has failed: cuCtxSetCurrent: 719 CUDA_ERROR: restart the server");
        assertThatIllegalStateException().isThrownBy(() -> thread.add(first, _ -> {}));
    }
}
