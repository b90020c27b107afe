package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeBatch;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Inputs in front of a page that must not be read; the whole is unmapped when the server has read the outputs. */
@SuppressWarnings("restricted") // memory of the system
class PoisonedMemoryTest {
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
            try {
                long size = content.length * 4L;
                long pages = (size + PAGE - 1) / PAGE * PAGE;
                long base = (long) MAP.invokeExact(0L, pages + PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0L);
                assertThat(base).isPositive();
                int done = (int) PROTECT.invokeExact(base + pages, PAGE, 0);
                assertThat(done).isZero();
                MemorySegment data =
                        MemorySegment.ofAddress(base + pages - size).reinterpret(size);
                MemorySegment.copy(content, 0, data, ValueLayout.JAVA_FLOAT_UNALIGNED, 0, content.length);
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
                        assertThat(output[i]).isCloseTo(expected[i], org.assertj.core.data.Offset.offset(1e-3f));
                    }
                }
            }
        }
    }

    private static float[] run(TestBackend test, TestBackend.Served served, Tensor a) {
        try (FakeBatch batch = served.batch(served.request(1).with("a", a)).withWrongOutputs()) {
            served.instance.execute(batch);
            return test.copy(batch.outputs().get("OUT__0")).floats();
        }
    }
}
