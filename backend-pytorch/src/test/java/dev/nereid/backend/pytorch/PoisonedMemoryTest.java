package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Inputs in front of a page that must not be read; the whole is unmapped when the server has read the outputs. */
@SuppressWarnings("restricted") // memory of the system
class PoisonedMemoryTest {
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);
    private static final long PAGE = 4096;
    private static final int READ_WRITE = 3;
    private static final int PRIVATE_ANONYMOUS = 0x22;
    private static final MethodHandle MAP = function(
            "mmap",
            FunctionDescriptor.of(
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_LONG));
    private static final MethodHandle PROTECT = function(
            "mprotect",
            FunctionDescriptor.of(
                    ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));
    private static final MethodHandle UNMAP = function(
            "munmap", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));

    @TempDir
    private Path directory;

    private static MethodHandle function(String name, FunctionDescriptor type) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), type);
    }

    /** Memory that ends where the process may not read. */
    private record Guarded(long base, long bytes, MemorySegment data) implements AutoCloseable {
        static Guarded of(float[] content) {
            MemorySegment floats = MemorySegment.ofArray(content);
            return of(floats.toArray(ValueLayout.JAVA_BYTE));
        }

        static Guarded of(byte[] content) {
            try {
                long size = content.length;
                long pages = (size + PAGE - 1) / PAGE * PAGE;
                long base = (long) MAP.invokeExact(0L, pages + PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0L);
                assertThat(base).isPositive();
                int done = (int) PROTECT.invokeExact(base + pages, PAGE, 0);
                assertThat(done).isZero();
                MemorySegment data =
                        MemorySegment.ofAddress(base + pages - size).reinterpret(size);
                MemorySegment.copy(content, 0, data, ValueLayout.JAVA_BYTE, 0, content.length);
                return new Guarded(base, pages + PAGE, data);
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }

        @Override
        public void close() {
            try {
                int done = (int) UNMAP.invokeExact(base, bytes);
                assertThat(done).isZero();
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a",
                "a[:, 1:]",
                "a.t()",
                "a.t() @ a",
                "a @ self.w",
                "torch.linear(a, self.w.t())",
                "torch.relu(a) * 2 + torch.exp(a)",
                "torch.softmax(a, 1)",
                "torch.layer_norm(a, [a.size(1)])",
                "torch.sum(a, 1)",
                "torch.cumsum(a, 0)",
                "torch.sort(a, 1)[0]",
                "torch.conv1d(a.unsqueeze(0).unsqueeze(0).flatten(2), self.k)",
                "torch.conv2d(a.unsqueeze(0).unsqueeze(0), self.k2, padding=1)",
                "torch.max_pool2d(a.unsqueeze(0).unsqueeze(0), [2, 2], [1, 1], [1, 1])",
                "a.to(5).to(6)",
                "a.to(15).to(6)",
                "a.to(1).to(6)",
                "(a > 0).to(6)",
                "torch.cat([a, a], 1)",
                "torch.index_select(a, 0, torch.arange(a.size(0)))",
                "torch.einsum('ij,kj->ik', [a, a])",
                "torch.gelu(a)",
                "torch.upsample_nearest2d(a.unsqueeze(0).unsqueeze(0), [20, 20])",
                "torch.batch_norm(a, None, None, None, None, True, 0.1, 1e-5, True)"
            })
    void neitherReadsBehindAnInputNorAfterItsRelease(String expression) {
        try (TestBackend test = new TestBackend(directory)) {
            TestBackend.Served served = test.serve(
                    TestModels.script("def forward(self, a: Tensor):\n    return " + expression)
                            .weight("w", 13, 7)
                            .weight("k", 1, 1, 3)
                            .weight("k2", 1, 1, 3, 3),
                    TestBackend.one(DataType.FP32, Shape.of(-1, 13), Shape.of(Shape.VARIABLE)));
            for (int rows : new int[] {2, 1, 3, 7, 17, 64, 315, 999}) {
                float[] content = TestModels.numbers(rows * 13, rows);
                float[] expected = run(test, served, test.floats(Shape.of(rows, 13), content));
                try (Guarded guarded = Guarded.of(content)) {
                    float[] output = run(test, served, Tensor.of(DataType.FP32, Shape.of(rows, 13), guarded.data()));
                    assertThat(output).hasSameSizeAs(expected);
                    for (int i = 0; i < output.length; i++) {
                        assertThat(output[i]).isCloseTo(expected[i], within(1e-3f));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "UINT8; a",
                "UINT8; a + a",
                "UINT8; a.to(6).relu().to(0)",
                "UINT8; torch.cat([a, a], 1)",
                "INT16; a[:, 1:]",
                "INT16; a + a",
                "INT16; a.t().contiguous()",
                "INT16; torch.sort(a, 1)[0]",
                "FP16; a.to(6).to(5)",
                "FP16; a + a",
                "FP16; a @ a.t()",
                "FP16; torch.relu(a)",
                "BF16; a.to(6).to(15)",
                "BF16; a + a",
                "BF16; a @ a.t()",
                "BF16; torch.relu(a)"
            })
    void readsNothingBehindSmallNumbers(DataType type, String expression) {
        try (TestBackend test = new TestBackend(directory)) {
            TestBackend.Served served = test.serve(
                    "def forward(self, a: Tensor):\n    return " + expression,
                    TestBackend.one(type, Shape.of(-1, 13), Shape.of(Shape.VARIABLE)));
            for (int rows : new int[] {2, 1, 3, 7, 17, 64, 315}) {
                Shape shape = Shape.of(rows, 13);
                byte[] content = new byte[rows * 13 * type.byteSize()];
                for (int i = 0; i < content.length; i++) { // numbers of FP16 and BF16 that are no NaN
                    content[i] = (byte) (i * 7 % 0x3c);
                }
                byte[] expected = bytes(served, test.tensor(type, shape, content, 0));
                assertThat(expected).isNotEmpty();
                try (Guarded guarded = Guarded.of(content)) {
                    byte[] output = bytes(served, Tensor.of(type, shape, guarded.data()));
                    assertThat(output).isEqualTo(expected);
                }
            }
        }
    }

    private static byte[] bytes(TestBackend.Served served, Tensor a) {
        try (FakeBatch batch = served.batch(served.request(1).with("a", a)).withWrongOutputs()) {
            served.instance.execute(batch);
            return TestBackend.bytes(batch.outputs().get("OUT__0"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "[t + '!' for t in a]", "[t.upper() for t in a]", "a[1:]"})
    void readsNothingBehindTexts(String expression) {
        try (TestBackend test = new TestBackend(directory)) {
            TestBackend.Served served = test.serve(
                    "def forward(self, a: List[str]) -> List[str]:\n    return " + expression,
                    TestBackend.one(DataType.BYTES, OPEN, OPEN));
            for (List<String> texts : List.of(
                    List.of("", ""),
                    List.of("a", ""),
                    List.of("", "a"),
                    List.of("short", "a text that lies outside of its string"),
                    List.of("x".repeat(4096), "y".repeat(5000)))) {
                Shape shape = Shape.of(texts.size());
                Tensor plain = Tensor.ofStrings(shape, texts);
                List<String> expected = strings(served, plain);
                try (Guarded guarded = Guarded.of(TestBackend.bytes(plain))) {
                    assertThat(strings(served, Tensor.of(DataType.BYTES, shape, guarded.data())))
                            .isEqualTo(expected);
                }
            }
        }
    }

    private static List<String> strings(TestBackend.Served served, Tensor a) {
        try (FakeBatch batch = served.batch(served.request(1).with("a", a)).withWrongOutputs()) {
            served.instance.execute(batch);
            return batch.outputs().get("OUT__0").strings();
        }
    }

    /** Lengths that say more than there is, and lengths that are cut themselves. */
    @Test
    void readsNothingBehindTextsThatAreCutShort() {
        byte[][] contents = {
            {1, 0, 0, 0},
            {5, 0, 0, 0, 'a', 'b'},
            {-1, -1, -1, -1, 'a'},
            {-1, -1, -1, 127},
            {1, 0, 0},
            {1},
            {0, 0, 0, 0, 9}
        };
        try (TestBackend test = new TestBackend(directory)) {
            TestBackend.Served served = test.serve(
                    "def forward(self, a: List[str]) -> List[str]:\n    return a",
                    TestBackend.one(DataType.BYTES, OPEN, OPEN));
            for (byte[] content : contents) {
                try (Guarded guarded = Guarded.of(content)) {
                    Tensor cut = Tensor.of(DataType.BYTES, Shape.of(2), guarded.data());
                    assertThat(served.fails(Map.of("a", cut))).hasMessageContaining("incomplete string data");
                }
            }
            assertThat(strings(served, Tensor.ofStrings(Shape.of(1), List.of("a"))))
                    .containsExactly("a");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "a + 1", "a[:, 1:]", "a.relu_()", "torch.softmax(a, 1)", "a @ self.w"})
    void readsNothingBehindABatchOfTwoRequests(String expression) {
        try (TestBackend test = new TestBackend(directory)) {
            TestBackend.Served served = test.serve(
                    TestModels.script("def forward(self, a: Tensor):\n    return " + expression)
                            .weight("w", 13, 13),
                    TestBackend.one(DataType.FP32, Shape.of(13), OPEN).maxBatchSize(1024));
            for (int rows : new int[] {1, 2, 7, 315}) {
                float[] first = TestModels.numbers(rows * 13, 1);
                float[] second = TestModels.numbers(13, 2);
                float[] expected =
                        run(served, test.floats(Shape.of(rows, 13), first), test.floats(Shape.of(1, 13), second));
                try (Guarded one = Guarded.of(first);
                        Guarded two = Guarded.of(second)) {
                    assertThat(run(
                                    served,
                                    Tensor.of(DataType.FP32, Shape.of(rows, 13), one.data()),
                                    Tensor.of(DataType.FP32, Shape.of(1, 13), two.data())))
                            .containsExactly(expected, within(1e-3f));
                }
            }
        }
    }

    private static float[] run(TestBackend.Served served, Tensor first, Tensor second) {
        try (FakeBatch batch = served.batch(
                        served.request((int) first.shape().dim(0)).with("a", first),
                        served.request(1).with("a", second))
                .withWrongOutputs()) {
            served.instance.execute(batch);
            return batch.outputs().get("OUT__0").floats();
        }
    }

    /** The memory of a state is unmapped before the next step, for which it was copied. */
    @ParameterizedTest
    @ValueSource(strings = {"x + s", "s + 0 * x", "s.add_(x)", "torch.maximum(s, x)"})
    void readsNothingBehindAStateNorAfterItsRelease(String expression) {
        try (TestBackend test = new TestBackend(directory)) {
            TestBackend.Served served = test.serve(
                    "def forward(self, x: Tensor, s: Tensor):\n    n = " + expression + "\n    return x, n",
                    ModelSettings.builder("m", 1)
                            .input(TensorSpec.of("x__0", DataType.FP32, Shape.of(13)))
                            .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(13)))
                            .sequenceBatching(
                                    SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                                            .with(StateSpec.of("S__1", "T__1", DataType.FP32, Shape.of(13)))));
            float[] expected = TestModels.numbers(13, 1);
            float[] actual = expected;
            for (int step = 0; step < 20; step++) {
                float[] x = TestModels.numbers(13, step);
                try (Guarded input = Guarded.of(x);
                        Guarded state = Guarded.of(actual)) {
                    actual = step(
                            test,
                            served,
                            Tensor.of(DataType.FP32, Shape.of(13), input.data()),
                            Tensor.of(DataType.FP32, Shape.of(13), state.data()));
                }
                expected = step(test, served, test.floats(Shape.of(13), x), test.floats(Shape.of(13), expected));
                assertThat(actual).isEqualTo(expected);
            }
        }
    }

    private static float[] step(TestBackend test, TestBackend.Served served, Tensor x, Tensor state) {
        try (FakeBatch batch = served.batch(
                served.request(1).with("x__0", x).with("S__1", state).withState("T__1", test.memory))) {
            served.instance.execute(batch);
            assertThat(batch.outputs().get("OUT__0").floats()).isEqualTo(x.floats());
            return batch.writtenState("T__1").orElseThrow().floats();
        }
    }

    private static float[] run(TestBackend test, TestBackend.Served served, Tensor a) {
        try (FakeBatch batch = served.batch(served.request(1).with("a", a)).withWrongOutputs()) {
            served.instance.execute(batch);
            return test.copy(batch.outputs().get("OUT__0")).floats();
        }
    }
}
