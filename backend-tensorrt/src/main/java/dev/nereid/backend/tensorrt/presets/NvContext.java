package dev.nereid.backend.tensorrt.presets;

import dev.nereid.backend.tensorrt.runtime.ExecutionContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.HashMap;
import java.util.Map;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.tensorrt.nvinfer.Dims64;
import org.bytedeco.tensorrt.nvinfer.IExecutionContext;

/** An execution context of TensorRT. Used by one thread at a time. */
final class NvContext implements ExecutionContext {
    private final IExecutionContext context;
    private final NvInferLog log;

    /** The names as C has them, so that an execution allocates nothing. */
    private final Map<String, BytePointer> names = new HashMap<>();

    private final Map<Long, CUstream_st> streams = new HashMap<>();

    NvContext(IExecutionContext context, NvInferLog log) {
        this.context = context;
        this.log = log;
    }

    @Override
    public void setShape(String input, Shape shape) {
        log.clear();
        try (Dims64 dims = Addresses.dims(shape)) {
            if (!context.setInputShape(name(input), dims)) {
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT, "input '" + input + "': shape " + shape + ": " + log.takeErrors());
            }
        }
    }

    @Override
    public Shape shape(String tensor) {
        try (Dims64 dims = context.getTensorShape(name(tensor))) {
            return Addresses.shape(dims);
        }
    }

    @Override
    public void setAddress(String tensor, long address) {
        if (!context.setTensorAddress(name(tensor), Addresses.of(address))) {
            throw new BackendException(ErrorCode.INTERNAL, "tensor '" + tensor + "': " + log.takeErrors());
        }
    }

    @Override
    public void enqueue(long stream) {
        log.clear();
        if (!context.enqueueV3(streams.computeIfAbsent(stream, Addresses::stream))) {
            throw new BackendException(ErrorCode.INTERNAL, "execution: not enqueued: " + log.takeErrors());
        }
    }

    private BytePointer name(String tensor) {
        return names.computeIfAbsent(tensor, text -> new BytePointer(text));
    }

    @Override
    public void close() {
        NativeObjects.delete(context.address(), NativeObjects.DESTRUCTOR);
        names.values().forEach(BytePointer::close);
    }
}
