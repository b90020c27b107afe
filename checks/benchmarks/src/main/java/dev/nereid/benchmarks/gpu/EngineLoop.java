package dev.nereid.benchmarks.gpu;

import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.ExecutionContext;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.Shape;
import java.time.Duration;
import java.util.ArrayDeque;

/**
 * Executions of an engine without a server: the input lies on the device, the output is copied to the host. Confined to
 * one thread.
 */
final class EngineLoop {
    private static final int IN_FLIGHT = 2;

    private EngineLoop() {}

    /** Runs the loop with the only input and the only output; returns executions per second. */
    static double perSecond(
            GpuContext gpu, Engine engine, String input, Shape shape, String output, long outputBytes, Duration time)
            throws Exception {
        long inputBytes = shape.elementCount() * Float.BYTES;
        long device = gpu.call(driver -> driver.allocate(inputBytes + outputBytes * IN_FLIGHT));
        long pinned = gpu.call(driver -> driver.allocateHost(outputBytes * IN_FLIGHT));
        long stream = gpu.call(CudaDriver::createStream);
        try (EventPool events = new EventPool(gpu);
                ExecutionContext context = engine.newContext(0, stream)) {
            context.setShape(input, shape);
            context.setAddress(input, device);
            ArrayDeque<EventFence> inFlight = new ArrayDeque<>();
            long start = System.nanoTime();
            long count = 0;
            while (System.nanoTime() - start < time.toNanos()) {
                if (inFlight.size() == IN_FLIGHT) {
                    await(inFlight.remove());
                }
                long slot = count++ % IN_FLIGHT;
                long at = device + inputBytes + slot * outputBytes;
                context.setAddress(output, at);
                context.enqueue(stream);
                gpu.run(driver -> driver.copyToHost(at, pinned + slot * outputBytes, outputBytes, stream));
                inFlight.add(events.record(stream));
            }
            while (!inFlight.isEmpty()) {
                await(inFlight.remove());
            }
            return count / ((System.nanoTime() - start) / 1e9);
        } finally {
            gpu.release(driver -> {
                driver.destroyStream(stream);
                driver.freeHost(pinned);
                driver.free(device);
            });
        }
    }

    private static void await(EventFence fence) throws Exception {
        try {
            boolean ignored = fence.await(Duration.ofMinutes(1));
        } finally {
            fence.release();
        }
    }
}
