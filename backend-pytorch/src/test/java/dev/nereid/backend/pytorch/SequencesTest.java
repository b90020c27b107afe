package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** States and control inputs. */
class SequencesTest {
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

    private static ModelSettingsBuilder settings(int maxBatchSize, SequenceBatching sequences, Shape dims) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(maxBatchSize)
                .sequenceBatching(sequences)
                .input(TensorSpec.of("IN__0", DataType.FP32, dims))
                .output(TensorSpec.of("OUT__0", DataType.FP32, dims));
    }

    private static SequenceBatching direct() {
        return SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5));
    }

    @Test
    void returnsAStateThatIsAnOutputToo() {
        TestBackend.Served served = test.serve(
                "def forward(self, x: Tensor, s: Tensor):\n    r = x + s\n    return r, r",
                settings(4, direct().with(StateSpec.of("S__1", "T__1", DataType.FP32, Shape.of(2))), Shape.of(2)));
        FakeRequest one = served.request(1)
                .with("IN__0", test.floats(Shape.of(1, 2), 1, 2))
                .with("S__1", test.floats(Shape.of(1, 2), 10, 20))
                .withState("T__1", test.memory);
        FakeRequest two = served.request(1)
                .with("IN__0", test.floats(Shape.of(1, 2), 3, 4))
                .with("S__1", test.floats(Shape.of(1, 2), 30, 40))
                .withState("T__1", test.memory);
        try (FakeBatch batch = served.batch(one, two)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").floats()).containsExactly(11, 22, 33, 44);
            assertThat(batch.writtenState("T__1").orElseThrow().floats()).containsExactly(11, 22, 33, 44);
            assertThat(batch.writtenState("T__1").orElseThrow().shape()).isEqualTo(Shape.of(2, 2));
        }
    }

    @Test
    void returnsOneValueAsStateAndOutput() {
        TestBackend.Served served = test.serve(
                "def forward(self, x: Tensor, s: Tensor):\n    return x + s",
                settings(0, direct().with(StateSpec.of("S__1", "T__0", DataType.FP32, OPEN)), OPEN));
        FakeRequest request = served.request(1)
                .with("IN__0", test.floats(Shape.of(2), 1, 2))
                .with("S__1", test.floats(Shape.of(2), 10, 20))
                .withState("T__0", test.memory);
        try (FakeBatch batch = served.batch(request)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").floats()).containsExactly(11, 22);
            assertThat(batch.writtenState("T__0").orElseThrow().floats()).containsExactly(11, 22);
        }
    }

    @Test
    void letsAStateGrow() {
        TestBackend.Served served = test.serve(
                "def forward(self, x: Tensor, s: Tensor):\n    return x, torch.cat([s, x])",
                settings(0, direct().with(StateSpec.of("S__1", "T__1", DataType.FP32, OPEN)), OPEN));
        FakeRequest request = served.request(1)
                .with("IN__0", test.floats(Shape.of(2), 1, 2))
                .with("S__1", test.floats(Shape.of(0)))
                .withState("T__1", test.memory);
        try (FakeBatch batch = served.batch(request)) {
            served.instance.execute(batch);
            assertThat(batch.writtenState("T__1").orElseThrow().floats()).containsExactly(1, 2);
        }
    }

    @Test
    void keepsTextsAsState() {
        TestBackend.Served served =
                test.serve("""
                def forward(self, x: Tensor, s: List[str]) -> Tuple[Tensor, List[str]]:
                    return x, s + [str(int(x[0].item()))]
                """, settings(0, direct().with(StateSpec.of("S__1", "T__1", DataType.BYTES, OPEN)), OPEN));
        FakeRequest request = served.request(1)
                .with("IN__0", test.floats(Shape.of(1), 7))
                .with("S__1", Tensor.ofStrings(Shape.of(2), List.of("a", "")))
                .withState("T__1", test.memory);
        try (FakeBatch batch = served.batch(request)) {
            served.instance.execute(batch);
            assertThat(batch.writtenState("T__1").orElseThrow().strings()).containsExactly("a", "", "7");
        }
    }

    /** The dimensions of the state are those of its configuration behind that of the batch, as the server expects them. */
    @Test
    void keepsATextForEachSequenceOfABatch() {
        TestBackend.Served served = test.serve(
                """
                def forward(self, x: Tensor, s: List[str]) -> Tuple[Tensor, List[str]]:
                    return x, [t + '!' for t in s]
                """,
                settings(4, direct().with(StateSpec.of("S__1", "T__1", DataType.BYTES, Shape.of(1))), Shape.of(1)));
        FakeRequest one = served.request(1)
                .with("IN__0", test.floats(Shape.of(1, 1), 7))
                .with("S__1", Tensor.ofStrings(Shape.of(1, 1), List.of("a")))
                .withState("T__1", test.memory);
        FakeRequest two = served.request(1)
                .with("IN__0", test.floats(Shape.of(1, 1), 8))
                .with("S__1", Tensor.ofStrings(Shape.of(1, 1), List.of("")))
                .withState("T__1", test.memory);
        try (FakeBatch batch = served.batch(one, two)) {
            served.instance.execute(batch);
            Tensor state = batch.writtenState("T__1").orElseThrow();
            assertThat(state.strings()).containsExactly("a!", "!");
            assertThat(state.shape()).isEqualTo(Shape.of(2, 1));
        }
    }

    @Test
    void failsSequencesWithoutAStateAlone() {
        TestBackend.Served served = test.serve(
                "def forward(self, x: Tensor, s: Tensor):\n    return x, s[:1]",
                settings(4, direct().with(StateSpec.of("S__1", "T__1", DataType.FP32, Shape.of(1))), Shape.of(1)));
        FakeRequest[] requests = new FakeRequest[2];
        for (int i = 0; i < 2; i++) {
            requests[i] = served.request(1)
                    .with("IN__0", test.floats(Shape.of(1, 1), i))
                    .with("S__1", test.floats(Shape.of(1, 1), i))
                    .withState("T__1", test.memory);
        }
        try (FakeBatch batch = served.batch(requests)) {
            served.instance.execute(batch);
            assertThat(requests[0].failure()).isEmpty();
            assertThat(requests[0].writtenState("T__1").orElseThrow().floats()).containsExactly(0);
            assertThat(requests[1].failure().orElseThrow())
                    .hasMessage(
                            "[request id: <id_unknown>] failed to split the output state tensor 'T__1' in responses:"
                                    + " expected batch size of at least 2 in model output, got 1");
        }
    }

    @Test
    void passesControlsAndNullRequests() {
        SequenceBatching sequences = direct().with(
                        new ControlInput(ControlInput.Kind.SEQUENCE_START, "START__1", DataType.FP32))
                .with(new ControlInput(ControlInput.Kind.SEQUENCE_READY, "READY__2", DataType.BOOL))
                .with(new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "ID__3", DataType.INT64));
        TestBackend.Served served = test.serve(
                "def forward(self, x: Tensor, start: Tensor, ready: Tensor, id: Tensor):\n"
                        + "    return (x + start) * ready + id",
                settings(4, sequences, Shape.of(1)));
        FakeRequest nothing = control(served, 0, 0, 0, 0).asNullRequest();
        FakeRequest second = control(served, 5, 1, 1, 100);
        try (FakeBatch batch = served.batch(nothing, second)) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").floats()).containsExactly(0, 106);
            assertThat(nothing.failure()).isEmpty();
        }
    }

    private FakeRequest control(TestBackend.Served served, float x, float start, int ready, int id) {
        Shape one = Shape.of(1, 1);
        return served.request(1)
                .with("IN__0", test.floats(one, x))
                .with("START__1", test.floats(one, start))
                .with("READY__2", test.tensor(DataType.BOOL, one, new byte[] {(byte) ready}, 0))
                .with("ID__3", test.tensor(DataType.INT64, one, new byte[] {(byte) id, 0, 0, 0, 0, 0, 0, 0}, 0));
    }
}
