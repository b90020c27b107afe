package dev.nereid.benchmarks.gpu;

import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Launches of a kernel from threads with a stream each, without a server. Static functions only. */
final class BareLoop {
    private BareLoop() {}

    /** Runs the loop, and returns launches per second of all streams together. */
    static double perSecond(GpuContext gpu, long kernel, int count, long nanos, int streams, int slots, Duration time)
            throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(streams);
                EventPool events = new EventPool(gpu)) {
            List<Future<Double>> running = new ArrayList<>();
            for (int i = 0; i < streams; i++) {
                running.add(threads.submit(() -> {
                    try (KernelSlots loop = new KernelSlots(gpu, events, kernel, count, nanos, slots)) {
                        return run(loop, time);
                    }
                }));
            }
            double sum = 0;
            for (Future<Double> each : running) {
                sum += each.get();
            }
            return sum;
        }
    }

    private static double run(KernelSlots loop, Duration time) throws Exception {
        long start = System.nanoTime();
        long launches = 0;
        while (System.nanoTime() - start < time.toNanos()) {
            loop.launch();
            launches++;
        }
        loop.awaitAll();
        return launches / ((System.nanoTime() - start) / 1e9);
    }
}
