package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OrtSessionTest {
    private OrtLibrary library;

    @TempDir
    Path directory;

    @BeforeEach
    void open() throws IOException, OrtException {
        library = TestModels.openLibrary();
    }

    @AfterEach
    void close() {
        library.close();
    }

    @Test
    void reportsNamesTypesAndDimensions() throws OrtException {
        try (OrtSession session = open("identity_int16.onnx")) {
            OrtTensorInfo expected = new OrtTensorInfo(
                    "input",
                    OrtTensorInfo.Kind.TENSOR,
                    OrtElementType.INT16,
                    true,
                    List.of(-1L, -1L),
                    List.of("batch", "size"));

            assertThat(session.inputs()).containsExactly(expected);
            assertThat(session.outputs()).extracting(OrtTensorInfo::name).containsExactly("output");
        }
    }

    @Test
    void reportsFixedDimensionsOfAllInputsAndOutputsInOrder() throws OrtException {
        try (OrtSession session = open("add_sub.onnx")) {
            assertThat(session.inputs()).extracting(OrtTensorInfo::name).containsExactly("a", "b");
            assertThat(session.outputs()).extracting(OrtTensorInfo::name).containsExactly("sum", "difference");
            assertThat(session.outputs()).extracting(OrtTensorInfo::dims).containsOnly(List.of(4L));
            assertThat(session.outputs()).extracting(OrtTensorInfo::symbols).containsOnly(List.of(""));
        }
    }

    @Test
    void distinguishesAScalarFromAnUnknownRank() throws OrtException {
        try (OrtSession scalar = open("negated_scalar.onnx");
                OrtSession unknown = open("unknown_rank.onnx")) {
            assertThat(scalar.inputs().getFirst().hasShape()).isTrue();
            assertThat(scalar.inputs().getFirst().dims()).isEmpty();
            assertThat(unknown.inputs().getFirst().hasShape()).isFalse();
        }
    }

    @Test
    void reportsAnOutputThatIsNoTensor() throws OrtException {
        try (OrtSession session = open("sequence.onnx")) {
            assertThat(session.outputs()).containsExactly(OrtTensorInfo.ofOther("output", OrtTensorInfo.Kind.SEQUENCE));
        }
    }

    @Test
    void findsExternalDataBesideTheModel() throws IOException, OrtException {
        Path model = OrtModelFile.resolve(TestModels.model("external_data"));

        try (OrtSession session = OrtSession.open(library, model, OrtSessionOptions.DEFAULTS);
                OrtExecution execution = session.newExecution(Map.of());
                TestTensors tensors = new TestTensors()) {
            execution.begin();
            execution.input(0, tensors.floats(new float[64]), 64);
            execution.output(0);
            execution.run();
            try (OrtValue output = execution.takeOutput(0)) {
                assertThat(TestTensors.floats(output.data()))
                        .startsWith(0, 1, 2)
                        .endsWith(62, 63);
            }
            execution.end();
        }
    }

    @Test
    void takesTheOnlyModelOfADirectory() throws IOException {
        Path model = Files.createFile(directory.resolve("network.onnx"));
        Files.createFile(directory.resolve("network.weights"));

        assertThat(OrtModelFile.resolve(directory)).isEqualTo(model);
        assertThat(OrtModelFile.resolve(model)).isEqualTo(model);
    }

    @Test
    void refusesADirectoryWithSeveralModels() throws IOException {
        Files.createFile(directory.resolve("a.onnx"));
        Files.createFile(directory.resolve("b.onnx"));

        assertThatThrownBy(() -> OrtModelFile.resolve(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessageContaining("2 files named *.onnx (expected: model.onnx, or exactly one)");
    }

    @Test
    void passesOnWhyAFileIsNoModel() {
        assertThatExceptionOfType(OrtException.class)
                .isThrownBy(() -> open("not_a_model.onnx"))
                .withMessageContaining("not_a_model.onnx failed:Protobuf parsing failed.")
                .extracting(OrtException::code)
                .isEqualTo(OrtErrorCode.INVALID_PROTOBUF);
    }

    @Test
    void passesOnWhichOperatorIsUnknown() {
        assertThatExceptionOfType(OrtException.class)
                .isThrownBy(() -> open("unknown_operator.onnx"))
                .withMessageContaining("NoSuchOperator");
    }

    @Test
    void passesOnThatAFileIsMissing() {
        assertThatExceptionOfType(OrtException.class)
                .isThrownBy(() -> OrtSession.open(library, directory.resolve("x.onnx"), OrtSessionOptions.DEFAULTS))
                .withMessageContaining("x.onnx")
                .extracting(OrtException::code)
                .isEqualTo(OrtErrorCode.NO_SUCHFILE);
    }

    @Test
    void passesOnThatALibraryOfOperatorsIsMissing() {
        OrtSessionOptions options = new OrtSessionOptions(
                OrtSessionOptions.DEFAULTS.threads(),
                false,
                OrtSessionOptions.DEFAULTS.execution(),
                OrtSessionOptions.DEFAULTS.memory(),
                Map.of(),
                List.of(directory.resolve("operators.so")),
                OrtSessionOptions.DEFAULTS.logging());

        assertThatExceptionOfType(OrtException.class)
                .isThrownBy(() -> OrtSession.open(library, TestModels.model("add_sub.onnx"), options))
                .withMessageContaining("operators.so");
    }

    @Test
    void writesTheLogOfTheSessionWithEveryOptionSet() throws OrtException {
        Queue<String> lines = new ConcurrentLinkedQueue<>();
        OrtSessionOptions options = new OrtSessionOptions(
                new OrtThreads(1, 2, false),
                false,
                new OrtSessionOptions.Execution(true, OrtSessionOptions.GraphLevel.DISABLED),
                new OrtSessionOptions.Memory(false, false),
                Map.of("session.intra_op.allow_spinning", "0"),
                List.of(),
                new OrtSessionOptions.Logging(
                        "digits",
                        OrtLog.Severity.VERBOSE,
                        (severity, location, text) -> lines.add(severity + " " + text)));

        OrtSession.open(library, TestModels.model("add_sub.onnx"), options).close();

        assertThat(lines)
                .anyMatch(line -> line.contains("intra_op_num_threads:1") || line.contains("intra_op_param"))
                .anyMatch(line -> line.contains("session.intra_op.allow_spinning"))
                .anyMatch(line -> line.startsWith("VERBOSE"));
    }

    @Test
    void survivesALogThatThrows() throws OrtException {
        OrtSessionOptions options = new OrtSessionOptions(
                OrtSessionOptions.DEFAULTS.threads(),
                false,
                OrtSessionOptions.DEFAULTS.execution(),
                OrtSessionOptions.DEFAULTS.memory(),
                Map.of(),
                List.of(),
                new OrtSessionOptions.Logging("broken", OrtLog.Severity.VERBOSE, (severity, location, text) -> {
                    throw new IllegalStateException("broken log");
                }));

        try (OrtSession session = OrtSession.open(library, TestModels.model("add_sub.onnx"), options)) {
            assertThat(session.inputs()).hasSize(2);
        }
    }

    @Test
    void createsNoExecutionOnceClosed() throws OrtException {
        OrtSession session = open("add_sub.onnx");
        session.close();

        assertThatThrownBy(() -> session.newExecution(Map.of()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("session: closed (expected: open)");
    }

    private OrtSession open(String model) throws OrtException {
        return OrtSession.open(library, TestModels.model(model), OrtSessionOptions.DEFAULTS);
    }
}
