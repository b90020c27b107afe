package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Batches: rows of requests, ragged and derived inputs. */
class BatchingTest {
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);

    @TempDir
    private Path directory;

    private TestBackend test;

    @BeforeEach
    void open() {
        test = new TestBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
    }

    private FakeRequest request(TestBackend.Served served, int rows, float value) {
        float[] content = new float[rows * 2];
        java.util.Arrays.fill(content, value);
        return served.request(rows).with("a", test.floats(Shape.of(rows, 2), content));
    }

    private static ModelSettingsBuilder pairs() {
        return TestBackend.one(DataType.FP32, Shape.of(2), Shape.of(2)).maxBatchSize(8);
    }

    @Tag("slow")
    @Test
    void dropsRowsThatBelongToNoRequest() {
        TestBackend.Served served =
                test.serve("def forward(self, a: Tensor):\n    return torch.cat([a, a + 100])", pairs());
        try (FakeBatch batch = served.batch(request(served, 1, 1), request(served, 2, 2))) {
            served.instance.execute(batch);
            Tensor output = batch.outputs().get("OUT__0");
            assertThat(output.shape()).isEqualTo(Shape.of(3, 2));
            assertThat(output.floats()).containsExactly(1, 1, 2, 2, 2, 2);
        }
    }

    @Test
    void failsRequestsWithoutRowsAlone() {
        TestBackend.Served served = test.serve("def forward(self, a: Tensor):\n    return a[:3]", pairs());
        FakeRequest one = request(served, 1, 1).withResponse(test.memory);
        FakeRequest two = request(served, 2, 2).withResponse(test.memory);
        FakeRequest three = request(served, 2, 3).withResponse(test.memory).withId("r3");
        FakeRequest four = request(served, 1, 4).withResponse(test.memory);
        try (FakeBatch batch = served.batch(one, two, three, four)) {
            served.instance.execute(batch);
            assertThat(one.outputs().get("OUT__0").floats()).containsExactly(1, 1);
            assertThat(two.outputs().get("OUT__0").floats()).containsExactly(2, 2, 2, 2);
            assertThat(three.failure().orElseThrow())
                    .hasMessage("[request id: r3] failed to split the output tensor 'OUT__0' in responses: expected"
                            + " batch size of at least 5 in model output, got 3")
                    .extracting(e -> e.code())
                    .isEqualTo(ErrorCode.UNSUPPORTED);
            assertThat(four.failure().orElseThrow().getMessage())
                    .contains("<id_unknown>")
                    .contains("at least 6");
        }
    }

    @Test
    void failsRequestsOfBatchesWithoutRows() {
        TestBackend.Served served = test.serve("def forward(self, a: Tensor):\n    return a[:0]", pairs());
        FakeRequest one = request(served, 1, 1).withResponse(test.memory);
        try (FakeBatch batch = served.batch(one)) {
            served.instance.execute(batch);
            assertThat(one.failure().orElseThrow()).hasMessageContaining("at least 1 in model output, got 0");
        }
    }

    @Test
    void reshapesInputsAndOutputs() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    assert a.dim() == 1\n    return a * 2",
                ModelSettings.builder("m", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("a", DataType.FP32, Shape.of(1)).withReshape(Shape.SCALAR))
                        .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(1))
                                .withReshape(Shape.SCALAR)));
        FakeRequest one = served.request(1).with("a", test.floats(Shape.of(1), 1));
        FakeRequest two = served.request(2).with("a", test.floats(Shape.of(2), 2, 3));
        try (FakeBatch batch = served.batch(one, two)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").floats()).containsExactly(2, 4, 6);
        }
    }

    @ParameterizedTest
    @CsvSource({"a,n", "IN__0,N__1", "first,second"})
    void passesRaggedInputsByEachConvention(String input, String count) {
        for (BatchInput.Kind kind : BatchInput.Kind.values()) {
            TestBackend.Served served = test.serve(
                    "def forward(self, a: Tensor, n: Tensor):\n    return a.sum().expand([2, 1]), n.expand([2, -1]) if"
                            + " n.dim() == 1 else n",
                    ModelSettings.builder("m", 1)
                            .maxBatchSize(8)
                            .input(TensorSpec.of(input, DataType.FP32, OPEN).with(TensorSpec.Trait.RAGGED))
                            .batchInput(new BatchInput(kind, List.of(count), DataType.FP32, input))
                            .output(TensorSpec.of("SUM__0", DataType.FP32, Shape.of(1)))
                            .output(TensorSpec.of("N__1", DataType.FP32, OPEN)));
            FakeRequest one = served.request(1).with(input, test.floats(Shape.of(1, 2), 1, 2));
            FakeRequest two = served.request(1).with(input, test.floats(Shape.of(1, 3), 3, 4, 5));
            try (FakeBatch batch = served.batch(one, two)) {
                served.instance.execute(batch);
                assertThat(batch.outputs().get("SUM__0").floats()).containsExactly(15, 15);
                float[] numbers = batch.outputs().get("N__1").floats();
                switch (kind) {
                    case ELEMENT_COUNT -> assertThat(numbers).containsExactly(2, 3, 2, 3);
                    case ACCUMULATED_ELEMENT_COUNT -> assertThat(numbers).containsExactly(2, 5, 2, 5);
                    case ACCUMULATED_ELEMENT_COUNT_WITH_ZERO ->
                        assertThat(numbers).containsExactly(0, 2, 5, 0, 2, 5);
                    case MAX_ELEMENT_COUNT_AS_SHAPE -> assertThat(numbers).hasSize(6);
                    case ITEM_SHAPE -> assertThat(numbers).containsExactly(2, 3);
                    case ITEM_SHAPE_FLATTEN -> assertThat(numbers).containsExactly(2, 3, 2, 3);
                }
            }
        }
    }

    @Test
    void leavesTheSplitOfOutputsToTheServer() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return a + 1",
                ModelSettings.builder("m", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("a", DataType.FP32, OPEN).with(TensorSpec.Trait.RAGGED))
                        .output(TensorSpec.of("OUT__0", DataType.FP32, OPEN))
                        .batchOutput(
                                new BatchOutput(BatchOutput.Kind.SCATTER_WITH_INPUT_SHAPE, List.of("OUT__0"), "a")));
        FakeRequest one = served.request(1).with("a", test.floats(Shape.of(1, 2), 1, 2));
        FakeRequest two = served.request(1).with("a", test.floats(Shape.of(1, 3), 3, 4, 5));
        try (FakeBatch batch = served.batch(one, two)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").floats()).containsExactly(2, 3, 4, 5, 6);
        }
    }

    @Test
    void returnsRequestedOutputsAlone() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return a, a + 1",
                pairs().output(TensorSpec.of("MORE__1", DataType.FP32, Shape.of(2))));
        FakeRequest request = new FakeRequest(1, List.of("MORE__1")).with("a", test.floats(Shape.of(1, 2), 1, 2));
        try (FakeBatch batch = served.batch(request)) {
            served.instance.execute(batch);
            assertThat(batch.outputs()).containsOnlyKeys("MORE__1");
        }
    }

    @Test
    void failsAWholeBatchWhereTheScriptFails() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    assert bool(a.max() < 5), 'too large'\n    return a", pairs());
        assertThat(served.fails(Map.of("a", test.floats(Shape.of(1, 2), 9, 9)))).hasMessageContaining("too large");
        assertThat(served.run(test.floats(Shape.of(1, 2), 1, 2)).floats()).containsExactly(1, 2);
    }
}
