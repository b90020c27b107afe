package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Texts of any bytes, alone and in batches. */
class StringsTest {
    private static final String SAME = "def forward(self, a: List[str]) -> List[str]:\n    return a";
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

    private static ModelSettingsBuilder alone() {
        return TestBackend.one(DataType.BYTES, OPEN, OPEN);
    }

    private static ModelSettingsBuilder batched() {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("a", DataType.BYTES, Shape.of(1)).withReshape(Shape.SCALAR))
                .output(TensorSpec.of("OUT__0", DataType.BYTES, Shape.of(1)).withReshape(Shape.SCALAR));
    }

    @Test
    void passesAnyBytes() {
        TestBackend.Served served = test.serve(SAME, alone());
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }
        byte[] long1 = new byte[1 << 20];
        new Random(1).nextBytes(long1);
        List<byte[]> texts = List.of(
                new byte[0],
                all,
                new byte[] {0},
                new byte[] {0, 0, 65, 0},
                long1,
                "дüß✓".getBytes(StandardCharsets.UTF_8));

        List<byte[]> output = served.run(Map.of("a", Tensor.ofByteStrings(Shape.of(texts.size()), texts)))
                .get("OUT__0")
                .byteStrings();

        assertThat(output).hasSameSizeAs(texts);
        for (int i = 0; i < texts.size(); i++) {
            assertThat(output.get(i)).isEqualTo(texts.get(i));
        }
    }

    @Test
    void passesManyTextsAndNone() {
        TestBackend.Served served = test.serve(SAME, alone());
        List<String> many = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            many.add("t" + i);
        }

        assertThat(served.run(Map.of("a", Tensor.ofStrings(Shape.of(many.size()), many)))
                        .get("OUT__0")
                        .strings())
                .isEqualTo(many);
        Tensor none = served.run(Map.of("a", Tensor.ofStrings(Shape.of(0), List.of())))
                .get("OUT__0");
        assertThat(none.shape()).isEqualTo(Shape.of(0));
        assertThat(none.byteSize()).isZero();
    }

    @Test
    void passesEmptyTexts() {
        TestBackend.Served served = test.serve(SAME, alone());
        List<String> empty = Collections.nCopies(1000, "");
        assertThat(served.run(Map.of("a", Tensor.ofStrings(Shape.of(1000), empty)))
                        .get("OUT__0")
                        .strings())
                .isEqualTo(empty);
    }

    @Test
    void computesWithTexts() {
        TestBackend.Served served = test.serve("""
                def forward(self, a: List[str]) -> List[str]:
                    result: List[str] = []
                    for text in a:
                        result.append(text.upper() + str(len(text)))
                    return result
                """, alone());
        assertThat(served.run(Map.of("a", Tensor.ofStrings(Shape.of(2), List.of("ab", ""))))
                        .get("OUT__0")
                        .strings())
                .containsExactly("AB2", "0");
    }

    @Test
    void returnsOneTextAsListOfOne() {
        TestBackend.Served served =
                test.serve("def forward(self, a: List[str]) -> str:\n    return ''.join(a)", alone());
        Tensor output = served.run(Map.of("a", Tensor.ofStrings(Shape.of(3), List.of("a", "b", "c"))))
                .get("OUT__0");
        assertThat(output.shape()).isEqualTo(Shape.of(1));
        assertThat(output.strings()).containsExactly("abc");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 5, 7, 8})
    void refusesTextsThatAreCutShort(int size) {
        TestBackend.Served served = test.serve(SAME, alone());
        byte[] whole = {9, 0, 0, 0, 1, 2, 3, 4, 5};
        byte[] cut = java.util.Arrays.copyOf(whole, size);

        assertThat(served.fails(Map.of("a", test.tensor(DataType.BYTES, Shape.of(1), cut, 0))))
                .hasMessageContaining("incomplete string data")
                .extracting(e -> e.code())
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(served.fails(
                        Map.of("a", test.tensor(DataType.BYTES, Shape.of(1), new byte[] {-1, -1, -1, -1, 0}, 0))))
                .hasMessageContaining("4294967295");
    }

    @Test
    void refusesOtherNumbersOfTexts() {
        TestBackend.Served served = test.serve(SAME, alone());
        byte[] two = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int count : new int[] {0, 1, 3}) {
            assertThat(served.fails(Map.of("a", test.tensor(DataType.BYTES, Shape.of(count), two, 0))))
                    .hasMessageContaining("unexpected number of string elements 2, expecting " + count);
        }
        assertThat(served.run(Map.of("a", test.tensor(DataType.BYTES, Shape.of(2), two, 0)))
                        .get("OUT__0")
                        .strings())
                .containsExactly("", "");
    }

    @Test
    void givesEachRequestItsTexts() {
        TestBackend.Served served = test.serve(SAME, batched());
        FakeRequest one = served.request(1).with("a", Tensor.ofStrings(Shape.of(1), List.of("one")));
        FakeRequest two = served.request(2).with("a", Tensor.ofStrings(Shape.of(2), List.of("", "three")));
        try (FakeBatch batch = served.batch(one, two)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").strings()).containsExactly("one", "", "three");
        }
    }

    @Test
    void dropsTextsThatBelongToNoRequest() {
        TestBackend.Served served =
                test.serve("def forward(self, a: List[str]) -> List[str]:\n    return a + ['x', 'y']", batched());
        FakeRequest request = served.request(2).with("a", Tensor.ofStrings(Shape.of(2), List.of("1", "2")));
        try (FakeBatch batch = served.batch(request)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").strings()).containsExactly("1", "2");
        }
    }

    @Test
    void failsRequestsWithoutTextsAlone() {
        TestBackend.Served served =
                test.serve("def forward(self, a: List[str]) -> List[str]:\n    return a[:3]", batched());
        FakeRequest one = served.request(1)
                .with("a", Tensor.ofStrings(Shape.of(1), List.of("one")))
                .withResponse(test.memory);
        FakeRequest two = served.request(2)
                .with("a", Tensor.ofStrings(Shape.of(2), List.of("two", "three")))
                .withResponse(test.memory);
        FakeRequest three = served.request(1)
                .with("a", Tensor.ofStrings(Shape.of(1), List.of("four")))
                .withResponse(test.memory)
                .withId("r3");
        try (FakeBatch batch = served.batch(one, two, three)) {
            served.instance.execute(batch);
            assertThat(one.outputs().get("OUT__0").strings()).containsExactly("one");
            assertThat(two.outputs().get("OUT__0").strings()).containsExactly("two", "three");
            assertThat(three.failure().orElseThrow())
                    .hasMessage("[request id: r3] failed to split the output tensor 'OUT__0' in responses: expected"
                            + " batch size of at least 4 in model output, got 3");
            assertThat(one.failure()).isEmpty();
            assertThat(two.failure()).isEmpty();
        }
    }

    @Test
    void mixesTextsAndTensors() {
        TestBackend.Served served = test.serve(
                """
                def forward(self, names: List[str], x: Tensor) -> Tuple[List[str], Tensor]:
                    return [n + '!' for n in names], x + len(names)
                """,
                ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("x", DataType.FP32, OPEN))
                        .input(TensorSpec.of("names", DataType.BYTES, OPEN))
                        .output(TensorSpec.of("Y__1", DataType.FP32, OPEN))
                        .output(TensorSpec.of("N__0", DataType.BYTES, OPEN)));

        Map<String, Tensor> outputs = served.run(
                Map.of("x", test.floats(Shape.of(1), 5), "names", Tensor.ofStrings(Shape.of(2), List.of("a", "b"))));

        assertThat(outputs.get("N__0").strings()).containsExactly("a!", "b!");
        assertThat(outputs.get("Y__1").floats()).containsExactly(7);
    }

    @Test
    void refusesATensorWhereTextsAreConfigured() {
        assertThatThrownBy(() -> test.serve("def forward(self, a: Tensor):\n    return a", alone()))
                .hasMessageContaining("TYPE_STRING for the argument Tensor a");
        assertThatThrownBy(() -> test.serve(SAME, TestBackend.vector()))
                .hasMessageContaining("a tensor for the argument");
    }
}
