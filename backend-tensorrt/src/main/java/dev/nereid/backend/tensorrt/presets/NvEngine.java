package dev.nereid.backend.tensorrt.presets;

import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineFormat;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.ExecutionContext;
import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.tensorrt.global.nvinfer.OptProfileSelector;
import org.bytedeco.tensorrt.global.nvinfer.TensorIOMode;
import org.bytedeco.tensorrt.nvinfer.ICudaEngine;
import org.bytedeco.tensorrt.nvinfer.IExecutionContext;
import org.bytedeco.tensorrt.nvinfer.IRuntime;

/** An engine of TensorRT. Safe for use by several threads. */
final class NvEngine implements Engine {
    private final IRuntime runtime;
    private final ICudaEngine engine;
    private final NvInferLog log;
    private final List<EngineTensor> tensors;

    NvEngine(IRuntime runtime, ICudaEngine engine, NvInferLog log) {
        this.runtime = runtime;
        this.engine = engine;
        this.log = log;
        tensors = List.copyOf(read());
    }

    private List<EngineTensor> read() {
        List<EngineTensor> inputs = new ArrayList<>();
        List<EngineTensor> outputs = new ArrayList<>();
        for (int i = 0; i < engine.getNbIOTensors(); i++) {
            EngineTensor tensor = describe(engine.getIOTensorName(i));
            (tensor.isInput() ? inputs : outputs).add(tensor);
        }
        inputs.addAll(outputs);
        return inputs;
    }

    private EngineTensor describe(String name) {
        boolean input = engine.getTensorIOMode(name).intern() == TensorIOMode.kINPUT;
        boolean ofShape = engine.isShapeInferenceIO(name);
        Shape shape = Addresses.shape(engine.getTensorShape(name));
        List<ProfileRange> ranges = new ArrayList<>();
        for (int profile = 0; input && profile < profiles(); profile++) {
            ranges.add(new ProfileRange(
                    range(name, ofShape, shape, profile, OptProfileSelector.kMIN),
                    range(name, ofShape, shape, profile, OptProfileSelector.kOPT),
                    range(name, ofShape, shape, profile, OptProfileSelector.kMAX)));
        }
        return new EngineTensor(
                name, input, engine.getTensorDataType(name).intern().name(), shape, ofShape, format(name), ranges);
    }

    private EngineFormat format(String name) {
        String format = engine.getTensorFormat(name).intern().name();
        return format.equals(EngineFormat.LINEAR.name())
                ? EngineFormat.LINEAR
                : new EngineFormat(
                        format, engine.getTensorVectorizedDim(name), engine.getTensorComponentsPerElement(name));
    }

    @SuppressWarnings("deprecation") // in later versions, in favor of a method that this one does not have
    private Shape range(String name, boolean ofShape, Shape shape, int profile, OptProfileSelector which) {
        if (!ofShape) {
            return Addresses.shape(engine.getProfileShape(name, profile, which));
        }
        IntPointer values = engine.getProfileTensorValues(name, profile, which);
        if (!Addresses.isObject(values)) {
            return shape; // no values are known: they are not limited
        }
        long[] limits = new long[(int) shape.elementCount()];
        for (int i = 0; i < limits.length; i++) {
            limits[i] = values.get(i);
        }
        return Shape.of(limits);
    }

    @Override
    public List<EngineTensor> tensors() {
        return tensors;
    }

    @Override
    public int profiles() {
        return engine.getNbOptimizationProfiles();
    }

    @Override
    public long contextBytes() {
        return engine.getDeviceMemorySizeV2();
    }

    @Override
    public ExecutionContext newContext(int profile, long stream) {
        log.clear();
        IExecutionContext context = engine.createExecutionContext();
        if (!Addresses.isObject(context)) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "execution context: not created: " + log.takeErrors());
        }
        if (!context.setOptimizationProfileAsync(profile, Addresses.stream(stream))) {
            NativeObjects.delete(context.address(), NativeObjects.DESTRUCTOR);
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "optimization profile " + profile + ": " + log.takeErrors());
        }
        return new NvContext(context, log);
    }

    @Override
    public void close() {
        NativeObjects.delete(engine.address(), NativeObjects.DESTRUCTOR);
        NativeObjects.delete(runtime.address(), NativeObjects.DESTRUCTOR);
    }
}
