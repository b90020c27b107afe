package dev.nereid.cuda;

import static dev.nereid.cuda.NativeCalls.call;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Reads utilization, memory, power and energy of all GPUs from NVML, {@code libnvidia-ml.so.1}, which needs no context
 * of CUDA. Safe for use by any thread. The library stays open until the process ends.
 */
public final class GpuMonitor {
    /** The name by which the dynamic linker finds the library. */
    static final String NAME = "libnvidia-ml.so.1";

    private static final int SUCCESS = 0;
    private static final int UUID_SIZE = 96;
    private static final double PERCENT = 100;
    private static final double MILLI = 1000;

    /** A value that fails so often in a row is not read again, as by the reference server. */
    private static final int MAX_FAILURES = 3;

    private final List<MonitoredGpu> gpus;

    private GpuMonitor(List<MonitoredGpu> gpus) {
        this.gpus = gpus;
    }

    /** Opens NVML and finds GPUs, 0 or more, in some 15 ms; fails, with the reason, without library or driver. */
    public static GpuMonitor open() throws IOException {
        return open(NAME);
    }

    /** Opens a library with the functions of NVML. */
    static GpuMonitor open(String name) throws IOException {
        SharedLibrary library = SharedLibrary.open(name);
        check("nvmlInit_v2", call(library.find("nvmlInit_v2")));
        List<MonitoredGpu> gpus = new ArrayList<>();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
            check("nvmlDeviceGetCount_v2", call(library.find("nvmlDeviceGetCount_v2"), count.address()));
            MemorySegment byIndex = library.find("nvmlDeviceGetHandleByIndex_v2");
            MemorySegment uuidOf = library.find("nvmlDeviceGetUUID");
            MemorySegment handle = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment uuid = arena.allocate(UUID_SIZE);
            for (int i = 0; i < count.get(ValueLayout.JAVA_INT, 0); i++) {
                // One that does not answer, for instance since it has fallen off the bus, is left out. A null handle
                // would crash.
                if (call(byIndex, i, handle.address()) == SUCCESS
                        && handle.get(ValueLayout.JAVA_LONG, 0) != 0
                        && call(uuidOf, handle.get(ValueLayout.JAVA_LONG, 0), uuid.address(), UUID_SIZE) == SUCCESS) {
                    gpus.add(new MonitoredGpu(
                            library, handle.get(ValueLayout.JAVA_LONG, 0), uuid.getString(0, StandardCharsets.UTF_8)));
                }
            }
        }
        return new GpuMonitor(List.copyOf(gpus));
    }

    private static void check(String function, int result) throws IOException {
        if (result != SUCCESS) {
            throw new IOException(function + ": error " + result);
        }
    }

    /** Reads all GPUs in the order of their numbers. Takes some 4 ms for each: energy is read slowly. */
    public List<GpuReading> read() {
        return gpus.stream().map(MonitoredGpu::read).toList();
    }

    /** One GPU. Safe for use by any thread. */
    private static final class MonitoredGpu {
        private final String uuid;
        private final Value utilization;
        private final Value memory;
        private final Value power;
        private final Value limit;
        private final Value energy;

        MonitoredGpu(SharedLibrary library, long handle, String uuid) throws IOException {
            this.uuid = uuid;
            utilization = new Value(library, "nvmlDeviceGetUtilizationRates", handle);
            memory = new Value(library, "nvmlDeviceGetMemoryInfo", handle);
            power = new Value(library, "nvmlDeviceGetPowerUsage", handle);
            limit = new Value(library, "nvmlDeviceGetEnforcedPowerLimit", handle);
            energy = new Value(library, "nvmlDeviceGetTotalEnergyConsumption", handle);
        }

        GpuReading read() {
            try (Arena arena = Arena.ofConfined()) {
                // The largest result: total, free and used bytes.
                MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG, 3);
                boolean hasMemory = memory.read(result);
                OptionalLong total = hasMemory ? OptionalLong.of(longAt(result, 0)) : OptionalLong.empty();
                OptionalLong used = hasMemory ? OptionalLong.of(longAt(result, 2)) : OptionalLong.empty();
                return new GpuReading(
                        uuid,
                        utilization.read(result) ? divided(intAt(result), PERCENT) : OptionalDouble.empty(),
                        total,
                        used,
                        power.read(result) ? divided(intAt(result), MILLI) : OptionalDouble.empty(),
                        limit.read(result) ? divided(intAt(result), MILLI) : OptionalDouble.empty(),
                        energy.read(result) ? divided(longAt(result, 0), MILLI) : OptionalDouble.empty());
            }
        }

        private static long intAt(MemorySegment result) {
            return Integer.toUnsignedLong(result.get(ValueLayout.JAVA_INT, 0));
        }

        private static long longAt(MemorySegment result, int index) {
            return result.getAtIndex(ValueLayout.JAVA_LONG, index);
        }

        private static OptionalDouble divided(long value, double divisor) {
            return OptionalDouble.of(value / divisor);
        }
    }

    /** A function that writes a value of a GPU to an address. */
    private static final class Value {
        private final MemorySegment function;
        private final long handle;

        private final AtomicInteger failures = new AtomicInteger();

        Value(SharedLibrary library, String function, long handle) throws IOException {
            this.function = library.find(function);
            this.handle = handle;
        }

        boolean read(MemorySegment result) {
            if (failures.get() >= MAX_FAILURES) {
                return false;
            }
            boolean isRead = call(function, handle, result.address()) == SUCCESS;
            failures.updateAndGet(before -> isRead ? 0 : before + 1);
            return isRead;
        }
    }
}
