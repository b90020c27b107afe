package dev.nereid.benchmarks.gpu;

import static dev.nereid.benchmarks.gpu.CheckList.format;
import static dev.nereid.benchmarks.gpu.CheckList.require;

import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.benchmarks.gpu.CheckList.SkippedException;
import dev.nereid.cuda.CompletionThread;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.cuda.GpuMonitor;
import dev.nereid.cuda.GpuReading;
import dev.nereid.cuda.memory.CudaGpus;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** The device layer, in this process. Confined to one thread. */
final class DeviceChecks {
    private static final MemoryPlace PLACE = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final int ALLOCATIONS = 10_000;
    private static final long MIB = 1 << 20;
    private static final long LONG_KERNEL_NANOS = 20_000_000;
    private static final double BYTES_PER_GB = 1e9;

    private final CudaGpus gpus;
    private final GpuContext gpu;
    private final Kernels kernels;

    DeviceChecks(CudaGpus gpus, GpuContext gpu, Kernels kernels) {
        this.gpus = gpus;
        this.gpu = gpu;
        this.kernels = kernels;
    }

    void run(CheckList list) {
        list.check("copies through the pool, 0 bytes to 32 MiB", this::copies);
        list.check("10,000 allocations take nothing of the driver", this::allocations);
        list.check("pinned memory is faster than pageable", this::pinned);
        list.check("fences: done after the work, across streams", this::fences);
        list.check("actions after work run in its order", this::completions);
        list.check("a graph gives what its calls give", this::graphs);
        list.check("a wrong kernel is refused with its line", this::wrongKernel);
        list.check("priorities of streams", this::priorities);
        list.check("access to the memory of another GPU", this::peers);
        list.check("NVML", DeviceChecks::nvml);
    }

    private String copies() throws Exception {
        DeviceMemory memory = gpus.memory(PLACE).orElseThrow();
        Random random = new Random(1);
        long sum = 0;
        for (int size : new int[] {0, 1, 255, 4096, 65_537, 1 << 20, 32 << 20}) {
            byte[] content = new byte[size];
            random.nextBytes(content);
            try (Arena arena = Arena.ofShared();
                    TensorBuffer first = memory.allocate(size);
                    TensorBuffer second = memory.allocate(size == 32 << 20 ? 0 : size)) {
                MemorySegment host = arena.allocate(Math.max(1, size)).asSlice(0, size);
                host.copyFrom(MemorySegment.ofArray(content));
                memory.copyFromHost(host, first.segment());
                boolean twice = second.segment().byteSize() == size;
                if (twice) {
                    memory.copy(first.segment(), second.segment());
                }
                host.fill((byte) 0);
                memory.copyToHost(twice ? second.segment() : first.segment(), host);
                require(host.mismatch(MemorySegment.ofArray(content)) == -1, size + " bytes: other content");
                sum += size;
            }
        }
        return sum + " bytes compared";
    }

    private String allocations() throws Exception {
        DeviceMemory memory = gpus.memory(PLACE).orElseThrow();
        long before = gpu.call(CudaDriver::freeMemory);
        long start = System.nanoTime();
        for (int i = 0; i < ALLOCATIONS; i++) {
            memory.allocate(1 + i % MIB).close();
        }
        double micros = (System.nanoTime() - start) / 1e3 / ALLOCATIONS;
        long grown = before - gpu.call(CudaDriver::freeMemory);
        require(grown == 0, grown + " bytes more of the device are in use (expected: 0)");
        return format("%.1f us each, zeroed; 0 bytes of growth", micros);
    }

    private String pinned() throws Exception {
        long size = 32 * MIB;
        DeviceMemory memory = gpus.memory(PLACE).orElseThrow();
        try (Arena arena = Arena.ofShared();
                TensorBuffer device = memory.allocate(size);
                TensorBuffer pinned = gpus.allocatePinned(size).orElseThrow()) {
            MemorySegment pageable = arena.allocate(size).fill((byte) 1);
            pinned.segment().fill((byte) 1);
            double fast = gigabytes(memory, pinned.segment(), device.segment());
            double slow = gigabytes(memory, pageable, device.segment());
            require(fast > slow, format("%.1f against %.1f GB/s", fast, slow));
            return format("%.1f against %.1f GB/s to the device", fast, slow);
        }
    }

    private static double gigabytes(DeviceMemory memory, MemorySegment source, MemorySegment target) {
        double best = 0;
        for (int i = 0; i < 8; i++) {
            long start = System.nanoTime();
            memory.copyFromHost(source, target);
            best = Math.max(best, source.byteSize() / BYTES_PER_GB / ((System.nanoTime() - start) / 1e9));
        }
        return best;
    }

