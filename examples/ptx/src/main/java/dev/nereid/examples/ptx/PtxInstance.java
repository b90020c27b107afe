package dev.nereid.examples.ptx;

import dev.nereid.cuda.CompletionThread;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntFunction;

/**
 * Runs the kernel on one stream of a GPU. Confined to the instance's thread; completions run on a thread of their own.
 *
 * <p>An execution appends its copies and its kernel to the stream, and returns; its batch ends when the GPU has done
 * them. Each has a buffer for its input and its output on the GPU. An output that stays on the GPU is passed on before
 * it is written.
 */
final class PtxInstance implements ModelInstance {
    private static final int THREADS_OF_BLOCK = 256;

    private final TensorSpec in;
    private final TensorSpec out;
    private final PtxBackend.Kernel kernel;
    private final MemoryPlace device;
    private final MemoryPlace pinned = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);
    private final long bytesOfSlot;
    private final GpuContext gpu;
    private final EventPool events;
    private final CompletionThread completions;
    private final ConcurrentLinkedQueue<Slot> idle = new ConcurrentLinkedQueue<>();
    private final List<Slot> slots = new ArrayList<>();
    private final Arena arena = Arena.ofShared();
    private long stream;
    private long module;
    private long function;

    PtxInstance(
            InstanceContext context, ModelSettings settings, PtxBackend.Kernel kernel, IntFunction<GpuContext> gpus) {
        in = settings.inputs().getFirst();
        out = settings.outputs().getFirst();
        this.kernel = kernel;
        device = new MemoryPlace(MemoryPlace.Kind.GPU, context.device().id());
        bytesOfSlot = in.dims().byteSize(DataType.FP32) * Math.max(1, settings.maxBatchSize());
        try {
            gpu = gpus.apply(context.device().id());
            events = new EventPool(gpu);
        } catch (GpuException e) {
            throw unavailable(e);
        }
        completions = new CompletionThread(context.name() + "-completions");
        boolean opened = false;
        try {
            open(context);
            opened = true;
        } catch (GpuException e) {
            throw unavailable(e);
        } finally {
            if (!opened) {
                close();
            }
        }
    }

    private void open(InstanceContext context) {
        for (int i = 0; i <= PtxBackend.IN_FLIGHT; i++) {
            Slot slot = new Slot(context.allocate(device, 2 * bytesOfSlot), arena);
            slots.add(slot);
            idle.add(slot);
        }
        stream = gpu.call(CudaDriver::createStream);
        try (Arena text = Arena.ofConfined()) {
            long source = text.allocateFrom(kernel.source()).address();
            module = gpu.call(driver -> driver.loadModule(source));
        }
        function = gpu.call(driver -> driver.function(module, kernel.name()));
    }

    @Override
    public void execute(Batch batch) {
        Tensor input = input(batch);
        Tensor output = output(batch, input.shape());
        Slot slot = idle.remove(); // there is one for each execution, and for one that has just ended
        EventFence fence;
        try {
            if (input.fence().isPresent()) {
                gpu.await(input.fence().get(), stream);
            }
            fence = events.recordAfter(driver -> enqueue(driver, input, output, slot), stream);
        } catch (GpuException | BackendException e) {
            idle.add(slot);
            throw e instanceof GpuException failure ? unavailable(failure) : e;
        }
        if (output.place().equals(device)) {
            passOn(batch, slot, fence);
            return;
        }
        batch.inputsRead();
        DeferredExecution execution = batch.defer();
        completions.add(fence, failure -> {
            idle.add(slot);
            if (failure == null) {
                execution.complete();
            } else {
                execution.fail(failure);
            }
        });
    }

    /** Passes an output on before it is written. */
    private void passOn(Batch batch, Slot slot, EventFence fence) {
        boolean passedOn = false;
        try {
            batch.inputsRead();
            batch.fence(out.name(), fence);
            completions.add(fence, batch.defer()::complete, _ -> idle.add(slot));
            passedOn = true;
        } finally {
            if (!passedOn) {
                boolean ignored =
                        fence.await(Duration.ofSeconds(Long.MAX_VALUE)); // the batch ends now, with its memory
                fence.release();
                idle.add(slot);
            }
        }
    }

    /** Returns the input on the GPU if it lies there, or else in pinned memory. */
    private Tensor input(Batch batch) {
        boolean onDevice = batch.requests().stream()
                .allMatch(request -> request.requireInput(in.name()).place().equals(device));
        if (onDevice) {
            try {
                return batch.gather(in.name(), device);
            } catch (BackendException e) {
                checkNoMemory(e);
            }
        }
        return batch.gather(in.name(), pinned);
    }

    /** Allocates the output: on the GPU if the requests take it there, such as those of an ensemble. */
    private Tensor output(Batch batch, Shape shape) {
        if (batch.takesOutput(out.name(), device)) {
            try {
                return batch.allocate(out.name(), DataType.FP32, shape, device);
            } catch (BackendException e) {
                checkNoMemory(e);
            }
        }
        return batch.allocate(out.name(), DataType.FP32, shape, pinned);
    }

    /** Throws a failure again, unless it says that no memory is left on the GPU: pinned memory will do then. */
    private static void checkNoMemory(BackendException e) {
        if (e.code() != ErrorCode.UNAVAILABLE) {
            throw e;
        }
    }

    private void enqueue(CudaDriver driver, Tensor input, Tensor output, Slot slot) {
        long source = slot.input();
        if (input.place().equals(device)) {
            source = input.data().address();
        } else if (input.byteSize() > 0) {
            driver.copyFromHost(input.data().address(), source, input.byteSize(), stream);
        }
        int count = (int) input.shape().elementCount();
        if (count > 0) {
            boolean onDevice = output.place().equals(device);
            long target = onDevice ? output.data().address() : slot.output();
            long parameters = slot.parameters(source, target, count, kernel.nanos());
            int blocks = (count + THREADS_OF_BLOCK - 1) / THREADS_OF_BLOCK;
            driver.launch(function, blocks, THREADS_OF_BLOCK, stream, parameters);
            if (!onDevice) {
                driver.copyToHost(target, output.data().address(), output.byteSize(), stream);
            }
        }
    }

    @Override
    public CompletionStage<Void> checkReady() {
        return gpu.failure()
                .map(failure -> CompletableFuture.<Void>failedStage(unavailable(failure)))
                .orElseGet(() -> CompletableFuture.completedStage(null));
    }

    @Override
    public void close() {
        completions.close();
        if (module != 0) {
            gpu.release(driver -> driver.unloadModule(module));
        }
        if (stream != 0) {
            gpu.release(driver -> driver.destroyStream(stream));
        }
        events.close();
        slots.forEach(Slot::close);
        arena.close();
    }

    private static BackendException unavailable(Exception e) {
        return new BackendException(ErrorCode.UNAVAILABLE, String.valueOf(e.getMessage()), e);
    }

    /** Memory of one execution on the GPU, and the parameters of its kernel. Used by one thread at a time. */
    private static final class Slot implements AutoCloseable {
        private static final int PARAMETERS = 4;

        private final AllocatedMemory memory;
        private final MemorySegment values;
        private final MemorySegment addresses;

        Slot(AllocatedMemory memory, Arena arena) {
            this.memory = memory;
            values = arena.allocate(ValueLayout.JAVA_LONG, PARAMETERS);
            addresses = arena.allocate(ValueLayout.JAVA_LONG, PARAMETERS);
            for (int i = 0; i < PARAMETERS; i++) {
                addresses.setAtIndex(ValueLayout.JAVA_LONG, i, values.address() + (long) i * Long.BYTES);
            }
        }

        long input() {
            return memory.segment().address();
        }

        long output() {
            return memory.segment().address() + memory.segment().byteSize() / 2;
        }

        /** Writes the parameters; returns the address of the array of their addresses. */
        long parameters(long source, long target, int count, long nanos) {
            values.setAtIndex(ValueLayout.JAVA_LONG, 0, source);
            values.setAtIndex(ValueLayout.JAVA_LONG, 1, target);
            values.setAtIndex(ValueLayout.JAVA_LONG, 2, count); // little-endian: the int is its first half
            values.setAtIndex(ValueLayout.JAVA_LONG, 3, nanos);
            return addresses.address();
        }

        @Override
        public void close() {
            memory.close();
        }
    }
}
