package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.tensorflow.Graph;
import org.tensorflow.Output;
import org.tensorflow.Session;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.StdArrays;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.proto.AttrValue;
import org.tensorflow.proto.FunctionDef;
import org.tensorflow.proto.GraphDef;
import org.tensorflow.proto.NameAttrList;
import org.tensorflow.proto.NodeDef;
import org.tensorflow.proto.OpDef;
import org.tensorflow.proto.TensorProto;
import org.tensorflow.proto.TensorShapeProto;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TString;

/** Frozen graphs, whose inputs and outputs the configuration names. */
class GraphDefTest {
    private static final Path LENET = Path.of("../../shared/models/lenet_frozen.pb");
    private static final org.tensorflow.proto.DataType FLOAT = org.tensorflow.proto.DataType.DT_FLOAT;
    private static final String SCORES = "Lenet/fc9_1/Relu";
    private static final String GRAPH = "model.graphdef";

    @TempDir
    private Path directory;

    private static ModelSettingsBuilder lenet() {
        return ModelSettings.builder("lenet", 1)
                .modelFilename(GRAPH)
                .maxBatchSize(8)
                .input(TensorSpec.of("input", DataType.FP32, Shape.of(784)))
                .output(TensorSpec.of(SCORES, DataType.FP32, Shape.of(10)))
                .output(TensorSpec.of("output", DataType.INT64, Shape.of(1)).withReshape(Shape.SCALAR));
    }

