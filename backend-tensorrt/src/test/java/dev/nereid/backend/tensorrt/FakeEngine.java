package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.ExecutionContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An engine without TensorRT: each output is the sum of all inputs of FP32, element by element, in the shape of the
 * first, or one number for each item of an input that is flat. It records the profiles of its executions. Safe for use
 * by any thread; a context is used by one.
 */
final class FakeEngine implements Engine {
    private final List<EngineTensor> tensors;
    private final int profiles;

    /** Whose streams executions are enqueued in. */
    private final HostDriver driver;

    final List<Integer> executions = Collections.synchronizedList(new ArrayList<>());
    final AtomicInteger openContexts = new AtomicInteger();
    volatile boolean closed;
    volatile boolean fails;

    FakeEngine(HostDriver driver, int profiles, EngineTensor... tensors) {
        this.driver = driver;
        this.profiles = profiles;
        this.tensors = List.of(tensors);
    }

    @Override
    public List<EngineTensor> tensors() {
        return tensors;
    }

    @Override
    public int profiles() {
        return profiles;
    }

    @Override
    public long contextBytes() {
        return 1000;
    }

    @Override
    public ExecutionContext newContext(int profile, long stream) {
        openContexts.incrementAndGet();
        return new Context(profile);
    }

    @Override
    public void close() {
        closed = true;
    }

    private final class Context implements ExecutionContext {
        private final int profile;
        private final Map<String, Shape> shapes = new HashMap<>();
        private final Map<String, Long> addresses = new HashMap<>();

        Context(int profile) {
            this.profile = profile;
        }

        @Override
        public void setShape(String input, Shape shape) {
            shapes.put(input, shape);
        }

        @Override
        public Shape shape(String tensor) {
            Shape first = shapes.get(tensors.getFirst().name());
            boolean gathered = first.rank() == 1 && tensors.getLast().shape().rank() == 2;
            return gathered ? Shape.of(first.dim(0), 1) : first;
        }

        @Override
        public void setAddress(String tensor, long address) {
            addresses.put(tensor, address);
        }

        @Override
        public void enqueue(long stream) {
            if (fails) {
                throw new BackendException(ErrorCode.INTERNAL, "execution: not enqueued: of a test");
            }
            executions.add(profile);
            int count = (int) shapes.get(tensors.getFirst().name()).elementCount();
            Map<String, Long> used = Map.copyOf(addresses);
            driver.enqueue(stream, () -> compute(count, used));
        }

        private void compute(int count, Map<String, Long> used) {
            float[] sums = new float[count];
            for (EngineTensor tensor : tensors) {
                if (tensor.isInput()) {
                    for (int i = 0; i < count; i++) {
                        int place = place(tensor, i);
                        sums[i] += at(tensor, place + 1, used).getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, place);
                    }
                }
            }
            for (EngineTensor tensor : tensors) {
                if (!tensor.isInput()) {
                    at(tensor, count, used).copyFrom(MemorySegment.ofArray(sums));
                }
            }
        }

        /** Returns where an element lies; in a format of vectors, an item is one of them. */
        private static int place(EngineTensor tensor, int element) {
            if (!tensor.format().hasVectors()) {
                return element;
            }
            int channels = (int) tensor.shape().dim(1);
            return element / channels * tensor.format().vectorLength() + element % channels;
        }

        private static MemorySegment at(EngineTensor tensor, int count, Map<String, Long> used) {
            return HostDriver.memory(used.get(tensor.name()), (long) count * Float.BYTES);
        }

        @Override
        public void close() {
            openContexts.decrementAndGet();
        }
    }
}
