package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Sessions on the first GPU, with inputs and outputs in its memory. */
@Tag("gpu")
class OrtGpuTest {
    private static final float TOLERANCE = 1e-3f;
    private static final OrtProviders CUDA =
            new OrtProviders(0, List.of(new OrtProvider(OrtProvider.Kind.CUDA, Map.of())));

    private static OrtLibrary openLibrary() throws IOException, OrtException {
        NativePlatform platform = NativePlatform.current();
        return OrtLibrary.open(
                NativeLibraryFile.unpack(platform, TestGpu.artifact(), Path.of("target", "native")), platform);
    }

    @Test
    void computesInMemoryOfTheGpu() throws IOException, OrtException {
        try (OrtLibrary library = openLibrary();
                TestGpu gpu = TestGpu.open();
                TestTensors tensors = new TestTensors();
                OrtSession session =
                        OrtSession.open(library, TestModels.model("add_sub.onnx"), OrtSessionOptions.DEFAULTS, CUDA);
                OrtExecution execution = session.newExecution(Map.of())) {
            MemorySegment sum = gpu.allocate(16);
            for (int run = 0; run < 3; run++) {
                MemorySegment difference = tensors.empty(16);
                execution.begin();
                execution.inputOnDevice(0, gpu.copyOf(tensors.floats(10, 20, 30, 40 + run)), 4);
                execution.inputOnDevice(1, gpu.copyOf(tensors.floats(1, 2, 3, 4)), 4);
                execution.outputOnDevice(0, sum, 4);
                execution.output(1, difference, 4);
                execution.run();
                execution.end();

                MemorySegment read = tensors.empty(16);
                gpu.read(sum, read);
                assertThat(TestTensors.floats(read))
                        .containsExactly(new float[] {11, 22, 33, 44 + run}, within(TOLERANCE));
                assertThat(TestTensors.floats(difference))
                        .containsExactly(new float[] {9, 18, 27, 36 + run}, within(TOLERANCE));
            }
        }
    }

    @Test
    void readsInputsFromBothSides() throws IOException, OrtException {
        try (OrtLibrary library = openLibrary();
                TestGpu gpu = TestGpu.open();
                TestTensors tensors = new TestTensors();
                OrtSession session =
                        OrtSession.open(library, TestModels.model("add_sub.onnx"), OrtSessionOptions.DEFAULTS, CUDA);
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.inputOnDevice(0, gpu.copyOf(tensors.floats(10, 20, 30, 40)), 4);
            execution.input(1, tensors.floats(1, 2, 3, 4), 4);
            execution.output(0);
            execution.run();
            try (OrtValue sum = execution.takeOutput(0)) {
                assertThat(TestTensors.floats(sum.data()))
                        .containsExactly(new float[] {11, 22, 33, 44}, within(TOLERANCE));
            }
            execution.end();
        }
    }

    /** ONNX Runtime allocates an output on the host if the caller passed no memory for it. */
    @Test
    void readsOutputsWhoseShapeDependsOnValuesOnTheHost() throws IOException, OrtException {
        try (OrtLibrary library = openLibrary();
                TestGpu gpu = TestGpu.open();
                TestTensors tensors = new TestTensors();
                OrtSession session =
                        OrtSession.open(library, TestModels.model("non_zero.onnx"), OrtSessionOptions.DEFAULTS, CUDA);
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.inputOnDevice(0, gpu.copyOf(tensors.floats(3, 0, 4)), 3);
            execution.output(0);
            execution.run();
            try (OrtValue output = execution.takeOutput(0)) {
                assertThat(output.shape()).containsExactly(1, 2);
                assertThat(output.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(0, 2);
            }
            execution.end();
        }
    }
}
