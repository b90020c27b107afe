package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeInstanceContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.tensorflow.proto.MetaGraphDef;
import org.tensorflow.proto.NodeDef;
import org.tensorflow.proto.SavedModel;
import org.tensorflow.proto.SignatureDef;
import org.tensorflow.proto.TensorInfo;

/** Files and parameters that cannot be served: one clear reason each, at the load, and nothing else suffers. */
class BrokenFilesTest {
    private static final Shape FOUR = Shape.of(4);
    private static final Shape TWO = Shape.of(2);

    @TempDir
    private Path directory;

    @TempDir
    private static Path others;

    private Path savedModel;
    private Path file;

    @BeforeAll
    static void writeOthers() {
        TestModels.variable(others);
    }

    @BeforeEach
    void write() {
        TestModels.variable(directory);
        savedModel = directory.resolve(TestModels.SAVED_MODEL);
        file = savedModel.resolve("saved_model.pb");
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("x", DataType.FP32, FOUR))
                .output(TensorSpec.of("sum", DataType.FP32, FOUR));
    }

    /** Loads a model beside another one, which serves before and after. */
    private void isRefused(Map<String, String> parameters, String... reason) {
        isRefused(settings(), parameters, reason);
    }

    private void isRefused(ModelSettingsBuilder settings, String... reason) {
        isRefused(settings, Map.of(), reason);
    }

    private void isRefused(ModelSettingsBuilder settings, Map<String, String> parameters, String... reason) {
        try (TestBackend test = new TestBackend(directory);
                Model other = test.backend.load(test.context(others, settings().build(), 1));
                ModelInstance instance = other.newInstance(new FakeInstanceContext("other_0_0"))) {
            serves(test, instance);
            parameters.forEach(test::with);
            assertThatThrownBy(() -> test.load(settings))
                    .isInstanceOf(BackendException.class)
                    .hasMessageStartingWith("unable to load model 'm', ")
                    .message()
                    .contains(reason)
                    .doesNotContain("\n")
                    .doesNotContain(directory.toString());
            serves(test, instance);
        }
    }

    private static void serves(TestBackend test, ModelInstance instance) {
        Map<String, Tensor> ones = Map.of("x", test.floats(Shape.of(1, 4), 1, 1, 1, 1));
        Tensor sum = test.run(instance, settings().build(), 1, ones).get("sum");
        assertThat(TestBackend.floats(sum)).containsExactly(2, 3, 4, 5);
    }

    @ParameterizedTest
    @CsvSource({"0.5", "0.98", "0.1"})
    void truncatedProtobuf(double part) throws IOException {
        byte[] whole = Files.readAllBytes(file);
        Files.write(file, Arrays.copyOf(whole, (int) (whole.length * part)));

        isRefused(settings(), "saved_model.pb: damaged or cut short (expected: a SavedModel)");
    }

    @Test
    void emptyProtobuf() throws IOException {
        Files.write(file, new byte[0]);

        isRefused(settings(), "saved_model.pb: without a graph (expected: a SavedModel)");
    }

    @Test
    void noProtobuf() throws IOException {
        Files.delete(file);

        isRefused(settings(), "saved_model.pb: missing (expected: saved_model.pb or saved_model.pbtxt)");
    }

    @Test
    void noVariables() throws IOException {
        deleteVariables("variables.index");

        isRefused(settings(), "variables/variables.index: missing (expected: the values of the model's variables)");
    }

    @Test
    void noValuesOfVariables() throws IOException {
        deleteVariables("variables.data-00000-of-00001");

        isRefused(settings(), "TensorFlow error ", "m/1/model.savedmodel/variables");
    }

    private void deleteVariables(String name) throws IOException {
        Files.delete(savedModel.resolve("variables").resolve(name));
    }

    @Test
    void shortValuesOfVariables() throws IOException {
        Path values = savedModel.resolve("variables/variables.data-00000-of-00001");
        Files.write(values, Arrays.copyOf(Files.readAllBytes(values), 7));

        isRefused(settings(), "TensorFlow error ");
    }

    @Test
    void unknownOperation() throws IOException {
        change(model -> model.getGraphDefBuilder()
                .addNode(NodeDef.newBuilder().setName("other").setOp("NoSuchOperation")));

        isRefused(settings(), "TensorFlow error NOT_FOUND: ", "Op type not registered 'NoSuchOperation'");
    }

    @Test
    void wrongTag() {
        isRefused(Map.of("TF_GRAPH_TAG", "gpu"), "TF_GRAPH_TAG: 'gpu' (expected: 'serve', the tags in");
    }

    @Test
    void wrongSignature() {
        isRefused(
                Map.of("TF_SIGNATURE_DEF", "none"), "TF_SIGNATURE_DEF: 'none' (expected: product or serving_default)");
    }

    @Test
    void noSignature() throws IOException {
        change(MetaGraphDef.Builder::clearSignatureDef);

        isRefused(settings(), "signature: none (expected: a SavedModel with a signature)");
    }

    @Test
    void typeThatTheProtocolsLack() throws IOException {
        SignatureDef.Builder signature = SignatureDef.newBuilder();
        change(model -> {
            SignatureDef old = model.getSignatureDefOrThrow("serving_default");
            TensorInfo input = old.getInputsOrThrow("x").toBuilder()
                    .setDtype(org.tensorflow.proto.DataType.DT_COMPLEX64)
                    .build();
            model.putSignatureDef(
                    "serving_default",
                    signature.mergeFrom(old).putInputs("x", input).build());
        });

        isRefused(settings(), "input 'x': data type DT_COMPLEX64 (expected: a type of the protocol)");
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.complete(ModelSettings.builder("m", 1)))
                    .hasMessage("unable to load model 'm', input 'x': data type DT_COMPLEX64 (expected: a type of the"
                            + " protocol)");
        }
    }

    @Test
    void sparseTensor() throws IOException {
        change(model -> {
            SignatureDef.Builder signature = model.getSignatureDefOrThrow("serving_default").toBuilder();
            TensorInfo.Builder sparse =
                    signature.getInputsOrThrow("x").toBuilder().clearName();
            sparse.getCooSparseBuilder().setValuesTensorName("x:0");
            model.putSignatureDef(
                    "serving_default", signature.putInputs("x", sparse.build()).build());
        });

        isRefused(settings(), "input 'x': a sparse or composite tensor (expected: a dense tensor)");
    }

    /** TensorFlow would end the process at the first request. */
    @Test
    void tensorOfTooManyDimensions() throws IOException {
        change(model -> {
            SignatureDef.Builder signature = model.getSignatureDefOrThrow("serving_default").toBuilder();
            TensorInfo.Builder input = signature.getInputsOrThrow("x").toBuilder();
            while (input.getTensorShape().getDimCount() < 255) {
                input.getTensorShapeBuilder().addDimBuilder().setSize(1);
            }
            model.putSignatureDef(
                    "serving_default", signature.putInputs("x", input.build()).build());
        });
        long[] dims = new long[254];
        Arrays.fill(dims, 1);
        dims[0] = 4;

        isRefused(
                ModelSettings.builder("m", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("x", DataType.FP32, Shape.of(dims)))
                        .output(TensorSpec.of("sum", DataType.FP32, FOUR)),
                "input 'x': 255 dimensions (expected: <= 254)");
    }

    @Test
    void tensorThatTheGraphLacks() throws IOException {
        change(model -> {
            SignatureDef.Builder signature = model.getSignatureDefOrThrow("serving_default").toBuilder();
            TensorInfo other = signature.getOutputsOrThrow("sum").toBuilder()
                    .setName("elsewhere:0")
                    .build();
            model.putSignatureDef(
                    "serving_default", signature.putOutputs("sum", other).build());
        });

        isRefused(settings(), "'elsewhere': missing (expected: an operation of the graph)");
    }

    @Test
    void emptyGraph() throws IOException {
        Files.write(directory.resolve("model.graphdef"), new byte[0]);

        isRefused(
                settings().modelFilename("model.graphdef"), "graph: without operations (expected: a frozen GraphDef)");
    }

    @Test
    void halfAGraph() throws IOException {
        GraphFiles graph = new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, 4)
                .operation("y", "Identity", org.tensorflow.proto.DataType.DT_FLOAT, "x");
        byte[] whole = graph.graph().toByteArray();
        Files.write(directory.resolve("model.graphdef"), Arrays.copyOf(whole, whole.length - 9));

        isRefused(
                settings().modelFilename("model.graphdef"),
                "graph: damaged or cut short (expected: a frozen GraphDef)");
    }

    @Test
    void graphWithAnUnknownOperation() {
        new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, -1, 4)
                .operation("sum", "NoSuchOperation", org.tensorflow.proto.DataType.DT_FLOAT, "x")
                .write(directory.resolve("model.graphdef"));

        isRefused(settings().modelFilename("model.graphdef"), "Op type not registered 'NoSuchOperation'");
    }

    @Test
    void fileInPlaceOfADirectory() throws IOException {
        Files.writeString(directory.resolve("file"), "text");

        isRefused(
                settings().modelFilename("file").json("{\"platform\":\"tensorflow_savedmodel\"}"),
                "'m/1/file': a file (expected: the directory of a SavedModel)");
        isRefused(settings().modelFilename("../other"), "default_model_filename: '../other' (expected: a path within");
    }

    /** By the name alone, with and without a configured file name. */
    @ParameterizedTest
    @CsvSource({"'', ''", "model.graphdef, model.savedmodel"})
    void kindsThatAreExchanged(String graph, String saved) throws IOException {
        Files.createDirectory(directory.resolve("model.graphdef"));
        isRefused(
                settings().modelFilename(graph),
                "'m/1/model.graphdef': a directory (expected: a file with a GraphDef)");

        Files.delete(directory.resolve("model.graphdef"));
        Files.move(savedModel, directory.resolve("elsewhere"));
        Files.writeString(savedModel, "a file");
        isRefused(
                settings().modelFilename(saved),
                "'m/1/model.savedmodel': a file (expected: the directory of a SavedModel)");
    }

    @Test
    void missingModel() {
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(settings().modelFilename("nothing")))
                    .hasMessage("unable to find 'm/1/nothing' for model instance 'm'");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "TF_NUM_INTER_THREADS | -2 | parameter 'TF_NUM_INTER_THREADS': -2 (expected: a number of threads, or 0)",
                "TF_NUM_INTER_THREADS | many | failed to convert 'many' to integral number; parameter 'TF_NUM_INTER_THREADS'",
                "TF_GRAPH_TAG | serve,other,serve | unable to load model 'm', TF_GRAPH_TAG: 'other,serve' (expected: 'serve', the tags in",
                "MAX_SESSION_SHARE_COUNT | 0 | parameter 'MAX_SESSION_SHARE_COUNT': 0 (expected: the number of instances",
                "TF_USE_PER_SESSION_THREADS | maybe | failed to convert 'maybe' to boolean; parameter 'TF_USE_PER_SESSION_THREADS'"
            })
    void wrongParameters(String name, String value, String reason) {
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.with(name, value).load(settings()))
                    .isInstanceOf(BackendException.class)
                    .hasMessageStartingWith(reason);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"none.json", "../x.json"})
    void filesOfOperationsThatAreNotThere(String file) {
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.with("TF_INIT_OPS_FILE", file).load(settings()))
                    .isInstanceOf(BackendException.class)
                    .hasMessage("parameter 'TF_INIT_OPS_FILE': " + file
                            + " (expected: a path of a file in the directory" + " of the version or of the model)");
        }
    }

    /** Each mismatch of the configuration is named with what was expected. */
    @Test
    void configurationsThatDoNotFit() {
        ModelSettingsBuilder empty = ModelSettings.builder("m", 1).maxBatchSize(8);
        TensorSpec sum = TensorSpec.of("sum", DataType.FP32, FOUR);
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(empty.output(sum)))
                    .hasMessage("unable to load model 'm', configuration expects 0 inputs, model provides 1 (not"
                            + " required by the configuration: x)");
            assertThatThrownBy(() -> test.load(ModelSettings.builder("m", 1)
                            .maxBatchSize(8)
                            .input(TensorSpec.of("x", DataType.INT32, FOUR))
                            .output(sum)))
                    .hasMessage("unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'x',"
                            + " model provides TYPE_FP32");
            assertThatThrownBy(() -> test.load(settings().input(TensorSpec.of("z", DataType.FP32, FOUR))))
                    .hasMessage("unexpected inference input 'z', allowed inputs are: x");
            assertThatThrownBy(() -> test.load(settings().output(TensorSpec.of("z", DataType.FP32, FOUR))))
                    .hasMessage("unexpected inference output 'z', allowed outputs are: sum, tenfold");
            assertThatThrownBy(() -> test.load(settings().output(TensorSpec.of("tenfold", DataType.INT32, FOUR))))
                    .hasMessage("unable to load model 'm', configuration expects datatype TYPE_INT32 for output"
                            + " 'tenfold', model provides TYPE_FP32");
            assertThatThrownBy(() -> test.load(settings().output(TensorSpec.of("tenfold", DataType.FP32, TWO))))
                    .hasMessage("model 'm', tensor 'tenfold': the model expects 2 dimensions (shape [-1,4]) but the"
                            + " model configuration specifies 2 dimensions (an initial batch dimension because"
                            + " max_batch_size > 0 followed by the explicit tensor shape, making complete shape"
                            + " [-1,2])");
            assertThatThrownBy(() -> test.load(ModelSettings.builder("m", 1)
                            .input(TensorSpec.of("x", DataType.FP32, FOUR))
                            .output(sum)))
                    .hasMessage("model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,4]) but the model"
                            + " configuration specifies 1 dimensions (shape [4])");
        }
    }

    @Test
    void batchesOfAModelWithoutABatchDimension() {
        TestModels.scalar(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(3)))
                .input(TensorSpec.of("scale", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("scaled", DataType.FP32, Shape.of(3)));
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(settings))
                    .hasMessageContaining("for the model to support batching the shape should have at least 1"
                            + " dimension and the first dimension must be -1; but shape expected by the model is ");
            assertThatThrownBy(() -> test.complete(ModelSettings.builder("m", 1).maxBatchSize(8)))
                    .hasMessage("autofill failed for model 'm': model does not support batching while non-zero"
                            + " max_batch_size is specified");
        }
    }

    private interface Change {
        void apply(MetaGraphDef.Builder model);
    }

    private void change(Change change) throws IOException {
        SavedModel.Builder model = SavedModel.parseFrom(Files.readAllBytes(file)).toBuilder();
        change.apply(model.getMetaGraphsBuilder(0));
        Files.write(file, model.build().toByteArray());
    }
}
