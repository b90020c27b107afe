package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.cuda.Gpu;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class EngineCacheTest {
    private static final Gpu GPU = new Gpu(0, "NVIDIA A", "GPU-1", 9, 0, 1L << 36);

    @TempDir
    private Path directory;

    private Path onnx;
    private EngineCache cache;
    private final Builder runtime = new Builder();

    @BeforeEach
    void open() throws IOException {
        onnx = Files.writeString(Files.createDirectory(directory.resolve("1")).resolve("model.onnx"), "a model");
        cache = new EngineCache(directory.resolve("engines"));
    }

    private BuildRequest request(String precision) {
        return new BuildRequest(onnx, precision, 0, Map.of("IN", range(Shape.of(1), Shape.of(2), Shape.of(4))));
    }

    @Test
    void buildsAnEngineOnce() throws IOException {
        Path plan = cache.plan(runtime, request("FP32"), GPU);

        assertThat(plan).hasContent("plan 1");
        assertThat(cache.plan(runtime, request("FP32"), new Gpu(1, "NVIDIA A", "GPU-2", 9, 0, 1L << 36)))
                .as("another GPU of the same kind")
                .isEqualTo(plan);
        assertThat(runtime.built).isEqualTo(1);
        try (Stream<Path> files = Files.list(directory.resolve("engines"))) {
            assertThat(files).containsExactly(plan);
        }
    }

    @Test
    void dependsOnContentDeviceVersionAndSettings() throws IOException {
        Set<Path> plans = new HashSet<>();
        plans.add(cache.plan(runtime, request("FP32"), GPU));
        plans.add(cache.plan(runtime, request("FP16"), GPU));
        plans.add(cache.plan(
                runtime, new BuildRequest(onnx, "FP32", 1, request("FP32").ranges()), GPU));
        plans.add(cache.plan(runtime, new BuildRequest(onnx, "FP32", 0, Map.of()), GPU));
        plans.add(cache.plan(runtime, request("FP32"), new Gpu(0, "NVIDIA B", "GPU-1", 9, 0, 1L << 36)));
        plans.add(cache.plan(runtime, request("FP32"), new Gpu(0, "NVIDIA A", "GPU-1", 8, 9, 1L << 36)));
        runtime.version = "10.16.0";
        plans.add(cache.plan(runtime, request("FP32"), GPU));
        Files.writeString(onnx, "another model");
        plans.add(cache.plan(runtime, request("FP32"), GPU));

        Path weights = Files.writeString(
                Files.createDirectory(onnx.resolveSibling("data")).resolve("weights"), "some");
        plans.add(cache.plan(runtime, request("FP32"), GPU));
        Files.writeString(weights, "more");
        plans.add(cache.plan(runtime, request("FP32"), GPU));
        Files.move(weights, onnx.resolveSibling("weights"));
        plans.add(cache.plan(runtime, request("FP32"), GPU));

        assertThat(plans).hasSize(11);
        assertThat(runtime.built).isEqualTo(11);
    }

    @Test
    void keepsNoEngineOfFilesThatChangeMeanwhile() {
        runtime.whileBuilding = () -> Files.writeString(onnx, "another model");

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> cache.plan(runtime, request("FP32"), GPU))
                .withMessage("engine of model.onnx: files of the model changed while it was built"
                        + " (expected: files that stay as they are)");
        assertThat(directory.resolve("engines")).doesNotExist();
    }

    @Test
    void writesNothingIfTheBuildFails() throws IOException {
        runtime.fails = true;

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> cache.plan(runtime, request("FP32"), GPU))
                .withMessage("of a test");
        assertThat(directory.resolve("engines")).doesNotExist();
    }

    /** Builds texts. */
    private static final class Builder implements TensorRtRuntime {
        private String version = "10.15.1";
        private boolean fails;
        private int built;
        private ThrowingRunnable whileBuilding = () -> {};

        /** Changes the files. */
        private interface ThrowingRunnable {
            void run() throws IOException;
        }

        @Override
        public String version() {
            return version;
        }

        @Override
        public Engine deserialize(MemorySegment plan) {
            throw new AssertionError("deserialize: not expected");
        }

        @Override
        public byte[] build(BuildRequest request) {
            if (fails) {
                throw new BackendException(ErrorCode.INVALID_ARGUMENT, "of a test");
            }
            built++;
            try {
                whileBuilding.run();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return ("plan " + built).getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }
    }
}
