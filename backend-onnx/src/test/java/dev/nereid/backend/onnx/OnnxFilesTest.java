package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files of models whose owner changes them while the models serve. A mistake here ends the process. */
class OnnxFilesTest {
    private static final Path MAPPINGS = Path.of("/proc/self/maps");
    private static final Path COMPILER = Path.of("/usr/bin/cc");
    private static final Shape FOUR = Shape.of(4);

    @TempDir
    Path directory;

    private Path version;

    @BeforeEach
    void createVersion() throws IOException {
        version = Files.createDirectory(directory.resolve("1"));
    }

    @Test
    void servesOnWhileExternalDataIsOverwritten() throws Exception {
        Path weights = writeWeights("weights.bin", 1, 2, 3, 4);

        servesOnWhile(OnnxBytes.inGraph(OnnxBytes.external("weights.bin")), () -> {
            writeWeights("weights.bin", 5, 6, 7, 8);
            truncate(weights, 8);
            truncate(weights, 0);
            Files.delete(weights);
        });
    }

    @Test
    void servesOnWhileExternalDataOfSubgraphsIsOverwritten() throws Exception {
        Path weights = writeWeights("weights.bin", 1, 2, 3, 4);

        servesOnWhile(OnnxBytes.inSubgraph(OnnxBytes.external("./weights.bin")), () -> {
            writeWeights("weights.bin", 5, 6, 7, 8);
            truncate(weights, 0);
        });
    }

    @Test
    void servesOnWhileExternalDataInADirectoryIsOverwritten() throws Exception {
        Files.createDirectories(version.resolve("data/more"));
        Path weights = writeWeights("data/more/weights", 1, 2, 3, 4);

        servesOnWhile(OnnxBytes.inGraph(OnnxBytes.external("data//./more/weights")), () -> {
            writeWeights("data/more/weights", 5, 6, 7, 8);
            truncate(weights, 0);
        });
    }

    /** The option would lead back to the repository. */
    @Test
    void refusesADirectoryForExternalData() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        write("model.onnx", OnnxBytes.inGraph(OnnxBytes.external("weights.bin")));
        String option = "session.model_external_initializers_file_folder_path";
        FakeModelContext context = context(settings()).withParameter(option, version.toString());

