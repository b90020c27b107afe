package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeRequest;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory over many executions and loads; outputs that outlive all else; cancellation. */
@Tag("slow")
@Timeout(300)
@SuppressWarnings("restricted") // a function of the C library
class LifetimeTest {
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);
    private static final int EXECUTIONS = 20_000;
    private static final int FAILURES = 400;
    private static final int LARGE = 50;
    private static final int ROUNDS = 4;
    private static final int LOADS = 40;
    private static final long MAX_GROWTH_KIB = 512;

    /** Less than what {@link #EXECUTIONS} keep of which each keeps the least that the C library allocates, 32 bytes. */
    private static final long MAX_KEPT_KIB = 128;

    /** The places of hblkhd and uordblks among the ten sizes of {@code struct mallinfo2}. */
    private static final int MAPPED = 4;

    private static final int IN_USE = 7;
    private static final MethodHandle ALLOCATED = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("mallinfo2"),
                    FunctionDescriptor.of(MemoryLayout.structLayout(
                            Collections.nCopies(10, ValueLayout.JAVA_LONG).toArray(MemoryLayout[]::new))));

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

    /** Small tensors: what an execution keeps of its containers adds up. Large ones: a tensor that is kept shows at once. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "FP32; a + 1",
                "FP32; a",
                "FP32; (a, (a + 1, a))",
                "FP32; [a + 1, a]",
                "FP32; {'x': a + 1, 'y': a}",
                "FP32; {0: a + 1}",
                "FP32; (a, {'x': a + 1}, [{'y': a + 2}])",
                "FP32; a.expand([2, -1])",
                "BYTES; ['x', '', 'a longer text that lies outside of its string']",
                "INT64; [1, 2]",
                "BOOL; [True]",
                "FP64; 0.5",
                "BYTES; str(2)"
            })
    void memoryDoesNotGrowOverExecutions(DataType type, String expression) throws IOException {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return " + expression,
                ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("a", DataType.FP32, OPEN))
                        .output(TensorSpec.of(
                                expression.startsWith("{'") ? "x" : expression.startsWith("{") ? "0" : "OUT__0",
                                type,
                                OPEN)));
        Tensor small = test.floats(Shape.of(2), 1, 2);
        Tensor large = test.floats(Shape.of(1 << 18), new float[1 << 18]);

        assertThat(leastGrowthKib(LifetimeTest::allocatedKib, () -> repeat(served, small, EXECUTIONS)))
                .isLessThan(MAX_KEPT_KIB);
        assertThat(leastGrowthKib(() -> repeat(served, large, LARGE))).isLessThan(MAX_GROWTH_KIB);
    }

    /**
     * The memory that is kept of a changed input or buffer is small. Memory that earlier tests have freed has room for
     * it, so that the process does not grow.
     */
    @ParameterizedTest
    @ValueSource(strings = {"x.add_(1)", "self.b.add_(1)", "x = x + 1"})
    void memoryDoesNotGrowOverChangesInPlace(String change) throws IOException {
        TestBackend.Served served = test.serve(
                TestModels.script("def forward(self, x: Tensor):\n    " + change + "\n    return x + self.b")
                        .buffer("b", new long[] {1}, 0),
                ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("x", DataType.FP32, OPEN))
                        .output(TensorSpec.of("OUT__0", DataType.FP32, OPEN)));
        Tensor x = test.floats(Shape.of(1), 1);

        assertThat(leastGrowthKib(LifetimeTest::allocatedKib, () -> repeat(served, "x", x, EXECUTIONS)))
                .isLessThan(MAX_KEPT_KIB);
    }

    private static void repeat(TestBackend.Served served, Tensor a, int times) {
        repeat(served, "a", a, times);
    }

    private static void repeat(TestBackend.Served served, String input, Tensor a, int times) {
        for (int i = 0; i < times; i++) {
            try (FakeBatch batch =
                    served.batch(served.request(1).with(input, a)).withWrongOutputs()) {
                served.instance.execute(batch);
            }
        }
    }

    @Test
    void memoryDoesNotGrowOverInputsInContainers() throws IOException {
        TestBackend.Served dictionary =
                test.serve("def forward(self, x: Dict[str, Tensor]):\n    return x['a']", TestBackend.vector());
        TestBackend.Served list =
                test.serve("def forward(self, a: List[Tensor]):\n    return a[0]", TestBackend.vector());
        TestBackend.Served texts = test.serve(
                "def forward(self, a: List[str]):\n    return a", TestBackend.one(DataType.BYTES, OPEN, OPEN));
        Tensor a = test.floats(Shape.of(2), 1, 2);
        Tensor text = Tensor.ofStrings(Shape.of(3), List.of("", "short", "a longer text that lies outside"));

        assertThat(leastGrowthKib(LifetimeTest::allocatedKib, () -> repeat(dictionary, a, EXECUTIONS)))
                .isLessThan(MAX_KEPT_KIB);
        assertThat(leastGrowthKib(LifetimeTest::allocatedKib, () -> repeat(list, a, EXECUTIONS)))
                .isLessThan(MAX_KEPT_KIB);
        assertThat(leastGrowthKib(LifetimeTest::allocatedKib, () -> repeat(texts, text, EXECUTIONS)))
                .isLessThan(MAX_KEPT_KIB);
    }

    @Test
    void memoryDoesNotGrowOverFailures() throws IOException {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    b = a + 1\n    assert bool(b[0] < 0), 'no'\n    return b",
                TestBackend.vector());
        Tensor a = test.floats(Shape.of(1 << 16), new float[1 << 16]);
        assertThat(leastGrowthKib(() -> {
                    for (int i = 0; i < FAILURES; i++) {
                        assertThat(served.fails(java.util.Map.of("a", a))).hasMessageContaining("no");
                    }
                }))
                .isLessThan(MAX_GROWTH_KIB);
    }

    @Test
    void unloadsGiveMemoryBack() throws IOException {
        TestModels.Script script = TestModels.script(
                        "def forward(self, a: Tensor):\n    self.count += 1\n    return a + self.w[0]")
                .weight("w", 1 << 18)
                .buffer("count", new long[] {1}, 0);
        Path version = test.write(script);
        ModelSettings settings = TestBackend.vector().build();
        Tensor a = test.floats(Shape.of(2), 1, 2);
        assertThat(leastGrowthKib(LifetimeTest::allocatedKib, () -> {
                    for (int i = 0; i < LOADS; i++) {
                        Model model = test.backend.load(test.context(version, settings, 2));
                        ModelInstance one = model.newInstance(new FakeInstanceContext("m_0_0"));
                        ModelInstance two = model.newInstance(new FakeInstanceContext("m_0_1"));
                        test.new Served(settings, model, one).run(a);
                        test.new Served(settings, model, two).run(a);
                        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(2 * ((4 << 18) + 4));
                        two.close();
                        one.close();
                        model.close();
                    }
                }))
                .isLessThan(MAX_GROWTH_KIB);
    }

    /** An action that is repeated. */
    private interface Work {
        void run();
    }

    /** A size of the process. */
    private interface Size {
        long kib() throws IOException;
    }

    private static long leastGrowthKib(Work work) throws IOException {
        return leastGrowthKib(LifetimeTest::residentKib, work);
    }

    private static long leastGrowthKib(Size size, Work work) throws IOException {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = size.kib();
            work.run();
            least = Math.min(least, size.kib() - before);
        }
        return least;
    }

    /** Returns what the C library has allocated and not freed. */
    private static long allocatedKib() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment sizes = (MemorySegment) ALLOCATED.invokeExact((SegmentAllocator) arena);
            return (sizes.getAtIndex(ValueLayout.JAVA_LONG, MAPPED) + sizes.getAtIndex(ValueLayout.JAVA_LONG, IN_USE))
                    / 1024;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static long residentKib() throws IOException {
        Matcher rss = Pattern.compile("VmRSS:\\s+(\\d+) kB").matcher(Files.readString(Path.of("/proc/self/status")));
        assertThat(rss.find()).isTrue();
        return Long.parseLong(rss.group(1));
    }

    @Test
    void outputsOutliveInstanceModelAndBackend() {
        Path version = test.write(TestModels.script("def forward(self, a: Tensor):\n    return a + self.w, self.w, a")
                .parameter("w", new long[] {2}, 5, 6));
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("a", DataType.FP32, OPEN))
                .output(TensorSpec.of("O__0", DataType.FP32, OPEN))
                .output(TensorSpec.of("O__1", DataType.FP32, OPEN))
                .output(TensorSpec.of("O__2", DataType.FP32, OPEN))
                .build();
        Model model = test.backend.load(test.context(version, settings, 1));
        ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_0"));
        TestBackend.Served served = test.new Served(settings, model, instance);
        try (FakeBatch batch = served.batch(served.request(1).with("a", test.floats(Shape.of(2), 1, 2)))) {
            instance.execute(batch);
            instance.close();
            model.close();
            test.backend.close();
            assertThat(batch.outputs().get("O__0").floats()).containsExactly(6, 8);
            assertThat(batch.outputs().get("O__1").floats()).containsExactly(5, 6);
            assertThat(batch.outputs().get("O__2").floats()).containsExactly(1, 2);
        }
    }

    @Test
    void doesNotExecuteWhatIsCancelled() {
        TestModels.Script script = TestModels.script(
                        "def forward(self, a: Tensor):\n    self.b += 1\n    return a + self.b")
                .buffer("b", new long[] {1}, 0);
        TestBackend.Served served = test.serve(script, TestBackend.vector());
        FakeRequest request = served.request(1).with("a", test.floats(Shape.of(1), 0));
        request.cancel();
        try (FakeBatch batch = served.batch(request)) {
            served.instance.execute(batch);
            assertThat(request.failure().orElseThrow().code()).isEqualTo(ErrorCode.CANCELLED);
        }
        assertThat(served.run(test.floats(Shape.of(1), 0)).floats()).containsExactly(1);
    }

    @Test
    void sharesOneModuleWhereItIsNotChanged() {
        ModelSettings settings = TestBackend.vector().build();
        Path version = test.write(TestModels.script("def forward(self, a: Tensor):\n    return a + self.w")
                .parameter("w", new long[] {1}, 5));
        Model model = test.load(version, settings, 3);
        for (int i = 0; i < 3; i++) {
            test.instance(model, settings);
        }
        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(4);
    }
}
