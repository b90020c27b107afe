package dev.nereid.backend.tensorrt.presets;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.util.Locale;
import org.bytedeco.tensorrt.global.nvinfer;
import org.bytedeco.tensorrt.nvinfer.ICudaEngine;
import org.bytedeco.tensorrt.nvinfer.IRuntime;

/** TensorRT in this process. Safe for use by several threads. */
final class NvInfer implements TensorRtRuntime {
    private static final String LEAN = "lean";

    private final NvInferLog log = new NvInferLog();
    private final ParserLoader parser;

    /** Loads the parser when it is first needed. */
    @FunctionalInterface
    interface ParserLoader {
        void load();
    }

    NvInfer(ParserLoader parser) {
        this.parser = parser;
    }

    @Override
    public String version() {
        return nvinfer.getInferLibMajorVersion()
                + "."
                + nvinfer.getInferLibMinorVersion()
                + "."
                + nvinfer.getInferLibPatchVersion();
    }

    @Override
    public Engine deserialize(MemorySegment plan) {
        IRuntime runtime = createRuntime();
        ICudaEngine engine = runtime.deserializeCudaEngine(Addresses.of(plan.address()), plan.byteSize());
        if (!Addresses.isObject(engine)) {
            NativeObjects.delete(runtime.address(), NativeObjects.DESTRUCTOR);
            throw refused(log.takeErrors());
        }
        return new NvEngine(runtime, engine, log);
    }

    private IRuntime createRuntime() {
        log.clear();
        IRuntime runtime = nvinfer.createInferRuntime(log);
        if (!Addresses.isObject(runtime)) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "TensorRT unavailable: no runtime: " + log.takeErrors());
        }
        return runtime;
    }

    private BackendException refused(String errors) {
        String hint = errors.toLowerCase(Locale.ROOT).contains(LEAN)
                ? " (version-compatible plans are not supported: the lean runtime is not part of the plugin)"
                : " (expected: a plan that TensorRT " + version() + " built for this device)";
        return new BackendException(ErrorCode.INVALID_ARGUMENT, "plan: cannot be used: " + errors + hint);
    }

    @Override
    public byte[] build(BuildRequest request) {
        // Unlike a builder, a runtime that cannot use the driver is an error and not the end of the process.
        IRuntime runtime = createRuntime();
        try {
            parser.load();
            log.clear();
            return new EngineBuilder(log).build(request);
        } finally {
            NativeObjects.delete(runtime.address(), NativeObjects.DESTRUCTOR);
        }
    }
}
