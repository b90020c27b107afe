package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests numbers, byte strings, shapes and fences of tensors. */
final class TensorTest {
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 1);

    @Test
    void readsByteStringsAsTheyWereWritten() {
        byte[] binary = {0, -1, 10};
        byte[] empty = {};
        Tensor tensor = Tensor.ofByteStrings(Shape.of(2, 1), List.of(binary, empty));

        assertThat(tensor.type()).isEqualTo(DataType.BYTES);
        assertThat(tensor.shape()).isEqualTo(Shape.of(2, 1));
        assertThat(tensor.place()).isEqualTo(MemoryPlace.HOST);
        assertThat(tensor.data().toArray(ValueLayout.JAVA_BYTE)).containsExactly(3, 0, 0, 0, 0, -1, 10, 0, 0, 0, 0);
        assertThat(tensor.byteStrings()).containsExactly(binary, empty);
    }

    /** Four bytes of memory become fifty of the heap, so that a small request could exhaust it. */
    @Test
    void limitsTheHeapOfByteStrings() {
        Tensor tensor = Tensor.of(DataType.BYTES, Shape.of(100), Arena.ofAuto().allocate(100 * Integer.BYTES));

        assertThat(TensorElements.byteStrings(tensor, 32, 3200, bytes -> bytes)).hasSize(100);
        assertThatIllegalStateException()
                .isThrownBy(() -> TensorElements.byteStrings(tensor, 32, 3199, bytes -> bytes))
                .withMessage("tensor: BYTES [100]: elements after 99 would take more than 3199 bytes of the heap"
                        + " (expected: fewer or shorter elements, or a larger -Xmx)");
    }

    @Test
    void copiesTheElementsBothWays() {
        byte[] element = {1};
        Tensor tensor = Tensor.ofByteStrings(Shape.of(1), List.of(element));
        element[0] = 2;
        tensor.byteStrings().getFirst()[0] = 3;

        assertThat(tensor.byteStrings().getFirst()).containsExactly(1);
    }

    @Test
    void readsTextsAsUtf8() {
        Tensor tensor = Tensor.ofStrings(Shape.of(2), List.of("é", ""));

        assertThat(tensor.strings()).containsExactly("é", "");
        assertThat(tensor.byteStrings().getFirst()).isEqualTo("é".getBytes(StandardCharsets.UTF_8));
        assertThat(Tensor.ofStrings(Shape.of(0), List.of()).strings()).isEmpty();
        assertThat(Tensor.ofStrings(Shape.SCALAR, List.of("a")).strings()).containsExactly("a");
    }

    @Test
    void refusesAnotherNumberOfElementsAndVariableDimensions() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Tensor.ofByteStrings(Shape.of(2), List.of(new byte[1])))
                .withMessage("elements: 1 (expected: 2 for [2])");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Tensor.ofStrings(Shape.of(Shape.VARIABLE), List.of("a")))
                .withMessage("shape: [-1] (expected: no variable dimension)");
    }

    @Test
    void readsByteStringsOfTheHostAlone() {
        MemorySegment data = Arena.ofAuto().allocate(4);

        assertThatIllegalStateException()
                .isThrownBy(() -> Tensor.of(DataType.INT32, Shape.of(1), data).byteStrings())
                .withMessage("tensor: INT32 [1] (expected: BYTES in memory of the host)");
        assertThatIllegalStateException()
                .isThrownBy(
                        () -> Tensor.of(DataType.BYTES, Shape.of(1), data, GPU).byteStrings());
    }

    @Test
    void namesTheElementThatRunsBeyondTheMemory() {
        MemorySegment tooLong = Arena.ofAuto().allocate(8);
        tooLong.set(ValueLayout.JAVA_INT_UNALIGNED, 4, -1);
        MemorySegment tooShort = Arena.ofAuto().allocate(6);

        for (MemorySegment data : List.of(tooLong, tooShort)) {
            assertThatIllegalStateException()
                    .isThrownBy(
                            () -> Tensor.of(DataType.BYTES, Shape.of(2), data).byteStrings())
                    .withMessage("tensor: BYTES [2]: element 1 runs beyond the end of the memory");
        }
    }

    @Test
    void copiesNumbersToAndFromArrays() {
        float[] floats = {1, -2.5f, Float.NaN};
        Tensor tensor = Tensor.ofFloats(Shape.of(3, 1), floats);
        floats[0] = 9;

        assertThat(tensor.type()).isEqualTo(DataType.FP32);
        assertThat(tensor.shape()).isEqualTo(Shape.of(3, 1));
        assertThat(tensor.data().get(ValueLayout.JAVA_BYTE, 3)).isEqualTo((byte) 0x3f); // 1.0, little-endian
        assertThat(tensor.floats()).containsExactly(1, -2.5f, Float.NaN);
        assertThat(Tensor.ofDoubles(Shape.of(2), Math.PI, -0.0).doubles()).containsExactly(Math.PI, -0.0);
        assertThat(Tensor.ofInts(Shape.SCALAR, Integer.MIN_VALUE).ints()).containsExactly(Integer.MIN_VALUE);
        assertThat(Tensor.ofLongs(Shape.of(1, 2), Long.MIN_VALUE, 7).longs()).containsExactly(Long.MIN_VALUE, 7);
        assertThat(Tensor.ofFloats(Shape.of(0)).floats()).isEmpty();
    }

    @Test
    void readsNumbersAtAnyAddress() {
        MemorySegment odd = Arena.ofAuto().allocate(17, 16).asSlice(1);
        odd.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, 5);
        odd.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8, 0.5);

        assertThat(Tensor.of(DataType.INT64, Shape.of(1), odd.asSlice(0, 8)).longs())
                .containsExactly(5);
        assertThat(Tensor.of(DataType.FP64, Shape.of(1), odd.asSlice(8, 8)).doubles())
                .containsExactly(0.5);
    }

    @Test
    void widensNumbersOfFewerBits() {
        assertThat(bytes(DataType.UINT8, 2, 1, 255).ints()).containsExactly(1, 255);
        assertThat(bytes(DataType.INT8, 2, 1, 255).ints()).containsExactly(1, -1);
        assertThat(bytes(DataType.BOOL, 3, 0, 1, 7).ints()).containsExactly(0, 1, 1);
        assertThat(bytes(DataType.INT16, 2, 0xfe, 0xff, 2, 1).ints()).containsExactly(-2, 0x102);
        assertThat(bytes(DataType.UINT16, 2, 0xfe, 0xff, 2, 1).ints()).containsExactly(0xfffe, 0x102);
        assertThat(bytes(DataType.UINT32, 2, 1, 0, 0, 0, 255, 255, 255, 255).longs())
                .containsExactly(1, 0xffff_ffffL);
        assertThat(bytes(DataType.UINT64, 1, 255, 255, 255, 255, 255, 255, 255, 255)
                        .longs())
                .containsExactly(-1);
        assertThat(bytes(DataType.FP16, 2, 0x00, 0x3c, 0x00, 0xc1).floats()).containsExactly(1, -2.5f);
        assertThat(bytes(DataType.BF16, 2, 0x80, 0x3f, 0x20, 0xc0).floats()).containsExactly(1, -2.5f);
    }

    @Test
    void readsNoNumbersOfOtherTypesOrPlaces() {
        Tensor ints = Tensor.ofInts(Shape.of(1), 1);

        assertThatIllegalStateException()
                .isThrownBy(ints::floats)
                .withMessage("tensor: INT32 [1] (expected: FP32, FP16 or BF16 in memory of the host)");
        assertThatIllegalStateException()
                .isThrownBy(ints::longs)
                .withMessage("tensor: INT32 [1] (expected: INT64, UINT64 or UINT32 in memory of the host)");
        assertThatIllegalStateException()
                .isThrownBy(ints::doubles)
                .withMessage("tensor: INT32 [1] (expected: FP64 in memory of the host)");
        assertThatIllegalStateException()
                .isThrownBy(Tensor.ofLongs(Shape.of(1), 1)::ints)
                .withMessage("tensor: INT64 [1] (expected: INT32, or an integer or BOOL of fewer bits in memory of the"
                        + " host)");
        assertThatIllegalStateException()
                .isThrownBy(Tensor.of(DataType.FP32, Shape.of(1), ints.data(), GPU)::floats)
                .withMessage("tensor: FP32 [1] in " + GPU + " (expected: FP32, FP16 or BF16 in memory of the host)");
    }

    @Test
    void refusesAnotherNumberOfValues() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Tensor.ofFloats(Shape.of(2, 2), 1, 2, 3))
                .withMessage("values: 3 (expected: 4 for [2,2])");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Tensor.ofInts(Shape.of(Shape.VARIABLE), 1))
                .withMessage("shape: [-1] (expected: no variable dimension)");
    }

    private static Tensor bytes(DataType type, int elements, int... content) {
        MemorySegment data = Arena.ofAuto().allocate(content.length);
        for (int i = 0; i < content.length; i++) {
            data.set(ValueLayout.JAVA_BYTE, i, (byte) content[i]);
        }
        return Tensor.of(type, Shape.of(elements), data);
    }

    @Test
    void changesTheShapeAlone() {
        Fence fence = new Done();
        MemorySegment data = Arena.ofAuto().allocate(24);
        Tensor tensor = Tensor.of(DataType.FP32, Shape.of(2, 3), data, GPU)
                .withFence(fence)
                .withShape(Shape.of(6));

        assertThat(tensor.shape()).isEqualTo(Shape.of(6));
        assertThat(tensor.data()).isSameAs(data);
        assertThat(tensor.place()).isEqualTo(GPU);
        assertThat(tensor.fence()).containsSame(fence);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> tensor.withShape(Shape.of(5)))
                .withMessage("shape: [5] (expected: 6 elements, as [6] has)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> tensor.withShape(Shape.of(Shape.VARIABLE, 6)))
                .withMessage("shape: [-1,6] (expected: no variable dimension)");
    }

    @Test
    void hasAFenceIfItWasGivenOne() {
        Tensor tensor = Tensor.of(DataType.INT8, Shape.of(1), Arena.ofAuto().allocate(1));
        Fence first = new Done();
        Fence second = new Done();

        assertThat(tensor.fence()).isEmpty();
        assertThat(tensor.withFence(first).fence()).containsSame(first);
        assertThat(tensor.withFence(first).withFence(second).fence()).containsSame(second);
        assertThatNullPointerException().isThrownBy(() -> tensor.withFence(null));
    }

    private static final class Done implements Fence {
        @Override
        public boolean isDone() {
            return true;
        }

        @Override
        public boolean await(Duration timeout) {
            return true;
        }
    }
}
