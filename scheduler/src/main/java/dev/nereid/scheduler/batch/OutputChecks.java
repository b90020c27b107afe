package dev.nereid.scheduler.batch;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/** Checks outputs of backends, and allocates memory for them. */
final class OutputChecks {
    /** Represents all threads but the calling one; never started. */
    private static final Thread OTHER_THREAD =
            Thread.ofPlatform().inheritInheritableThreadLocals(false).unstarted(() -> {});

    private OutputChecks() {}

    /** Throws unless the first dimension of an output is a number of items. */
    static void checkItems(ModelScope model, OutputSpec output, Shape shape, int items) {
        if (output.batched() && (shape.rank() == 0 || shape.dim(0) != items)) {
            throw error(model, output, "shape " + shape + " (expected: first dimension " + items + ", the batch size)");
        }
    }

    /**
     * Throws unless every thread may read an output, or the server can move it to the host. The configuration has it, or
     * nothing reads it.
     */
    static void checkMemory(ModelScope model, OutputSpec output, Tensor tensor) {
        if (!output.isKnown()) {
            return;
        }
        MemorySegment data = tensor.data();
        MemoryPlace place = tensor.place();
        if (!place.isHost()) {
            if (tensor.type() == DataType.BYTES) {
                throw error(model, output, "byte strings in " + place + " (expected: memory of the host)");
            }
            if (model.memory().device(place).isEmpty()) {
                throw error(model, output, "lies in " + place + " (expected: memory of the host)");
            }
        }
        if (!isShared(data)) {
            throw error(model, output, notShared(data));
        }
    }

    /** Returns whether memory is native, and every thread may use it. */
    static boolean isShared(MemorySegment data) {
        return data.isNative() && data.isAccessibleBy(OTHER_THREAD);
    }

    /** Describes memory that other threads may not use. */
    static String notShared(MemorySegment data) {
        return "lies in " + (data.isNative() ? "a confined arena" : "a Java array")
                + " (expected: native memory that any thread may use)";
    }

    /** Allocates zeroed memory for an output of fixed-size elements in one place, as {@link BatchOutputs#allocate}. */
    static TensorBuffer allocate(ModelScope model, OutputSpec output, DataType type, Shape shape, MemoryPlace place) {
        long byteSize = byteSize(model, output, type, shape);
        if (place.isHost()) {
            Optional<TensorBuffer> pinned = place.kind() == MemoryPlace.Kind.PINNED
                    ? model.memory().allocatePinned(byteSize)
                    : Optional.empty();
            pinned.ifPresent(buffer -> buffer.segment().fill((byte) 0));
            return pinned.isPresent() ? pinned.get() : allocateZeroed(model, byteSize);
        }
        return allocate(device(model, output.tensor().name(), place), byteSize);
    }

    /** Allocates memory of a device, which is zeroed too. Failures are thrown to the backend. */
    static TensorBuffer allocate(DeviceMemory device, long byteSize) {
        try {
            return device.allocate(byteSize);
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    /** Returns the memory of the place of an output; throws {@link ErrorCode#UNSUPPORTED} if the server has none. */
    static DeviceMemory device(ModelScope model, String output, MemoryPlace place) {
        Optional<DeviceMemory> device = model.memory().device(place);
        if (device.isEmpty()) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED,
                    "output '" + output + "' of model '" + model.settings().name() + "': no memory in " + place
                            + " (expected: memory of the host)");
        }
        return device.get();
    }

    /** Returns the error of a fence for an output that does not exist. */
    static BackendException notAllocated(ModelScope model, String output) {
        return SchedulerErrors.output(model.settings(), output, "a fence without memory (expected: allocated before)");
    }