    private String fences() throws Exception {
        try (EventPool events = new EventPool(gpu);
                KernelSlots slow = new KernelSlots(gpu, events, kernels.increment(), 1024, LONG_KERNEL_NANOS, 1);
                KernelSlots fast = new KernelSlots(gpu, events, kernels.increment(), 1024, 0, 1)) {
            fast.launch();
            fast.awaitAll();
            long start = System.nanoTime();
            slow.launch();
            EventFence of = events.record(slow.stream());
            boolean early = of.isDone();
            gpu.await(of, fast.stream());
            fast.launch();
            fast.awaitAll();
            double behind = (System.nanoTime() - start) / 1e6;
            boolean done = of.isDone();
            of.release();
            require(!early && done, "done early: " + early + ", done at last: " + done);
            require(behind * 1e6 >= LONG_KERNEL_NANOS, format("behind a kernel of 20 ms: %.1f ms", behind));
            return format("behind a kernel of 20 ms: %.2f ms", behind);
        }
    }

    private String completions() throws Exception {
        int count = 1000;
        List<Integer> order = new ArrayList<>();
        try (EventPool events = new EventPool(gpu);
                KernelSlots loop = new KernelSlots(gpu, events, kernels.increment(), 1024, 10_000, count)) {
            try (CompletionThread thread = new CompletionThread("gpu-check-completions")) {
                for (int i = 0; i < count; i++) {
                    int number = i;
                    loop.launch();
                    thread.add(events.record(loop.stream()), failure -> order.add(failure == null ? number : -1));
                }
            }
            for (int i = 0; i < count; i++) {
                require(order.size() == count && order.get(i) == i, "action " + i + ": out of order, or missing");
            }
            loop.awaitAll();
            require(loop.greatestDifference() == 1, "outputs differ from inputs by " + loop.greatestDifference());
        }
        return count + " in order";
    }

    private String graphs() throws Exception {
        try (EventPool events = new EventPool(gpu);
                KernelSlots loop = new KernelSlots(gpu, events, kernels.increment(), 1024, 0, 1)) {
            gpu.run(driver -> driver.beginCapture(loop.stream()));
            loop.append();
            long graph = gpu.call(driver -> driver.endCapture(loop.stream()));
            require(graph != 0, "the capture was spoiled");
            long executable = gpu.call(driver -> driver.instantiate(graph));
            gpu.run(driver -> driver.destroyGraph(graph));
            gpu.run(driver -> driver.launchGraph(executable, loop.stream()));
            EventFence fence = events.record(loop.stream());
            boolean ended = fence.await(Duration.ofSeconds(10));
            fence.release();
            gpu.run(driver -> driver.destroyExecutable(executable));
            require(ended && loop.greatestDifference() == 1, "outputs differ by " + loop.greatestDifference());
            return "copies and a kernel";
        }
    }

    private String wrongKernel() throws Exception {
        try (Arena arena = Arena.ofConfined()) {
            long source = arena.allocateFrom(".version 8.0\n.target sm_52\n.address_size 64\nnonsense\n")
                    .address();
            long module = gpu.call(driver -> driver.loadModule(source));
            throw new Exception("loaded as " + module);
        } catch (GpuException e) {
            require(String.valueOf(e.getMessage()).contains("line 4"), "no line in: " + e.getMessage());
            require(gpu.failure().isEmpty(), "the GPU counts as failed");
            return String.valueOf(e.getMessage()).lines().findFirst().orElse("");
        }
    }

    private String priorities() throws Exception {
        int greatest = gpu.call(CudaDriver::greatestPriority);
        long stream = gpu.call(driver -> driver.createStream(greatest));
        gpu.run(driver -> driver.destroyStream(stream));
        require(greatest < 0, "greatest: " + greatest + " (expected: < 0)");
        return "0 to " + greatest;
    }

    private String peers() throws Exception {
        if (gpus.numbers().size() < 2) {
            throw new SkippedException("one GPU (expected: two or more)");
        }
        int first = gpus.numbers().get(0);
        int second = gpus.numbers().get(1);
        boolean can = gpu.call(driver -> driver.canAccessPeer(driver.device(first), driver.device(second)));
        DeviceMemory origin =
                gpus.memory(new MemoryPlace(MemoryPlace.Kind.GPU, second)).orElseThrow();
        DeviceMemory target =
                gpus.memory(new MemoryPlace(MemoryPlace.Kind.GPU, first)).orElseThrow();
        byte[] content = new byte[1 << 20];
        new Random(2).nextBytes(content);
        byte[] copied = new byte[content.length];
        try (TensorBuffer source = origin.allocate(content.length);
                TensorBuffer copy = target.allocate(content.length)) {
            origin.copyFromHost(MemorySegment.ofArray(content), source.segment());
            require(target.copyFrom(origin, source.segment(), copy.segment()), "no copy was made");
            target.copyToHost(copy.segment(), MemorySegment.ofArray(copied));
        }
        require(Arrays.equals(content, copied), "the copy differs");
        return "GPU " + second + " to GPU " + first + (can ? "" : ", through the host: no access");
    }

    private static String nvml() throws Exception {
        List<GpuReading> readings = GpuMonitor.open().read();
        require(!readings.isEmpty(), "no GPU (expected: one or more)");
        GpuReading gpu = readings.getFirst();
        require(gpu.joules().isPresent() && gpu.watts().isPresent(), "energy or power is missing: " + gpu);
        return gpu.toString();
    }
}
