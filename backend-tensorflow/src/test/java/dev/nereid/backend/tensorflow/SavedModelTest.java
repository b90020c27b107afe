package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Signatures, variables and tables of SavedModels; completion of their configurations. */
class SavedModelTest {
    private static final Shape FOUR = Shape.of(4);

    @TempDir
    private Path directory;

    private static ModelSettingsBuilder sum() {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("x", DataType.FP32, FOUR))
                .output(TensorSpec.of("sum", DataType.FP32, FOUR));
    }

    @Test
    void completesInputsOutputsAndBatching() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            ModelCompletion completion = test.complete(ModelSettings.builder("m", 1));

            assertThat(completion.proposedMaxBatchSize()).hasValue(4);
            assertThat(completion.dynamicBatching()).isTrue();
            assertThat(completion.inputs()).containsExactly(TensorSpec.of("x", DataType.FP32, FOUR));
            assertThat(completion.outputs())
                    .containsExactly(
                            TensorSpec.of("sum", DataType.FP32, FOUR), TensorSpec.of("tenfold", DataType.FP32, FOUR));
        }
    }

    @Test
    void keepsWhatIsConfiguredAndCompletesTheRest() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory, Map.of("default-max-batch-size", "16"))) {
            ModelCompletion completion = test.complete(
                    ModelSettings.builder("m", 1).maxBatchSize(2).output(TensorSpec.of("sum", DataType.FP32, FOUR)));

            assertThat(completion.proposedMaxBatchSize()).hasValue(2);
            assertThat(completion.inputs()).containsExactly(TensorSpec.of("x", DataType.FP32, FOUR));
            assertThat(completion.outputs()).isEmpty();
            assertThat(test.complete(ModelSettings.builder("m", 1)).proposedMaxBatchSize())
                    .hasValue(16);
        }
    }

    @Test
    void completesNothingWhereAllIsConfigured() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            assertThat(test.backend.complete(test.context(sum().build(), 0))).isEmpty();
        }
    }

    @Test
    void completesScalarsAsOneElementWithoutBatching() {
        TestModels.scalar(directory);
        try (TestBackend test = new TestBackend(directory)) {
            ModelCompletion completion = test.complete(ModelSettings.builder("m", 1));

            assertThat(completion.proposedMaxBatchSize()).hasValue(0);
            assertThat(completion.dynamicBatching()).isFalse();
            assertThat(completion.inputs())
                    .containsExactly(
                            TensorSpec.of("scale", DataType.FP32, Shape.of(1)),
                            TensorSpec.of("x", DataType.FP32, Shape.of(3)));
            ModelSettingsBuilder settings = ModelSettings.builder("m", 1);
            completion.inputs().forEach(settings::input);
            completion.outputs().forEach(settings::output);
            Map<String, Tensor> outputs = test.run(
                    test.instance(settings),
                    settings.build(),
                    1,
                    Map.of("scale", test.floats(Shape.of(1), 3), "x", test.floats(Shape.of(3), 1, 2, 3)));
            assertThat(TestBackend.floats(outputs.get("scaled"))).containsExactly(3, 6, 9);
            assertThat(outputs.get("doubled").shape()).isEqualTo(Shape.of(1));
            assertThat(TestBackend.floats(outputs.get("doubled"))).containsExactly(6);
        }
    }

    @Test
    void restoresResourceVariablesAndServesBatches() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(sum());
            FakeRequest one = new FakeRequest(1, List.of("sum")).with("x", test.floats(Shape.of(1, 4), 1, 1, 1, 1));
            FakeRequest two = new FakeRequest(2, List.of("sum"))
                    .with("x", test.floats(Shape.of(2, 4), 10, 10, 10, 10, 20, 20, 20, 20));
            try (FakeBatch batch = new FakeBatch(sum().build(), test.memory, one, two)) {
                instance.execute(batch);

                Tensor sum = batch.outputs().get("sum");
                assertThat(sum.shape()).isEqualTo(Shape.of(3, 4));
                assertThat(TestBackend.floats(sum)).containsExactly(2, 3, 4, 5, 11, 12, 13, 14, 21, 22, 23, 24);
                assertThat(batch.marks()).containsExactly("inputsRead", "outputsComputed");
            }
        }
    }

    @Test
    void servesTheSignatureOfTheParameter() {
        TestModels.variable(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1).maxBatchSize(4);
        try (TestBackend test = new TestBackend(directory)) {
            ModelCompletion completion =
                    test.with("TF_SIGNATURE_DEF", "product").complete(settings);
            assertThat(completion.inputs())
                    .containsExactly(
                            TensorSpec.of("factor", DataType.FP32, Shape.of(1)),
                            TensorSpec.of("x", DataType.FP32, FOUR));
            completion.inputs().forEach(settings::input);
            completion.outputs().forEach(settings::output);

            Map<String, Tensor> outputs = test.run(
                    test.instance(settings),
                    settings.build(),
                    1,
                    Map.of("factor", test.floats(Shape.of(1, 1), 3), "x", test.floats(Shape.of(1, 4), 1, 2, 3, 4)));

            assertThat(TestBackend.floats(outputs.get("y"))).containsExactly(3, 6, 9, 12);
            assertThat(test.log()).anyMatch(line -> line.contains("signature 'product'"));
        }
    }

    @Test
    void fillsTables() {
        TestModels.table(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("words", DataType.BYTES, Shape.of(-1)))
                .output(TensorSpec.of("numbers", DataType.INT64, Shape.of(-1)));
        try (TestBackend test = new TestBackend(directory)) {
            Tensor numbers = test.run(
                            test.instance(settings),
                            settings.build(),
                            1,
                            Map.of("words", Tensor.ofStrings(Shape.of(3), List.of("drei", "vier", "ein"))))
                    .get("numbers");

            assertThat(numbers.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(3, -1, 1);
        }
    }

    @Test
    void computesWhatIsRequestedAndAllForVeryManySets() {
        TestModels.variable(directory);
        ModelSettingsBuilder settings = sum().output(TensorSpec.of("tenfold", DataType.FP32, FOUR));
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            for (List<String> requested : List.of(List.of("sum"), List.of("tenfold"), List.of("sum", "tenfold"))) {
                FakeRequest request = new FakeRequest(1, requested).with("x", test.floats(Shape.of(1, 4), 0, 0, 0, 0));
                try (FakeBatch batch = new FakeBatch(settings.build(), test.memory, request)) {
                    instance.execute(batch);
                    assertThat(batch.outputs()).containsOnlyKeys(requested);
                }
            }
        }
    }

    @Test
    void aModelOfLittleWorkMayRunOnTheSubmittingThread() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            assertThat(test.load(sum()).execution()).contains(BackendTraits.Execution.SHORT);
            assertThat(test.with("TF_NUM_INTER_THREADS", "2").load(sum()).execution())
                    .isEmpty();
        }
    }

    @Test
    void sharesASessionUnlessAParameterSeparatesThem() {
        TestModels.keeping(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("next", DataType.FP32, Shape.of(64)))
                .output(TensorSpec.of("before", DataType.FP32, Shape.of(64)));
        try (TestBackend test = new TestBackend(directory)) {
            Model shared = test.load(settings, 2);
            assertThat(before(test, settings, test.instance(shared), test.instance(shared)))
                    .isEqualTo(7);
            Model separate = test.with("MAX_SESSION_SHARE_COUNT", "1").load(settings, 2);
            assertThat(before(test, settings, test.instance(separate), test.instance(separate)))
                    .isZero();
            assertThat(shared.suits(Collections.nCopies(3, Device.CPU))).isTrue();
            assertThat(separate.suits(Collections.nCopies(2, Device.CPU))).isTrue();
            assertThat(separate.suits(Collections.nCopies(3, Device.CPU))).isFalse();
            assertThat(separate.suits(List.of(Device.CPU))).isFalse();
        }
    }

    /** Writes 7 by one instance, and returns what the other one reads. */
    private static float before(
            TestBackend test, ModelSettingsBuilder settings, ModelInstance writer, ModelInstance reader) {
        float[] sevens = new float[64];
        Arrays.fill(sevens, 7);
        test.run(writer, settings.build(), 1, Map.of("next", test.floats(Shape.of(64), sevens)));
        return TestBackend.floats(test.run(
                        reader, settings.build(), 1, Map.of("next", test.floats(Shape.of(64), new float[64])))
                .get("before"))[0];
    }

    @Test
    void keepsWhatTheGraphKeepsWhenTheRequestIsGone() {
        TestModels.keeping(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("next", DataType.FP32, Shape.of(64)))
                .output(TensorSpec.of("before", DataType.FP32, Shape.of(64)));
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            Tensor next = test.floats(Shape.of(64), new float[64]);
            next.data().setAtIndex(ValueLayout.JAVA_FLOAT, 0, 5);
            test.run(instance, settings.build(), 1, Map.of("next", next));
            next.data().fill((byte) 0x7f); // as the server does with memory that is used again

            Tensor before = test.run(instance, settings.build(), 1, Map.of("next", next))
                    .get("before");

            assertThat(TestBackend.floats(before)[0]).isEqualTo(5);
            assertThat(TestBackend.floats(before)[1]).isZero();
        }
    }

    /** A table has the strings themselves, not the array of them that its input is. */
    @Test
    void keepsStringsOfRequestsThatAreGone() {
        TestModels.learning(directory);
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("word", DataType.BYTES, Shape.of(-1)))
                .input(TensorSpec.of("number", DataType.INT64, Shape.of(-1)))
                .input(TensorSpec.of("asked", DataType.BYTES, Shape.of(-1)))
                .output(TensorSpec.of("known", DataType.INT64, Shape.of(-1)))
                .build();
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(test.backend.load(test.context(settings, 1)));
            for (int i = 0; i < 500; i++) {
                Map<String, Tensor> inputs = Map.of(
                        "word", Tensor.ofStrings(Shape.of(2), List.of("w" + i, word(i))),
                        "number", Tensor.ofLongs(Shape.of(2), -2, i),
                        "asked", Tensor.ofStrings(Shape.of(3), List.of(word(0), word(i / 2), "w" + i / 2)));

                long[] known = test.run(instance, settings, 1, inputs)
                        .get("known")
                        .data()
                        .toArray(ValueLayout.JAVA_LONG);

                assertThat(known).containsExactly(i == 0 ? -1 : 0, i == 0 ? -1 : i / 2, i == 0 ? -1 : -2);
            }
        }
    }

    private static String word(int number) {
        return ("a word of more than 22 bytes " + number + ' ').repeat(3);
    }

    @Test
    void warnsOfThreadsThatOnlyTheProcessHas() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            test.with("TF_NUM_INTRA_THREADS", "2").load(sum());
            assertThat(test.log()).noneMatch(line -> line.contains("TF_NUM_INTRA_THREADS"));
            FakeModelContext misspelt = test.context(sum().build(), 1).withParameter("TF_NUM_INTER_THREAD", "2");
            TensorFlowModelOptions.of(misspelt, new TensorFlowBackendOptions(2, 2, true, 4));
            assertThat(misspelt.unreadParameters()).containsExactly("TF_NUM_INTER_THREAD");

            test.with("TF_NUM_INTRA_THREADS", "7").load(sum());

            assertThat(test.log()).anyMatch(line -> line.contains("TF_NUM_INTRA_THREADS: 7 has no effect"));
        }
    }

    @Test
    void runsInAPoolOfItsOwnByParameter() {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            ModelSettingsBuilder settings = sum();
            ModelInstance instance = test.with("TF_NUM_INTER_THREADS", "2").instance(settings);

            assertThat(TestBackend.floats(test.run(
                                    instance, settings.build(), 1, Map.of("x", test.floats(Shape.of(1, 4), 0, 0, 0, 0)))
                            .get("sum")))
                    .containsExactly(1, 2, 3, 4);
            assertThat(test.log()).anyMatch(line -> line.contains("operations in a pool of threads"));
        }
    }

    @Test
    void aPoolOfItsOwnHasAThreadForEachProcessor() {
        TestModels.variable(directory);
        ModelSettingsBuilder settings = sum();
        try (TestBackend test = new TestBackend(directory)) {
            test.with("TF_USE_PER_SESSION_THREADS", "true").load(settings);
            assertThat(test.log()).anyMatch(line -> line.contains("operations in a pool of threads"));

            TensorFlowBackendOptions backend = new TensorFlowBackendOptions(3, 2, true, 4);
            assertThat(TensorFlowModelOptions.of(test.context(settings.build(), 1), backend)
                            .interOp())
                    .isEqualTo(3);
            assertThat(TensorFlowModelOptions.of(
                                    test.with("TF_NUM_INTER_THREADS", "5").context(settings.build(), 1), backend)
                            .interOp())
                    .isEqualTo(5);
        }
    }

    /** A table of TensorFlow 1 is passed on as a reference, which the simplest executor refuses during the load. */
    @Test
    void fallsBackWhereAnInitializerIsRefused() {
        TestModels.oldTable(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("words", DataType.BYTES, Shape.of(-1)))
                .output(TensorSpec.of("numbers", DataType.INT64, Shape.of(-1)));
        try (TestBackend test = new TestBackend(directory)) {
            Model model = test.load(settings);
            assertThat(model.execution()).isEmpty();
            Map<String, Tensor> words = Map.of("words", Tensor.ofStrings(Shape.of(2), List.of("zwei", "vier")));

            Tensor numbers =
                    test.run(test.instance(model), settings.build(), 1, words).get("numbers");

            assertThat(numbers.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(2, -1);
            assertThat(test.log()).anyMatch(line -> line.contains("operations on the calling thread"));
        }
    }

    @Test
    void fallsBackForReferencesToVariables() {
        TestModels.reference(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("sum", DataType.FP32, Shape.of(2)));
        try (TestBackend test = new TestBackend(directory)) {
            assertThat(TestBackend.floats(test.run(
                                    test.instance(settings),
                                    settings.build(),
                                    1,
                                    Map.of("x", test.floats(Shape.of(1, 2), 1, 1)))
                            .get("sum")))
                    .containsExactly(6, 7);
            assertThat(test.log()).anyMatch(line -> line.contains("operations on the calling thread"));
        }
    }

    @Test
    void doesNotBeginABatchWhoseRequestsAreCancelled() {
        TestModels.keeping(directory);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("next", DataType.FP32, Shape.of(64)))
                .output(TensorSpec.of("before", DataType.FP32, Shape.of(64)));
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            float[] sevens = new float[64];
            Arrays.fill(sevens, 7);
            FakeRequest cancelled =
                    new FakeRequest(1, List.of("before")).with("next", test.floats(Shape.of(64), sevens));
            cancelled.cancel();
            try (FakeBatch batch = new FakeBatch(settings.build(), test.memory, cancelled)) {
                instance.execute(batch);
            }

            assertThat(cancelled.failure())
                    .hasValueSatisfying(failure -> assertThat(failure).hasMessage("request was cancelled"));
            Tensor before = test.run(
                            instance, settings.build(), 1, Map.of("next", test.floats(Shape.of(64), new float[64])))
                    .get("before");
            assertThat(TestBackend.floats(before)).containsOnly(0); // the graph has not seen the sevens
        }
    }
}