    @Test
    void lenetEqualsADirectRun() throws IOException {
        assumeTrue(Files.exists(LENET), () -> LENET + " is not there");
        Files.copy(LENET, directory.resolve(GRAPH));
        float[][] pixels = new float[3][784];
        Random random = new Random(3);
        for (float[] image : pixels) {
            for (int i = 0; i < image.length; i++) {
                image[i] = random.nextFloat();
            }
        }
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(lenet());
            float[] flat = new float[3 * 784];
            for (int i = 0; i < 3; i++) {
                System.arraycopy(pixels[i], 0, flat, i * 784, 784);
            }

            Map<String, Tensor> outputs =
                    test.run(instance, lenet().build(), 3, Map.of("input", test.floats(Shape.of(3, 784), flat)));

            float[] scores = TestBackend.floats(outputs.get(SCORES));
            long[] digits = outputs.get("output").data().toArray(ValueLayout.JAVA_LONG);
            assertThat(outputs.get("output").shape()).isEqualTo(Shape.of(3));
            try (Graph graph = new Graph()) {
                graph.importGraphDef(GraphDef.parseFrom(Files.readAllBytes(LENET)));
                try (Session session = new Session(graph);
                        TFloat32 input = TFloat32.tensorOf(StdArrays.ndCopyOf(pixels));
                        var expected = session.runner()
                                .feed("input", input)
                                .fetch(SCORES)
                                .fetch("output")
                                .run()) {
                    TFloat32 direct = (TFloat32) expected.get(0);
                    for (int row = 0; row < 3; row++) {
                        for (int i = 0; i < 10; i++) {
                            assertThat(scores[row * 10 + i]).isCloseTo(direct.getFloat(row, i), within(1e-6f));
                        }
                        assertThat(digits[row]).isEqualTo(((TInt64) expected.get(1)).getLong(row));
                    }
                    assertThat(scores).isNotEqualTo(new float[30]);
                }
            }
        }
    }

    @Test
    void asksForDimensionsThatTheGraphLacks() throws IOException {
        assumeTrue(Files.exists(LENET), () -> LENET + " is not there");
        Files.copy(LENET, directory.resolve(GRAPH));
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.complete(ModelSettings.builder("lenet", 1)))
                    .hasMessage("unable to load model 'lenet', input 'input': the model does not say how many"
                            + " dimensions it has (expected: its dims in the configuration)");
        }
    }

    @Test
    void completesFromPlaceholdersAndUnusedResults() {
        new GraphFiles()
                .placeholder("a", FLOAT, -1, 3)
                .placeholder("b", FLOAT, -1, 3)
                .placeholder("unused", org.tensorflow.proto.DataType.DT_INT32, 5)
                .operation("sum", "AddV2", FLOAT, "a", "b")
                .operation("negative", "Neg", FLOAT, "sum")
                .operation("square", "Square", FLOAT, "sum")
                .write(directory.resolve(GRAPH));
        try (TestBackend test = new TestBackend(directory)) {
            ModelCompletion completion = test.complete(ModelSettings.builder("m", 1));

            assertThat(completion.proposedMaxBatchSize()).hasValue(4);
            assertThat(completion.inputs())
                    .containsExactly(
                            TensorSpec.of("a", DataType.FP32, Shape.of(3)),
                            TensorSpec.of("b", DataType.FP32, Shape.of(3)));
            assertThat(completion.outputs())
                    .containsExactly(
                            TensorSpec.of("negative", DataType.FP32, Shape.of(3)),
                            TensorSpec.of("square", DataType.FP32, Shape.of(3)));
        }
    }

    @Test
    void feedsAndFetchesWhatTheConfigurationNames() {
        new GraphFiles()
                .placeholder("a", FLOAT, -1, 2)
                .operation("inner", "Neg", FLOAT, "a")
                .operation("result", "Square", FLOAT, "inner")
                .write(directory.resolve(GRAPH));
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(GRAPH)
                .input(TensorSpec.of("a", DataType.FP32, Shape.of(-1, 2)))
                .output(TensorSpec.of("result:0", DataType.FP32, Shape.of(-1, 2)));
        try (TestBackend test = new TestBackend(directory)) {
            Map<String, Tensor> outputs = test.run(
                    test.instance(settings), settings.build(), 1, Map.of("a", test.floats(Shape.of(1, 2), 3, 4)));

            assertThat(TestBackend.floats(outputs.get("result:0"))).containsExactly(9, 16);
            assertThatThrownBy(() -> test.load(settings.output(TensorSpec.of("nothing", DataType.FP32, Shape.of(2)))))
                    .hasMessage("unexpected inference output 'nothing': operation 'nothing': missing (expected: an"
                            + " operation of the graph)");
        }
    }

    /** The control flow of TensorFlow 1: the executor on one thread cannot run it. */
    @Test
    void runsOldControlFlow() {
        org.tensorflow.proto.DataType bool = org.tensorflow.proto.DataType.DT_BOOL;
        new GraphFiles()
                .placeholder("x", FLOAT, -1)
                .placeholder("negate", bool)
                .operation("switch", "Switch", FLOAT, "x", "negate")
                .operation("minus", "Neg", FLOAT, "switch:1")
                .operation("plus", "Identity", FLOAT, "switch")
                .add(NodeDef.newBuilder()
                        .setName("y")
                        .setOp("Merge")
                        .putAttr("T", GraphFiles.type(FLOAT))
                        .putAttr("N", AttrValue.newBuilder().setI(2).build())
                        .addInput("plus")
                        .addInput("minus"))
                .write(directory.resolve(GRAPH));
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(GRAPH)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(-1)))
                .input(TensorSpec.of("negate", DataType.BOOL, Shape.of(1)))
                .output(TensorSpec.of("y", DataType.FP32, Shape.of(-1)));
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            for (byte negate = 0; negate < 2; negate++) {
                Tensor y = test.run(
                                instance,
                                settings.build(),
                                1,
                                Map.of(
                                        "x",
                                        test.floats(Shape.of(2), 1, 2),
                                        "negate",
                                        test.tensor(DataType.BOOL, Shape.of(1), new byte[] {negate}, 0)))
                        .get("y");
                int sign = negate == 0 ? 1 : -1;
                assertThat(TestBackend.floats(y)).containsExactly(sign, 2 * sign);
            }
            assertThat(test.log()).anyMatch(line -> line.contains("operations on the calling thread"));
        }
    }

    /** Loops of TensorFlow 2 are functions: doubles until 100 is reached. */
    @ParameterizedTest
    @ValueSource(strings = {"StatelessWhile", "While"})
    void runsLoops(String operation) {
        AttrValue type = GraphFiles.type(FLOAT);
        FunctionDef.Builder condition = FunctionDef.newBuilder();
        condition
                .getSignatureBuilder()
                .setName("condition")
                .addInputArg(OpDef.ArgDef.newBuilder().setName("x").setType(FLOAT))
                .addOutputArg(OpDef.ArgDef.newBuilder().setName("go").setType(org.tensorflow.proto.DataType.DT_BOOL));
        condition
                .addNodeDef(NodeDef.newBuilder()
                        .setName("limit")
                        .setOp("Const")
                        .putAttr("dtype", type)
                        .putAttr(
                                "value",
                                AttrValue.newBuilder()
                                        .setTensor(TensorProto.newBuilder()
                                                .setDtype(FLOAT)
                                                .setTensorShape(TensorShapeProto.getDefaultInstance())
                                                .addFloatVal(100))
                                        .build()))
                .addNodeDef(NodeDef.newBuilder()
                        .setName("less")
                        .setOp("Less")
                        .putAttr("T", type)
                        .addInput("x")
                        .addInput("limit:output:0"))
                .putRet("go", "less:z:0");
        FunctionDef.Builder body = FunctionDef.newBuilder();
        body.getSignatureBuilder()
                .setName("body")
                .addInputArg(OpDef.ArgDef.newBuilder().setName("x").setType(FLOAT))
                .addOutputArg(OpDef.ArgDef.newBuilder().setName("y").setType(FLOAT));
        body.addNodeDef(NodeDef.newBuilder()
                        .setName("twice")
                        .setOp("AddV2")
                        .putAttr("T", type)
                        .addInput("x")
                        .addInput("x"))
                .putRet("y", "twice:z:0");
        new GraphFiles()
                .placeholder("x", FLOAT)
                .add(NodeDef.newBuilder()
                        .setName("loop")
                        .setOp(operation)
                        .addInput("x")
                        .putAttr(
                                "T",
                                AttrValue.newBuilder()
                                        .setList(
                                                AttrValue.ListValue.newBuilder().addType(FLOAT))
                                        .build())
                        .putAttr("cond", function("condition"))
                        .putAttr("body", function("body")))
                .operation("y", "Identity", FLOAT, "loop")
                .function(condition)
                .function(body)
                .write(directory.resolve(GRAPH));
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(GRAPH)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("y", DataType.FP32, Shape.of(1)));
        try (TestBackend test = new TestBackend(directory)) {
            Model model = test.load(settings);
            assertThat(model.execution()).isEmpty(); // how long a loop takes is not known
            ModelInstance instance = test.instance(model);
            for (float start : new float[] {3, 200}) {
                Tensor y = test.run(instance, settings.build(), 1, Map.of("x", test.floats(Shape.of(1), start)))
                        .get("y");
                assertThat(TestBackend.floats(y)).containsExactly(start == 3 ? 192 : 200);
            }
        }
    }

    /**
     * A table of TensorFlow 1 that nothing fills: the executor on one thread would refuse each run. References that the
     * outputs do not need change nothing.
     */
    @Test
    void fallsBackWhereRunsWouldBeRefused() throws IOException {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph()) {
            Ops tf = Ops.create(graph);
            Placeholder<TString> words = tf.withName("words")
                    .placeholder(TString.class, Placeholder.shape(org.tensorflow.ndarray.Shape.of(-1)));
            Output<?> table = graph.opBuilder("MutableHashTable", "table", tf.scope())
                    .setAttr("key_dtype", org.tensorflow.proto.DataType.DT_STRING)
                    .setAttr("value_dtype", org.tensorflow.proto.DataType.DT_INT64)
                    .build()
                    .output(0);
            graph.opBuilder("LookupTableFind", "numbers", tf.scope())
                    .addInput(table)
                    .addInput(words.asOutput())
                    .addInput(tf.constant(-1L).asOutput())
                    .build();
            tf.withName("same").identity(words);
            Files.write(directory.resolve(GRAPH), graph.toGraphDef().toByteArray());
        }
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(GRAPH)
                .input(TensorSpec.of("words", DataType.BYTES, Shape.of(-1)));
        try (TestBackend test = new TestBackend(directory)) {
            test.load(settings.output(TensorSpec.of("same", DataType.BYTES, Shape.of(-1))));
            assertThat(test.log()).hasSize(1).allMatch(line -> line.contains("one operation after another"));

            settings.output(TensorSpec.of("numbers", DataType.INT64, Shape.of(-1)));
            Tensor numbers = test.run(
                            test.instance(settings),
                            settings.build(),
                            1,
                            Map.of("words", Tensor.ofStrings(Shape.of(2), List.of("ein", "zwei"))))
                    .get("numbers");

            assertThat(numbers.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(-1, -1);
            assertThat(test.log()).anyMatch(line -> line.contains("operations on the calling thread"));
        }
    }

    private static AttrValue function(String name) {
        return AttrValue.newBuilder()
                .setFunc(NameAttrList.newBuilder().setName(name))
                .build();
    }

    @Test
    void runsInitializersFromAFile() throws IOException {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph()) {
            Ops tf = Ops.create(graph);
            Placeholder<TString> words = tf.withName("words")
                    .placeholder(TString.class, Placeholder.shape(org.tensorflow.ndarray.Shape.of(-1)));
            var table = tf.hashTable(TString.class, TInt64.class);
            String fill = tf.withName("fill")
                    .lookupTableImport(
                            table, tf.constant(NdArrays.vectorOfObjects("ein", "zwei")), tf.constant(new long[] {1, 2}))
                    .op()
                    .name();
            tf.withName("numbers").lookupTableFind(table, words, tf.constant(-1L));
            Files.write(directory.resolve(GRAPH), graph.toGraphDef().toByteArray());
            Files.writeString(directory.resolve("init_ops.json"), "{ \"init_ops\": [ \"" + fill + "\" ] }\n");
            Files.writeString(directory.resolve("wrong.json"), "{\"init_ops\": [\"nothing\"]}");
            Files.writeString(directory.resolve("other.json"), "[\"init\"]");
        }
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(GRAPH)
                .input(TensorSpec.of("words", DataType.BYTES, Shape.of(-1)))
                .output(TensorSpec.of("numbers", DataType.INT64, Shape.of(-1)));
        try (TestBackend test = new TestBackend(directory)) {
            test.with("TF_INIT_OPS_FILE", "init_ops.json");
            Tensor numbers = test.run(
                            test.instance(settings),
                            settings.build(),
                            1,
                            Map.of("words", Tensor.ofStrings(Shape.of(2), List.of("zwei", "ein"))))
                    .get("numbers");
            assertThat(numbers.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(2, 1);
            assertThatThrownBy(() -> test.with("TF_INIT_OPS_FILE", "wrong.json").load(settings))
                    .hasMessage("unable to load model 'm', operation 'nothing': missing (expected: an operation of"
                            + " the graph)");
            assertThatThrownBy(() -> test.with("TF_INIT_OPS_FILE", "other.json").load(settings))
                    .hasMessage("parameter 'TF_INIT_OPS_FILE': other.json (expected: a file with {\"init_ops\":"
                            + " [\"name\", …]} alone)");
        }
    }
}
