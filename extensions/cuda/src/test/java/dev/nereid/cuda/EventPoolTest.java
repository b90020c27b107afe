package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Tests of the marks at the end of work. */
final class EventPoolTest {
    private final FakeCudaDriver driver = new FakeCudaDriver();
    private final GpuContext gpu = new GpuContext(driver, 0);
    private final AtomicInteger waits = new AtomicInteger();
    private final EventPool events = new EventPool(gpu, new PollingWait(System::nanoTime, _ -> {}));
    private final long stream = gpu.call(CudaDriver::createStream);

    @Test
    void marksTheEndOfTheWorkThatItAppends() {
        EventFence fence = events.recordAfter(used -> waits.incrementAndGet(), stream);

        assertThat(waits).hasValue(1);
        assertThat(fence.await(Duration.ofSeconds(30))).isTrue();
        fence.release();
        assertThat(events.inUse()).isZero();
    }

    @Test
    void awaitsWhatWasAppendedBeforeARefusal() {
        long memory = gpu.call(used -> used.allocate(8));
        long other = gpu.call(used -> used.allocate(8));
        int queries = driver.queries();

        assertThatExceptionOfType(GpuException.class)
                .isThrownBy(() -> events.recordAfter(
                        used -> {
                            used.copy(memory, other, 8, stream);
                            used.free(1);
                        },
                        stream))
                .withMessageContaining("cuMemFree_v2: 1 CUDA_ERROR_INVALID_VALUE");

        assertThat(driver.queries()).as("queries of the event").isGreaterThan(queries);
        assertThat(events.inUse()).isZero();
        assertThat(gpu.failure()).isEmpty();
    }

    @Test
    void failsTheGpuIfTheEndOfTheWorkCannotBeMarked() {
        assertThatExceptionOfType(GpuException.class)
                .isThrownBy(() -> events.recordAfter(used -> driver.fail(2), stream))
                .withMessageContaining("cuCtxSetCurrent: 2 CUDA_ERROR");

        assertThat(gpu.failure()).isPresent();
        assertThat(events.inUse()).isZero();
    }
}
