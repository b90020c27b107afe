package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.onnx.ort.TestGpu;
import dev.nereid.backend.onnx.ort.TestTensors;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The backend with the GPU build of ONNX Runtime, on any machine. */
class OnnxGpuBuildTest {
    private static final Device GPU = new Device(Device.Kind.GPU, 0);

    @Test
    void takesInputsOnGpusAndLeavesTheChoiceOfTheDeviceToTheServer() {
        FakeBackendContext context = TestBackend.context(Map.of());

        try (Backend backend = OnnxBackend.open(context, TestGpu.artifact())) {
            assertThat(backend.traits().places()).contains(MemoryPlace.Kind.GPU);
            assertThat(backend.traits().preferredGroups()).isEmpty();
            assertThat(context.logger().lines()).containsExactly("INFO loaded ONNX Runtime 1.28.0 for CUDA");
        }
    }

    @Test
    void computesOnTheCpu() {
        try (Backend backend = OnnxBackend.open(TestBackend.context(Map.of()), TestGpu.artifact());
                Model model = backend.load(TestBackend.model(settings(Map.of()), 1));
                ModelInstance instance = model.newInstance(new FakeInstanceContext("0"));
                TestTensors tensors = new TestTensors();
                LeakCheckingMemory memory = new LeakCheckingMemory();
                FakeBatch batch = new FakeBatch(
                        settings(Map.of()),
                        memory,
                        new FakeRequest(1, List.of("sum"))
                                .with("a", Tensor.of(DataType.FP32, Shape.of(4), tensors.floats(10, 20, 30, 40)))
                                .with("b", Tensor.of(DataType.FP32, Shape.of(4), tensors.floats(1, 2, 3, 4))))) {
            instance.execute(batch);

            assertThat(batch.outputs().get("sum").floats()).containsExactly(11, 22, 33, 44);
        }
    }

    @Test
    void namesTheLibraryOfCudaThatIsMissing() {
        assertMissing(settings(Map.of()), "cuda", "libcublasLt.so.12", "CUDA 12");
    }

    @Test
    void namesTheLibraryOfTensorRtThatIsMissing() {
        ModelSettings settings = settings(Map.of("precision_mode", "FP32"));
        assertMissing(settings, "tensorrt", "libcublas.so.12", "CUDA 12");
    }

    /** With the libraries of CUDA 12, and either no driver or none that finds a GPU. */
    @Test
    void passesOnWhatCudaSaysWithoutAGpu() {
        ClassLoader artifact = TestGpu.artifact();
        for (String library : List.of("libcublasLt.so.12", "libcudart.so.12", "libcurand.so.10", "libcuda.so.1")) {
            assumeTrue(TestGpu.isThere(library), library + " is absent");
        }
        assumeFalse(TestGpu.isPresent(), "this machine has a GPU");
        try (Backend backend = OnnxBackend.open(TestBackend.context(Map.of()), artifact)) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> backend.load(TestBackend.model(settings(Map.of()), GPU)))
                    .withMessageMatching("(?s)onnx runtime error 1: .*CUDA failure \\d+: .*");
        }
    }

    private static void assertMissing(ModelSettings settings, String provider, String library, String owner) {
        ClassLoader artifact = TestGpu.artifact();
        assumeFalse(TestGpu.isThere(library), library + " is on this machine");
        try (Backend backend = OnnxBackend.open(TestBackend.context(Map.of()), artifact)) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> backend.load(TestBackend.model(settings, Device.CPU, GPU)))
                    .withMessageStartingWith("onnx runtime error 1: ")
                    .withMessageEndingWith("Failed to load library libonnxruntime_providers_" + provider
                            + ".so with error: " + library + ": cannot open shared object file: No such file or"
                            + " directory; " + library + " is part of " + owner + " (expected: in a directory that"
                            + " LD_LIBRARY_PATH names at the start of the server, or among the libraries of the"
                            + " system)");
        }
    }

    private static ModelSettings settings(Map<String, String> tensorRt) {
        var settings = ModelSettings.builder("m", 1)
                .modelFilename("add_sub.onnx")
                .input(fp32("a"))
                .input(fp32("b"))
                .output(fp32("sum"))
                .output(fp32("difference"));
        return tensorRt.isEmpty()
                ? settings.build()
                : settings.json(TestConfig.gpu(TestConfig.accelerator("tensorrt", tensorRt)))
                        .build();
    }

    private static TensorSpec fp32(String name) {
        return TensorSpec.of(name, DataType.FP32, Shape.of(4));
    }
}
