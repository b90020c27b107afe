package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.Bindings.Binding;
import dev.nereid.backend.tensorrt.TensorRtOptions.Priority;
import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.ExecutionContext;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Resources of one instance on its GPU: streams, events, execution contexts, buffers and graphs. Confined to the
 * instance's thread, but for the GPU and the events.
 */
final class InstanceResources implements AutoCloseable {
    private static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

    private final GpuContext gpu;
    private final EventPool events;
    private final GraphCache graphs;
    private final List<ExecutionContext> contexts = new ArrayList<>();
    private final List<BufferSet> buffers = new ArrayList<>();
    private long stream;
    private long outputStream;

    private InstanceResources(GpuContext gpu) {
        this.gpu = gpu;
        events = new EventPool(gpu);
        graphs = new GraphCache(gpu);
    }

    /**
     * Takes them for optimization profiles and a number of executions in flight.
     *
     * @throws BackendException if the GPU has too little memory, or the engine has an output of unknown size
     */
    static InstanceResources open(
            GpuContext gpu, Engine engine, Bindings bindings, List<Integer> profiles, Priority priority, int sets) {
        InstanceResources resources = new InstanceResources(gpu);
        boolean opened = false;
        try {
            resources.open(engine, bindings, profiles, priority, sets);
            opened = true;
            return resources;
        } catch (GpuException e) {
            throw TensorRtErrors.unavailable(e);
        } finally {
            if (!opened) {
                resources.close();
            }
        }
    }

    private void open(Engine engine, Bindings bindings, List<Integer> profiles, Priority priority, int sets) {
        stream = gpu.call(driver -> driver.createStream(streamPriority(driver, priority)));
        outputStream = gpu.call(driver -> driver.createStream(streamPriority(driver, priority)));
        Map<String, Long> sizes = new HashMap<>();
        for (int profile : profiles) {
            ExecutionContext context = engine.newContext(profile, stream);
            contexts.add(context);
            awaitStreams();
            addSizes(bindings, profile, context, sizes);
        }
        for (int i = 0; i < sets; i++) {
            buffers.add(new BufferSet(i, gpu, bindings, sizes));
        }
    }

    static int streamPriority(CudaDriver driver, Priority priority) {
        return priority == Priority.MAX ? driver.greatestPriority() : 0; // 0 is the least, and that without one
    }

    /** Finds the largest size of each tensor in a profile. */
    private static void addSizes(Bindings bindings, int profile, ExecutionContext context, Map<String, Long> sizes) {
        try (Arena arena = Arena.ofConfined()) {
            for (Binding binding : bindings.inputs()) {
                EngineTensor tensor = binding.tensor();
                Shape limit = tensor.ranges().get(profile).max();
                Shape largest = tensor.isShapeTensor() ? Shape.of(limit.rank()) : limit;
                if (tensor.isShapeTensor()) {
                    largest = tensor.shape().rank() == 0 ? Shape.SCALAR : largest;
                    context.setAddress(
                            binding.name(), values(arena, limit, binding.type()).address());
                }
                context.setShape(binding.name(), largest);
                sizes.merge(binding.name(), tensor.format().padded(largest).byteSize(binding.type()), Math::max);
            }
            for (Binding binding : bindings.outputs()) {
                Shape largest = context.shape(binding.name());
                if (!largest.isConcrete()) {
                    throw TensorRtErrors.unsupported("output '" + binding.name() + "': shape " + largest
                            + " depends on the values of inputs (expected: on their shapes alone)");
                }
                sizes.merge(binding.name(), largest.byteSize(binding.type()), Math::max);
            }
        }
    }

    private static MemorySegment values(Arena arena, Shape values, DataType type) {
        MemorySegment memory = arena.allocate(Math.max(1, (long) values.rank() * Long.BYTES), Long.BYTES);
        for (int i = 0; i < values.rank(); i++) {
            if (type == DataType.INT64) {
                memory.setAtIndex(ValueLayout.JAVA_LONG, i, values.dim(i));
            } else {
                memory.setAtIndex(ValueLayout.JAVA_INT, i, (int) values.dim(i));
            }
        }
        return memory;
    }

    GpuContext gpu() {
        return gpu;
    }

    EventPool events() {
        return events;
    }

    GraphCache graphs() {
        return graphs;
    }

    List<ExecutionContext> contexts() {
        return contexts;
    }

    List<BufferSet> buffers() {
        return buffers;
    }

    long stream() {
        return stream;
    }

    long outputStream() {
        return outputStream;
    }

    /** Makes the GPU the current one of this thread, for calls of TensorRT. */
    void makeCurrent() {
        gpu.run(driver -> {});
    }

    /** Waits for all work of the streams. A GPU that failed has none. */
    void awaitStreams() {
        await(stream);
        await(outputStream);
    }

    private void await(long awaited) {
        if (awaited == 0) {
            return;
        }
        try {
            EventFence end = events.record(awaited);
            try {
                boolean ignored = end.await(FOREVER);
            } finally {
                end.release();
            }
        } catch (GpuException | BackendException e) {
            return;
        }
    }

    @Override
    public void close() {
        awaitStreams();
        graphs.close();
        gpu.release(driver -> contexts.forEach(ExecutionContext::close));
        buffers.forEach(BufferSet::close);
        for (long owned : new long[] {stream, outputStream}) {
            if (owned != 0) {
                gpu.release(driver -> driver.destroyStream(owned));
            }
        }
        events.close();
    }
}