    /** Copies an output in memory of a device to the host. Failures are thrown to the backend. */
    static TensorBuffer copyToHost(ModelScope model, String output, Tensor tensor) {
        DeviceMemory device = device(model, output, tensor.place());
        try {
            return DeviceCopies.toHost(tensor, device, model.memory());
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    static long byteSize(ModelScope model, OutputSpec output, DataType type, Shape shape) {
        if (!type.isFixedSize()) {
            throw error(model, output, "type " + type + " (expected: a type of fixed size)");
        }
        checkConcrete(model, output, shape);
        try {
            return shape.byteSize(type);
        } catch (ArithmeticException e) {
            throw error(model, output, "shape " + shape + " (expected: a size that fits 64 bits)");
        }
    }

    /** Allocates zeroed memory for an output of byte strings. */
    static TensorBuffer allocateBytes(ModelScope model, OutputSpec output, Shape shape, long byteSize) {
        checkBytes(model, output, shape, byteSize);
        return allocateZeroed(model, byteSize);
    }

    /** Throws unless the shape and size of an output of byte strings are possible. */
    static void checkBytes(ModelScope model, OutputSpec output, Shape shape, long byteSize) {
        checkConcrete(model, output, shape);
        if (byteSize < 0) {
            throw error(model, output, "size " + byteSize + " (expected: >= 0)");
        }
    }

    /** Throws unless the memory of a client is large enough for an output. */
    static void checkTarget(String output, MemorySegment target, long byteSize) {
        if (target.byteSize() < byteSize) {
            throw SchedulerErrors.of(InferenceException.clientError("shared memory size specified with the request for"
                    + " output '" + Quoted.text(output) + "' (" + target.byteSize()
                    + " bytes) should be at least " + byteSize + " bytes to hold the results"));
        }
    }

    /** Allocates zeroed memory: unwritten parts show no data of other requests. Failures are thrown to the backend. */
    static TensorBuffer allocateZeroed(ModelScope model, long byteSize) {
        try {
            return model.memory().allocateZeroed(byteSize);
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    /** Returns an output as clients see it: the same memory, and the shape before {@code reshape}. */
    static Tensor forClient(ModelScope model, OutputSpec output, Tensor tensor) {
        if (!output.reshaped()) {
            return tensor;
        }
        Shape shape = clientShape(model, output, tensor.shape());
        try {
            return tensor.withShape(shape);
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw error(model, output, "shape " + tensor.shape() + " (expected: as many elements as in " + shape + ")");
        }
    }

    /** Returns the client's shape of an output. The variable dimensions of both shapes correspond in their order. */
    private static Shape clientShape(ModelScope model, OutputSpec output, Shape actual) {
        int batch = output.batched() ? 1 : 0;
        Shape from = output.tensor().backendDims();
        Shape to = output.tensor().dims();
        boolean fits = actual.rank() == from.rank() + batch && from.accepts(batch == 1 ? actual.dropFirst() : actual);
        if (!fits) {
            Shape expected = batch == 1 ? from.prepend(Shape.VARIABLE) : from;
            throw error(model, output, "shape " + actual + " (expected: " + expected + ")");
        }
        long[] dims = new long[to.rank() + batch];
        if (batch == 1) {
            dims[0] = actual.dim(0);
        }
        int variable = -1;
        for (int i = 0; i < to.rank(); i++) {
            dims[i + batch] = to.dim(i);
            if (to.dim(i) == Shape.VARIABLE) {
                variable = nextVariable(model, output, variable + 1);
                dims[i + batch] = actual.dim(variable + batch);
            }
        }
        return Shape.of(dims);
    }

    private static int nextVariable(ModelScope model, OutputSpec output, int start) {
        Shape from = output.tensor().backendDims();
        for (int i = start; i < from.rank(); i++) {
            if (from.dim(i) == Shape.VARIABLE) {
                return i;
            }
        }
        throw error(
                model,
                output,
                "reshape " + from + " (expected: the variable dimensions of "
                        + output.tensor().dims() + ")");
    }

    private static void checkConcrete(ModelScope model, OutputSpec output, Shape shape) {
        if (!shape.isConcrete()) {
            throw error(model, output, "shape " + shape + " (expected: no variable dimension)");
        }
    }

    private static BackendException error(ModelScope model, OutputSpec output, String problem) {
        return SchedulerErrors.output(model.settings(), output.tensor().name(), problem);
    }
}
