package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;

/** Operations that an author brings along ({@code op_library_filename}). */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class OperatorLibraryTest {
    private static final Path COMPILER = Path.of("/usr/bin/cc");
    private static final String LIBRARY = "triple.so";

    @TempDir
    private Path directory;

    @BeforeEach
    void writeModel() {
        new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, 4)
                .add(org.tensorflow.proto.NodeDef.newBuilder()
                        .setName("y")
                        .setOp("NereidTriple")
                        .addInput("x"))
                .write(directory.resolve("model.graphdef"));
    }

    private static ModelSettingsBuilder settings(String library) {
        return settings().json("{\"model_operations\":{\"op_library_filename\":[\"" + library + "\"]}}");
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(4)))
                .output(TensorSpec.of("y", DataType.FP32, Shape.of(4)));
    }

    @Test
    void namesALibraryThatIsMissingOrElsewhere() {
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(settings("none.so")))
                    .hasMessage("unable to load model 'm', op_library_filename: 'none.so' (expected: a file in the"
                            + " model's directory)");
            assertThatThrownBy(() -> test.load(settings("../none.so")))
                    .hasMessageStartingWith("unable to load model 'm', op_library_filename: '../none.so' (expected: a"
                            + " path within");
        }
    }

    @Test
    void namesAFileThatIsNoLibrary() throws IOException {
        Files.writeString(directory.resolve(LIBRARY), "no library");
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(settings(LIBRARY)))
                    .hasMessageStartingWith("unable to load model 'm', TensorFlow error ")
                    .message()
                    .contains("m/1/" + LIBRARY)
                    .doesNotContain("\n")
                    .doesNotContain(directory.toString());
        }
    }

    /** First of all: operations stay registered until the process ends. */
    @Test
    @Order(1)
    void runsAnOperationOfTheLibrary() throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(COMPILER), () -> COMPILER + " is not there");
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(settings()))
                    .hasMessageContaining("Op type not registered 'NereidTriple'");
            compile();

            Map<String, dev.nereid.spi.Tensor> outputs = test.run(
                    test.instance(settings(LIBRARY)),
                    settings().build(),
                    1,
                    Map.of("x", test.floats(Shape.of(4), 1, 2, 3, 4)));

            assertThat(TestBackend.floats(outputs.get("y"))).containsExactly(3, 6, 9, 12);
        }
    }

    /** A library is mapped until the process ends: from a copy, which may be removed. Its first content stays. */
    @Test
    void servesOnWhileTheLibraryIsOverwritten() throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(COMPILER), () -> COMPILER + " is not there");
        compile();
        Path library = directory.resolve(LIBRARY);
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings(LIBRARY));
            assertTriples(test, instance);
            ServedFilesTest.assertNothingMapped(directory);

            byte[] content = Files.readAllBytes(library);
            ServedFilesTest.overwrite(library, new byte[content.length]);
            ServedFilesTest.overwrite(library, new byte[0]);
            Files.delete(library);

            assertTriples(test, instance);
            Files.write(library, content);
            assertTriples(test, test.instance(settings(LIBRARY)));
            Files.copy(library, directory.resolve("same.so"));
            assertTriples(test, test.instance(settings("same.so")));
            assertThat(test.log()).noneMatch(line -> line.startsWith("WARNING"));
            Files.write(library, "other".getBytes(StandardCharsets.UTF_8));
            assertTriples(test, test.instance(settings(LIBRARY)));
            assertThat(test.log())
                    .contains("WARNING op_library_filename 'triple.so' was changed after it was loaded: its former"
                            + " operations stay until the server is restarted");
        }
        try (TestBackend later = new TestBackend(directory)) {
            assertTriples(later, later.instance(settings("same.so")));
        }
    }

    private static void assertTriples(TestBackend test, ModelInstance instance) {
        Map<String, dev.nereid.spi.Tensor> outputs =
                test.run(instance, settings().build(), 1, Map.of("x", test.floats(Shape.of(4), 1, 2, 3, 4)));
        assertThat(TestBackend.floats(outputs.get("y"))).containsExactly(3, 6, 9, 12);
    }

    private void compile() throws IOException, InterruptedException {
        Path source = directory.resolve("triple.c");
        try (InputStream in = Objects.requireNonNull(OperatorLibraryTest.class.getResourceAsStream("/triple.c"))) {
            Files.copy(in, source);
        }
        Path framework = TensorFlowJava.library().file().resolveSibling("libtensorflow_framework.so.2");
        Process compiler = new ProcessBuilder(
                        COMPILER.toString(),
                        "-shared",
                        "-fPIC",
                        "-o",
                        directory.resolve(LIBRARY).toString(),
                        source.toString(),
                        framework.toString())
                .inheritIO()
                .start();
        assertThat(compiler.waitFor()).isZero();
    }
}