        try (TestBackend backend = new TestBackend()) {
            assertThatThrownBy(() -> backend.backend.load(context))
                    .isInstanceOf(BackendException.class)
                    .hasMessageContaining(
                            "parameter '" + option + "': " + version + " (expected: external data beside");
        }
    }

    /** ONNX Runtime refuses it or reads it, but maps nothing. */
    @Test
    void mapsNoExternalDataOfAttributes() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        write("model.onnx", OnnxBytes.inAttribute(OnnxBytes.external("weights.bin")));
        try (TestBackend backend = new TestBackend();
                Model _ = backend.backend.load(context(settings()))) {
            assertNothingMapped();
        } catch (BackendException e) {
            assertThat(e).hasMessageStartingWith("onnx runtime error").hasMessageNotContaining(directory.toString());
        }
    }

    @Test
    void servesOnWhileTheModelItselfIsOverwritten() throws Exception {
        Path model = version.resolve("model.onnx");
        byte[] weights = ByteBuffer.allocate(16)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putFloat(1)
                .putFloat(2)
                .putFloat(3)
                .putFloat(4)
                .array();

        servesOnWhile(
                OnnxBytes.inGraph(OnnxBytes.join(
                        OnnxBytes.number(1, 4),
                        OnnxBytes.number(2, OnnxBytes.FLOAT),
                        OnnxBytes.text(8, "weights"),
                        OnnxBytes.field(9, weights))),
                () -> {
                    overwrite(model, new byte[(int) Files.size(model)]);
                    truncate(model, 0);
                    Files.delete(model);
                });
    }

    /** A model in ONNX Runtime's own format is mapped if its configuration says so. */
    @Test
    void servesOnWhileAModelInTheFormatOfTheRuntimeIsOverwritten() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        Path source = write("source.onnx", OnnxBytes.inGraph(OnnxBytes.external("weights.bin")));
        Path model = version.resolve("model.ort");
        try (ai.onnxruntime.OrtSession.SessionOptions options = new ai.onnxruntime.OrtSession.SessionOptions()) {
            options.addConfigEntry("session.save_model_format", "ORT");
            options.setOptimizedModelFilePath(model.toString());
            TestModels.oracle().createSession(source.toString(), options).close();
        }
        servesOnWhile(
                settings().modelFilename("model.ort"),
                Map.of(
                        "session.use_memory_mapped_ort_model", "1",
                        "session.use_ort_model_bytes_for_initializers", "1"),
                () -> {
                    overwrite(model, new byte[(int) Files.size(model)]);
                    truncate(model, 0);
                });
    }

    @Test
    void servesOnWhileAnOperatorLibraryIsOverwritten() throws Exception {
        assumeTrue(Files.isExecutable(COMPILER), () -> COMPILER + " is not there");
        Path library = compile("operators.so", "void *RegisterCustomOps(void *o, void *a) { return other(); }");
        writeWeights("weights.bin", 1, 2, 3, 4);
        write("model.onnx", OnnxBytes.inGraph(OnnxBytes.external("weights.bin")));

        servesOnWhile(settings().json(TestConfig.operatorLibrary("operators.so")), () -> {
            overwrite(library, new byte[(int) Files.size(library)]);
            truncate(library, 0);
            truncate(directory.resolve("libother.so"), 0);
        });
    }

    @Test
    void reportsTheMappedMemory() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        Path model = write("model.onnx", OnnxBytes.inGraph(OnnxBytes.external("weights.bin")));
        try (TestBackend backend = new TestBackend();
                Model loaded = backend.backend.load(context(settings()));
                Model inOneFile = backend.backend.load(TestBackend.model(
                        ModelSettings.builder("m", 1)
                                .modelFilename("add_sub.onnx")
                                .input(TensorSpec.of("a", DataType.FP32, FOUR))
                                .input(TensorSpec.of("b", DataType.FP32, FOUR))
                                .output(TensorSpec.of("sum", DataType.FP32, FOUR))
                                .build(),
                        1))) {
            assertThat(loaded.memoryUsage()).containsExactly(new MemoryUsage(MemoryPlace.HOST, Files.size(model) + 16));
            assertThat(inOneFile.memoryUsage()).isEmpty();
        }
    }

    @Test
    void completesAConfigurationFromPrivateCopies() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        write("model.onnx", OnnxBytes.inGraph(OnnxBytes.external("weights.bin")));
        try (TestBackend backend = new TestBackend()) {
            assertThat(backend.backend
                            .complete(context(ModelSettings.builder("m", 1)))
                            .orElseThrow()
                            .inputs())
                    .extracting(TensorSpec::name)
                    .containsExactly("input");
        }
    }

    @Test
    void refusesExternalDataThatIsNoFileOfTheModel() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        Files.write(directory.resolve("outside.bin"), new byte[16]);
        Files.createDirectory(version.resolve("data"));
        for (String location : List.of(
                "../outside.bin",
                "data/../weights.bin",
                "/etc/passwd",
                "none.bin",
                "data",
                ".",
                "",
                "a\0b",
                "*/_ORT_MEM_ADDR_/*",
                "x".repeat(4000))) {
            write("model.onnx", OnnxBytes.inGraph(OnnxBytes.external(location)));
            assertRefused("unable to load model 'm', external data '"
                    + (location.length() > 256 ? location.substring(0, 256) + "…" : location)
                    + "' of 'model.onnx' (expected: an existing file in the directory of that file, or below it)");
        }
    }

    @Test
    void refusesExternalDataBeyondTheEndOfItsFile() throws Exception {
        writeWeights("weights.bin", 1, 2, 3, 4);
        for (String[] range : new String[][] {
            {"4", "16"},
            {"16", "16"},
            {"9223372036854775807", "16"},
            {"9223372036854775792", "16"},
            {"18446744073709551615", "16"},
            {"-1", "16"},
            {"-16", "16"},
            {"1e3", "16"},
            {"x", "16"},
            {"0", "9223372036854775807"},
            {"0", "-1"},
            {"0", "32"},
        }) {
            write("model.onnx", OnnxBytes.inGraph(OnnxBytes.external("weights.bin", range[0], range[1])));
            assertRefused("onnx runtime error ");
        }
        for (long size : new long[] {5, 1L << 40, Long.MAX_VALUE, Long.MIN_VALUE, -1}) {
            write(
                    "model.onnx",
                    OnnxBytes.inGraph(OnnxBytes.external("weights.bin", "0", Long.toString(size * 4), size)));
            assertRefused("onnx runtime error ");
        }
        assertThat(Files.size(version.resolve("weights.bin"))).isEqualTo(16);
    }

    private interface Change {
        void make() throws IOException;
    }

    private void servesOnWhile(byte[] model, Change change) throws Exception {
        write("model.onnx", model);
        servesOnWhile(settings(), change);
    }

    private void servesOnWhile(ModelSettingsBuilder settings, Change change) throws Exception {
        servesOnWhile(settings, Map.of(), change);
    }

    private void servesOnWhile(ModelSettingsBuilder settings, Map<String, String> parameters, Change change)
            throws Exception {
        try (TestBackend backend = new TestBackend();
                Model model = backend.backend.load(context(settings).withParameters(parameters));
                ModelInstance instance = model.newInstance(new FakeInstanceContext("0"))) {
            assertThat(run(settings, instance)).containsExactly(11, 22, 33, 44);
            assertNothingMapped();

            change.make();

            assertThat(run(settings, instance)).containsExactly(11, 22, 33, 44);
            try (ModelInstance added = model.newInstance(new FakeInstanceContext("1"))) {
                assertThat(run(settings, added)).containsExactly(11, 22, 33, 44);
            }
        }
    }

    private void assertNothingMapped() throws IOException {
        if (Files.isReadable(MAPPINGS)) {
            assertThat(Files.readString(MAPPINGS))
                    .doesNotContain(directory.toRealPath().toString());
        }
    }

    private static float[] run(ModelSettingsBuilder settings, ModelInstance instance) {
        try (Arena arena = Arena.ofConfined();
                LeakCheckingMemory memory = new LeakCheckingMemory()) {
            Tensor input = Tensor.of(DataType.FP32, FOUR, arena.allocateFrom(ValueLayout.JAVA_FLOAT, 10, 20, 30, 40));
            FakeRequest request = new FakeRequest(1, List.of("output")).with("input", input);
            try (FakeBatch batch = new FakeBatch(settings.build(), memory, request)) {
                instance.execute(batch);
                return batch.outputs().get("output").data().toArray(ValueLayout.JAVA_FLOAT);
            }
        }
    }

    private void assertRefused(String message) {
        try (TestBackend backend = new TestBackend()) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> backend.backend.load(context(settings())))
                    .withMessageStartingWith(message)
                    .withMessageNotContaining(directory.toString() + "/")
                    .withMessageNotContaining("nereid-private-files");
        }
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("input", DataType.FP32, FOUR))
                .output(TensorSpec.of("output", DataType.FP32, FOUR));
    }

    private FakeModelContext context(ModelSettingsBuilder settings) {
        return new FakeModelContext(settings.build(), directory, version, List.of(Device.CPU), new RecordedLog());
    }

    private Path writeWeights(String name, float... values) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            bytes.putFloat(value);
        }
        return overwrite(version.resolve(name), bytes.array());
    }

    private Path write(String name, byte[] content) throws IOException {
        return overwrite(version.resolve(name), content);
    }

    /** Writes into a file that may exist and be mapped, as {@code cp} does. */
    private static Path overwrite(Path file, byte[] content) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(content));
            channel.truncate(content.length);
        }
        return file;
    }

    private static void truncate(Path file, long size) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(size);
        }
    }

    /** Compiles a library that needs another one in its directory. */
    private Path compile(String name, String source) throws Exception {
        compile("libother.so", "void *other(void) { return 0; }", List.of());
        return compile(
                name, "void *other(void);\n" + source, List.of("-L" + directory, "-lother", "-Wl,-rpath,$ORIGIN"));
    }

    private Path compile(String name, String source, List<String> options) throws Exception {
        Path code = Files.writeString(directory.resolve(name + ".c"), source);
        Path library = directory.resolve(name);
        List<String> command = new ArrayList<>(
                List.of(COMPILER.toString(), "-shared", "-fPIC", "-o", library.toString(), code.toString()));
        command.addAll(options);
        assertThat(new ProcessBuilder(command).inheritIO().start().waitFor()).isZero();
        return library;
    }
}
