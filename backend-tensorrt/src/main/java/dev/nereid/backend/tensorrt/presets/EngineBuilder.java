package dev.nereid.backend.tensorrt.presets;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorrt.global.nvinfer;
import org.bytedeco.tensorrt.global.nvinfer.BuilderFlag;
import org.bytedeco.tensorrt.global.nvinfer.MemoryPoolType;
import org.bytedeco.tensorrt.global.nvinfer.OptProfileSelector;
import org.bytedeco.tensorrt.global.nvonnxparser;
import org.bytedeco.tensorrt.nvinfer.IBuilder;
import org.bytedeco.tensorrt.nvinfer.IBuilderConfig;
import org.bytedeco.tensorrt.nvinfer.IHostMemory;
import org.bytedeco.tensorrt.nvinfer.INetworkDefinition;
import org.bytedeco.tensorrt.nvinfer.IOptimizationProfile;
import org.bytedeco.tensorrt.nvinfer.ITensor;
import org.bytedeco.tensorrt.nvonnxparser.IParser;
import org.jspecify.annotations.Nullable;

/** Builds one engine from a model of ONNX. Confined to the thread that builds. */
final class EngineBuilder {
    private static final int ERRORS_ONLY = 1;

    private final NvInferLog log;

    /** Created objects, freed in reverse order. */
    private final List<Pointer> created = new ArrayList<>();

    EngineBuilder(NvInferLog log) {
        this.log = log;
    }

    /** Builds it. Returns the content of the plan. */
    byte[] build(BuildRequest request) {
        try {
            IBuilder builder = created(nvinfer.createInferBuilder(log), "builder");
            INetworkDefinition network = created(builder.createNetworkV2(0), "network");
            IParser parser = created(nvonnxparser.createParser(network, log), "parser");
            if (!parser.parseFromFile(request.onnx().toString(), ERRORS_ONLY)) {
                throw invalid(request.onnx() + ": cannot be parsed: " + errors(parser));
            }
            IBuilderConfig config = created(builder.createBuilderConfig(), "configuration");
            configure(config, request);
            addProfile(builder, config, network, request);
            IHostMemory plan = created(builder.buildSerializedNetwork(network, config), "engine");
            byte[] content = new byte[Math.toIntExact(plan.size())];
            try (BytePointer bytes = new BytePointer(plan.data())) {
                bytes.get(content);
            }
            return content;
        } finally {
            for (int i = created.size() - 1; i >= 0; i--) {
                Pointer object = created.get(i);
                NativeObjects.delete(
                        object.address(),
                        object instanceof IParser ? NativeObjects.PARSER_DESTRUCTOR : NativeObjects.DESTRUCTOR);
            }
        }
    }

    @SuppressWarnings("deprecation") // the other way needs a model with the types written into it
    private static void configure(IBuilderConfig config, BuildRequest request) {
        switch (request.precision()) {
            case "FP32" -> config.clearFlag(BuilderFlag.kTF32);
            case "TF32" -> config.setFlag(BuilderFlag.kTF32);
            case "FP16" -> config.setFlag(BuilderFlag.kFP16);
            case "BF16" -> config.setFlag(BuilderFlag.kBF16);
            default ->
                throw invalid("parameter 'build_precision': '" + request.precision()
                        + "' (expected: FP32, TF32, FP16 or BF16)");
        }
        if (request.workspaceBytes() > 0) {
            config.setMemoryPoolLimit(MemoryPoolType.kWORKSPACE, request.workspaceBytes());
        }
    }

    private void addProfile(IBuilder builder, IBuilderConfig config, INetworkDefinition network, BuildRequest request) {
        IOptimizationProfile profile = builder.createOptimizationProfile(); // owned by the builder
        boolean variable = false;
        for (int i = 0; i < network.getNbInputs(); i++) {
            ITensor input = network.getInput(i);
            String name = input.getName();
            Shape shape = Addresses.shape(input.getDimensions());
            if (shape.isConcrete()) {
                continue;
            }
            variable = true;
            ProfileRange range = request.ranges().get(name);
            if (range == null || range.min().rank() != shape.rank()) {
                throw invalid("input '" + name + "': shape " + shape + ", limits " + range
                        + " (expected: limits of as many dimensions; see the parameter build_shapes)");
            }
            profile.setDimensions(name, OptProfileSelector.kMIN, Addresses.dims(range.min()));
            profile.setDimensions(name, OptProfileSelector.kOPT, Addresses.dims(range.opt()));
            profile.setDimensions(name, OptProfileSelector.kMAX, Addresses.dims(range.max()));
        }
        if (variable && config.addOptimizationProfile(profile) < 0) {
            throw invalid("limits " + request.ranges() + ": " + log.takeErrors());
        }
    }

    private <T extends Pointer> T created(@Nullable T object, String what) {
        if (object == null || !Addresses.isObject(object)) {
            throw new BackendException(ErrorCode.UNAVAILABLE, what + ": not made: " + log.takeErrors());
        }
        created.add(object);
        return object;
    }

    private static String errors(IParser parser) {
        List<String> errors = new ArrayList<>();
        for (int i = 0; i < parser.getNbErrors(); i++) {
            errors.add(parser.getError(i).desc());
        }
        return String.join("; ", errors);
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
