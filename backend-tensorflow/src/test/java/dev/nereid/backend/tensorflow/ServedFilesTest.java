package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.tensorflow.Graph;
import org.tensorflow.Session;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.InitializeTableFromTextFile;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.proto.AttrValue;
import org.tensorflow.proto.FunctionDef;
import org.tensorflow.proto.NodeDef;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TString;

/** Files of models whose owner changes them while the models serve. A mistake here ends the process. */
class ServedFilesTest {
    private static final Path MAPPINGS = Path.of("/proc/self/maps");
    private static final Shape FOUR = Shape.of(4);

    @TempDir
    private Path directory;

    @Test
    void servesOnWhileVariablesAreOverwritten() throws Exception {
        TestModels.variable(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(TensorSpec.of("x", DataType.FP32, FOUR))
                .output(TensorSpec.of("sum", DataType.FP32, FOUR));
        servesOnWhileAllIsOverwritten(settings, "sum", test -> Map.of("x", test.floats(Shape.of(1, 4), 1, 1, 1, 1)));
    }

    @Test
    void servesOnWhileAVocabularyIsOverwritten() throws Exception {
        TensorFlowJava.ensureLoaded();
        Path assets = Files.createDirectories(directory.resolve("model.savedmodel/assets"));
        Path vocabulary = Files.writeString(assets.resolve("words.txt"), "ein\nzwei\ndrei\n");
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TString> words = tf.withName("words")
                    .placeholder(TString.class, Placeholder.shape(org.tensorflow.ndarray.Shape.of(-1)));
            var table = tf.hashTable(TString.class, TInt64.class);
            InitializeTableFromTextFile fill =
                    tf.initializeTableFromTextFile(table, tf.constant(vocabulary.toString()), -2L, -1L);
            new SavedModelFiles(graph)
                    .input("words", words)
                    .output("numbers", tf.lookupTableFind(table, words, tf.constant(-1L)))
                    .initializer(fill)
                    .write(session, directory.resolve("model.savedmodel"));
        }
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("words", DataType.BYTES, Shape.of(-1)))
                .output(TensorSpec.of("numbers", DataType.INT64, Shape.of(-1)));
        servesOnWhileAllIsOverwritten(
                settings,
                "numbers",
                _ -> Map.of("words", Tensor.ofStrings(Shape.of(3), List.of("drei", "vier", "ein"))));
    }

    @Test
    void servesOnWhileAGraphIsOverwritten() throws Exception {
        new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, 4)
                .operation("y", "Neg", org.tensorflow.proto.DataType.DT_FLOAT, "x")
                .write(directory.resolve("model.graphdef"));
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, FOUR))
                .output(TensorSpec.of("y", DataType.FP32, FOUR));
        servesOnWhileAllIsOverwritten(settings, "y", test -> Map.of("x", test.floats(FOUR, 1, 2, 3, 4)));
    }

    @Test
    void refusesOperationsThatMapFiles() {
        Path weights = directory.resolve("weights.bin");
        NodeDef.Builder mapping = NodeDef.newBuilder()
                .setName("mapped")
                .setOp("ImmutableConst")
                .putAttr("dtype", GraphFiles.type(org.tensorflow.proto.DataType.DT_FLOAT))
                .putAttr(
                        "memory_region_name",
                        AttrValue.newBuilder()
                                .setS(ByteString.copyFromUtf8(weights.toString()))
                                .build());
        GraphFiles plain = new GraphFiles().placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, 4);
        assertRefused(plain.operation("y", "Neg", org.tensorflow.proto.DataType.DT_FLOAT, "x")
                .add(mapping.clone()));
        assertRefused(new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, 4)
                .operation("y", "Neg", org.tensorflow.proto.DataType.DT_FLOAT, "x")
                .function(FunctionDef.newBuilder().addNodeDef(mapping)));
    }

    private void assertRefused(GraphFiles graph) {
        graph.write(directory.resolve("model.graphdef"));
        try (TestBackend test = new TestBackend(directory)) {
            assertThatThrownBy(() -> test.load(ModelSettings.builder("m", 1)
                            .input(TensorSpec.of("x", DataType.FP32, FOUR))
                            .output(TensorSpec.of("y", DataType.FP32, FOUR))))
                    .hasMessage(
                            "unable to load model 'm', operation 'mapped' of type ImmutableConst: maps a file, which"
                                    + " must not change while it is mapped (expected: constants or variables)");
        }
    }

    private interface Inputs {
        Map<String, Tensor> of(TestBackend test);
    }

    private void servesOnWhileAllIsOverwritten(ModelSettingsBuilder settings, String output, Inputs inputs)
            throws Exception {
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            byte[] before = run(test, instance, settings, output, inputs);
            assertNothingMapped(directory);
            for (Path file : files()) {
                overwrite(file, new byte[(int) Files.size(file)]);
                assertThat(run(test, instance, settings, output, inputs)).isEqualTo(before);
                overwrite(file, new byte[0]);
                assertThat(run(test, instance, settings, output, inputs)).isEqualTo(before);
                Files.delete(file);
                assertThat(run(test, instance, settings, output, inputs)).isEqualTo(before);
            }
        }
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            return all.filter(Files::isRegularFile).toList();
        }
    }

    private static byte[] run(
            TestBackend test, ModelInstance instance, ModelSettingsBuilder settings, String output, Inputs inputs) {
        return test.run(instance, settings.build(), 1, inputs.of(test))
                .get(output)
                .data()
                .toArray(ValueLayout.JAVA_BYTE);
    }

    static void assertNothingMapped(Path directory) throws IOException {
        if (Files.isReadable(MAPPINGS)) {
            assertThat(Files.readString(MAPPINGS))
                    .doesNotContain(directory.toRealPath().toString());
        }
    }

    /** Writes into a file that may be mapped, as {@code cp} does. */
    static void overwrite(Path file, byte[] content) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(content));
            channel.truncate(content.length);
        }
    }
}
