package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Providers with the build of ONNX Runtime for the CPU, which has the functions for them and refuses to add any. */
class OrtProvidersTest {
    private static final OrtProvider CUDA = new OrtProvider(OrtProvider.Kind.CUDA, Map.of("gpu_mem_limit", "1"));
    private static final OrtProvider TENSORRT = new OrtProvider(OrtProvider.Kind.TENSORRT, Map.of());

    private OrtLibrary library;

    @BeforeEach
    void open() throws IOException, OrtException {
        library = TestModels.openLibrary();
    }

    @AfterEach
    void close() {
        library.close();
    }

    @Test
    void namesTheProvidersThatTheLibraryWasBuiltWith() {
        assertThat(library.providers()).contains("CPUExecutionProvider").doesNotContain("CUDAExecutionProvider");
    }

    @Test
    void reportsAProviderThatTheLibraryLacks() {
        assertRefused(new OrtProviders(0, List.of(CUDA)), "CUDA execution provider is not enabled in this build.");
        assertRefused(
                new OrtProviders(0, List.of(TENSORRT)), "TensorRT execution provider is not enabled in this build.");
    }

    @Test
    void addsProvidersInTheirOrder() {
        assertRefused(
                new OrtProviders(0, List.of(TENSORRT, CUDA)),
                "TensorRT execution provider is not enabled in this build.");
        assertRefused(
                new OrtProviders(0, List.of(CUDA, TENSORRT)), "CUDA execution provider is not enabled in this build.");
    }

    private void assertRefused(OrtProviders providers, String message) {
        assertThatExceptionOfType(OrtException.class)
                .isThrownBy(() -> OrtSession.open(
                        library, TestModels.model("add_sub.onnx"), OrtSessionOptions.DEFAULTS, providers))
                .withMessage(message);
    }

    @Test
    void leavesTheDirectoryOfTheLibraryOutOfMessages() throws IOException {
        String file = TestModels.nativeLibrary()
                .resolveSibling("libonnxruntime_providers_cuda.so")
                .toAbsolutePath()
                .toString();

        assertThat(library.withoutDirectory("Failed to load library " + file + " with error: none"))
                .isEqualTo("Failed to load library libonnxruntime_providers_cuda.so with error: none");
    }

    @Test
    void refusesMemoryOfADeviceInASessionWithoutOne() throws OrtException {
        try (OrtSession session =
                        OrtSession.open(library, TestModels.model("add_sub.onnx"), OrtSessionOptions.DEFAULTS);
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();

            assertThatIllegalStateException()
                    .isThrownBy(() -> execution.inputOnDevice(0, MemorySegment.NULL, 4))
                    .withMessage("session: on the CPU (expected: on a device)");
            assertThatIllegalStateException()
                    .isThrownBy(() -> execution.outputOnDevice(0, MemorySegment.NULL, 4))
                    .withMessage("session: on the CPU (expected: on a device)");
            execution.end();
        }
    }

    /** ONNX Runtime itself says which memory a value describes. */
    @Test
    void describesMemoryOfADeviceByItsAddress() throws OrtException {
        OrtApi api = library.api();
        try (OrtSession session =
                        OrtSession.open(library, TestModels.model("identity_float.onnx"), OrtSessionOptions.DEFAULTS);
                Arena arena = Arena.ofConfined()) {
            long memory = new OrtProviders(3, List.of(CUDA)).memory(library);
            OrtScratch scratch = new OrtScratch(arena);
            TensorSlot slot = new TensorSlot(library, scratch, session.inputs().getFirst());
            MemorySegment data = arena.allocate(16, OrtProviders.ALIGNMENT);

            slot.setInput(data, new long[] {1, 4});
            assertThat(OrtProviders.place(api, slot.value(), scratch)).isEqualTo("Cpu 0");
            OrtProviders.requireHost(api, slot.value(), scratch);

            slot.setOnDevice(memory, data, new long[] {1, 4});
            assertThat(OrtProviders.place(api, slot.value(), scratch)).isEqualTo("Cuda 3");
            assertThat(address(slot)).isEqualTo(data.address());
            assertThatIllegalStateException()
                    .isThrownBy(() -> OrtProviders.requireHost(api, slot.value(), scratch))
                    .withMessage("output: lies in memory of Cuda 3 (expected: on the host)");

            slot.setInput(data, new long[] {1, 4});
            assertThat(OrtProviders.place(api, slot.value(), scratch)).isEqualTo("Cpu 0");

            slot.releaseValue();
            api.release(OrtFunction.ReleaseMemoryInfo, memory);
        }
    }

    /** The server labels memory of a GPU so, that Java code cannot read it by mistake. */
    @Test
    void takesMemoryOfAClosedArenaByItsAddress() throws OrtException {
        MemorySegment data;
        try (Arena closed = Arena.ofConfined()) {
            data = closed.allocate(16, OrtProviders.ALIGNMENT);
        }
        try (OrtSession session =
                        OrtSession.open(library, TestModels.model("identity_float.onnx"), OrtSessionOptions.DEFAULTS);
                Arena arena = Arena.ofConfined()) {
            long memory = new OrtProviders(0, List.of(CUDA)).memory(library);
            TensorSlot slot = new TensorSlot(
                    library, new OrtScratch(arena), session.inputs().getFirst());

            slot.setOnDevice(memory, data, new long[] {1, 4});
            assertThat(address(slot)).isEqualTo(data.address());

            slot.releaseValue();
            library.api().release(OrtFunction.ReleaseMemoryInfo, memory);
        }
    }

    private long address(TensorSlot slot) throws OrtException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            library.api().call(OrtFunction.GetTensorMutableData, slot.value(), out.address());
            return out.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    @Test
    void refusesMemoryOfADeviceThatKernelsCannotRead() throws OrtException {
        try (OrtSession session =
                        OrtSession.open(library, TestModels.model("identity_float.onnx"), OrtSessionOptions.DEFAULTS);
                Arena arena = Arena.ofConfined()) {
            long memory = new OrtProviders(0, List.of(CUDA)).memory(library);
            TensorSlot slot = new TensorSlot(
                    library, new OrtScratch(arena), session.inputs().getFirst());
            MemorySegment data = arena.allocate(32, OrtProviders.ALIGNMENT);

            assertThatIllegalArgumentException()
                    .isThrownBy(() -> slot.setOnDevice(memory, data.asSlice(16), new long[] {1, 4}))
                    .withMessage("'input': address " + (data.address() + 16) + " (expected: a multiple of 256)");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> slot.setOnDevice(memory, data, new long[] {1, 4}))
                    .withMessage("'input': 32 bytes (expected: 16 for FLOAT [1, 4])");

            library.api().release(OrtFunction.ReleaseMemoryInfo, memory);
        }
    }

    @Test
    void countsDevicesFromZero() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new OrtProviders(-1, List.of(CUDA)))
                .withMessage("device: -1 (expected: >= 0)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new OrtProviders(-2, List.of()))
                .withMessage("device: -2 (expected: >= 0)");
    }
}
