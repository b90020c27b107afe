package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class PerDeviceTest {
    private static final Device GPU0 = new Device(Device.Kind.GPU, 0);
    private static final Device GPU1 = new Device(Device.Kind.GPU, 1);

    private final Queue<Device> opened = new ConcurrentLinkedQueue<>();
    private final List<String> closed = new ArrayList<>();

    @Test
    void opensOneObjectForEachDeviceThatIsAskedFor() {
        PerDevice<String> sessions = new PerDevice<>(this::open, closed::add);

        assertThat(sessions.get(GPU1)).isEqualTo("on gpu1").isSameAs(sessions.get(GPU1));
        assertThat(sessions.get(Device.CPU)).isEqualTo("on cpu");
        assertThat(sessions.get(new Device(Device.Kind.MODEL, 0))).isSameAs(sessions.get(Device.CPU));
        assertThat(opened).containsExactly(GPU1, Device.CPU);
    }

    @Test
    @Timeout(60)
    void opensOneObjectForManyThatAskAtATime() throws Exception {
        PerDevice<Object> sessions = new PerDevice<>(
                device -> {
                    opened.add(device);
                    return new Object();
                },
                object -> {});
        int threads = 8;
        CyclicBarrier barrier = new CyclicBarrier(threads);
        Callable<Object> ask = () -> {
            barrier.await();
            return sessions.get(GPU0);
        };

        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<Object>> all = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                all.add(executor.submit(ask));
            }
            Object first = all.getFirst().get();
            for (Future<Object> one : all) {
                assertThat(one.get()).isSameAs(first);
            }
        }
        assertThat(opened).containsExactly(GPU0);
    }

    /** A GPU that is slow to open a model holds up no other one. */
    @Test
    @Timeout(60)
    void opensObjectsOfSeveralDevicesAtATime() throws Exception {
        CountDownLatch both = new CountDownLatch(2);
        PerDevice<String> sessions = new PerDevice<>(
                device -> {
                    both.countDown();
                    await(both);
                    return "on " + device;
                },
                object -> {});

        try (ExecutorService executor = Executors.newFixedThreadPool(2)) {
            Future<String> one = executor.submit(() -> sessions.get(GPU0));
            Future<String> other = executor.submit(() -> sessions.get(GPU1));

            assertThat(one.get()).isEqualTo("on gpu0");
            assertThat(other.get()).isEqualTo("on gpu1");
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void triesAgainAfterAFailure() {
        PerDevice<String> sessions = new PerDevice<>(
                device -> {
                    opened.add(device);
                    if (opened.size() == 1) {
                        throw new BackendException(ErrorCode.INTERNAL, "no memory");
                    }
                    return "second";
                },
                closed::add);

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> sessions.get(GPU0))
                .withMessage("no memory");
        assertThat(sessions.get(GPU0)).isEqualTo("second");

        sessions.close();
        assertThat(closed).containsExactly("second");
    }

    @Test
    void knowsWhatIsOpen() {
        PerDevice<String> sessions = new PerDevice<>(this::open, closed::add);
        sessions.get(GPU0);

        assertThat(sessions.has(GPU0)).isTrue();
        assertThat(sessions.has(GPU1)).isFalse();
        assertThat(sessions.has(Device.CPU)).isFalse();
        assertThat(opened).containsExactly(GPU0);
    }

    @Test
    void passesOnWhatTheOpenerThrows() {
        PerDevice<String> sessions = new PerDevice<>(
                device -> {
                    throw new IllegalStateException("closed");
                },
                closed::add);

        assertThatThrownBy(() -> sessions.get(GPU0))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("closed");
    }

    @Test
    void closesWhatWasOpenedOnce() {
        PerDevice<String> sessions = new PerDevice<>(this::open, closed::add);
        sessions.get(GPU0);
        sessions.get(GPU0);
        sessions.get(GPU1);

        sessions.close();
        sessions.close();

        assertThat(closed).containsExactlyInAnyOrder("on gpu0", "on gpu1");
    }

    private String open(Device device) {
        opened.add(device);
        return "on " + device;
    }
}
