package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
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

        assertRefused(
                Tensor.of(DataType.INT32, Shape.of(1), data)::byteStrings,
                "tensor: INT32 [1] (expected: BYTES; INT32 is read by ints())");
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
    void readsIntegersOfEachTypeAsInts() {
        assertThat(bytes(DataType.INT8, 3, 1, 0x80, 0x7f).ints()).containsExactly(1, -128, 127);
        assertThat(bytes(DataType.UINT8, 3, 1, 0, 255).ints()).containsExactly(1, 0, 255);
        assertThat(bytes(DataType.INT16, 3, 0xfe, 0xff, 0x00, 0x80, 0xff, 0x7f).ints())
                .containsExactly(-2, Short.MIN_VALUE, Short.MAX_VALUE);
        assertThat(bytes(DataType.UINT16, 3, 0xfe, 0xff, 2, 1, 0xff, 0xff).ints())
                .containsExactly(0xfffe, 0x102, 0xffff);
        assertThat(Tensor.ofInts(Shape.of(2), Integer.MIN_VALUE, Integer.MAX_VALUE)
                        .ints())
                .containsExactly(Integer.MIN_VALUE, Integer.MAX_VALUE);
        assertThat(bytes(DataType.BOOL, 3, 0, 1, 7).ints()).containsExactly(0, 1, 1);
    }

    @Test
    void readsIntegersOfEachTypeAsLongs() {
        assertThat(bytes(DataType.INT8, 3, 1, 0x80, 0x7f).longs()).containsExactly(1, -128, 127);
        assertThat(bytes(DataType.UINT8, 2, 0, 255).longs()).containsExactly(0, 255);
        assertThat(bytes(DataType.INT16, 2, 0x00, 0x80, 0xff, 0x7f).longs())
                .containsExactly(Short.MIN_VALUE, Short.MAX_VALUE);
        assertThat(bytes(DataType.UINT16, 2, 0, 0, 0xff, 0xff).longs()).containsExactly(0, 0xffff);
        assertThat(Tensor.ofInts(Shape.of(2), Integer.MIN_VALUE, Integer.MAX_VALUE)
                        .longs())
                .containsExactly(Integer.MIN_VALUE, Integer.MAX_VALUE);
        assertThat(bytes(DataType.UINT32, 2, 1, 0, 0, 0, 255, 255, 255, 255).longs())
                .containsExactly(1, 0xffff_ffffL);
        assertThat(Tensor.ofLongs(Shape.of(2), Long.MIN_VALUE, Long.MAX_VALUE).longs())
                .containsExactly(Long.MIN_VALUE, Long.MAX_VALUE);
        assertThat(bytes(DataType.UINT64, 1, 255, 255, 255, 255, 255, 255, 255, 255)
                        .longs())
                .containsExactly(-1);
        assertThat(bytes(DataType.BOOL, 3, 0, 1, 7).longs()).containsExactly(0, 1, 1);
    }

    @Test
    void readsNumbersOfEachTypeAsFloats() {
        assertThat(bytes(DataType.FP16, 4, 0x00, 0x3c, 0x00, 0xc1, 0xff, 0x7b, 0x01, 0x00)
                        .floats())
                .containsExactly(1, -2.5f, 65504, 0x1p-24f);
        assertThat(bytes(DataType.BF16, 3, 0x80, 0x3f, 0x20, 0xc0, 0x80, 0xff).floats())
                .containsExactly(1, -2.5f, Float.NEGATIVE_INFINITY);
        assertThat(bytes(DataType.INT8, 2, 0x80, 0x7f).floats()).containsExactly(-128, 127);
        assertThat(bytes(DataType.UINT8, 2, 0, 255).floats()).containsExactly(0, 255);
        assertThat(bytes(DataType.INT16, 2, 0x00, 0x80, 0xff, 0x7f).floats())
                .containsExactly(Short.MIN_VALUE, Short.MAX_VALUE);
        assertThat(bytes(DataType.UINT16, 2, 0, 0, 0xff, 0xff).floats()).containsExactly(0, 65535);
        assertThat(bytes(DataType.BOOL, 3, 0, 1, 7).floats()).containsExactly(0, 1, 1);
    }

    @Test
    void readsNumbersOfEachTypeAsDoubles() {
        assertThat(Tensor.ofDoubles(Shape.of(2), Double.MIN_VALUE, Double.MAX_VALUE)
                        .doubles())
                .containsExactly(Double.MIN_VALUE, Double.MAX_VALUE);
        assertThat(Tensor.ofFloats(Shape.of(4), Float.MIN_VALUE, -Float.MAX_VALUE, -0f, Float.NaN)
                        .doubles())
                .containsExactly(Float.MIN_VALUE, -Float.MAX_VALUE, -0.0, Double.NaN);
        assertThat(bytes(DataType.FP16, 2, 0xff, 0x7b, 0x01, 0x00).doubles()).containsExactly(65504, 0x1p-24);
        assertThat(bytes(DataType.BF16, 2, 0x80, 0x7f, 0x20, 0xc0).doubles())
                .containsExactly(Double.POSITIVE_INFINITY, -2.5);
        assertThat(Tensor.ofInts(Shape.of(2), Integer.MIN_VALUE, Integer.MAX_VALUE)
                        .doubles())
                .containsExactly(Integer.MIN_VALUE, Integer.MAX_VALUE);
        assertThat(bytes(DataType.UINT32, 1, 255, 255, 255, 255).doubles()).containsExactly(0xffff_ffffL);
        assertThat(bytes(DataType.INT16, 1, 0x00, 0x80).doubles()).containsExactly(Short.MIN_VALUE);
        assertThat(bytes(DataType.UINT16, 1, 0xff, 0xff).doubles()).containsExactly(65535);
        assertThat(bytes(DataType.INT8, 1, 0x80).doubles()).containsExactly(-128);
        assertThat(bytes(DataType.UINT8, 1, 255).doubles()).containsExactly(255);
        assertThat(bytes(DataType.BOOL, 3, 0, 1, 7).doubles()).containsExactly(0, 1, 1);
    }

    /** A type is read as numbers that represent each of its values, and refused otherwise. */
    @Test
    void readsEachTypeByTheMethodsThatRepresentIt() {
        Set<DataType> small = EnumSet.of(DataType.BOOL, DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16);
        Set<DataType> ints = with(small, DataType.INT32);
        Set<DataType> longs = with(ints, DataType.UINT32, DataType.INT64, DataType.UINT64);
        Set<DataType> floats = with(small, DataType.FP16, DataType.BF16, DataType.FP32);
        Set<DataType> doubles = with(floats, DataType.FP64, DataType.INT32, DataType.UINT32);

        for (DataType type : DataType.values()) {
            int size = type.isFixedSize() ? type.byteSize() : Integer.BYTES;
            Tensor tensor = Tensor.of(type, Shape.of(1), Arena.ofAuto().allocate(size));
            assertReads(tensor, tensor::ints, ints);
            assertReads(tensor, tensor::longs, longs);
            assertReads(tensor, tensor::floats, floats);
            assertReads(tensor, tensor::doubles, doubles);
            assertReads(tensor, tensor::strings, EnumSet.of(DataType.BYTES));
            assertReads(tensor, tensor::byteStrings, EnumSet.of(DataType.BYTES));
        }
    }

    private static Set<DataType> with(Set<DataType> types, DataType... others) {
        Set<DataType> all = EnumSet.copyOf(types);
        Collections.addAll(all, others);
        return all;
    }

    private static void assertReads(Tensor tensor, ThrowingCallable read, Set<DataType> types) {
        if (types.contains(tensor.type())) {
            assertThatNoException().as(tensor.toString()).isThrownBy(read);
        } else {
            assertThatExceptionOfType(BackendException.class)
                    .as(tensor.toString())
                    .isThrownBy(read)
                    .matches(error -> error.code() == ErrorCode.INVALID_ARGUMENT)
                    .withMessageStartingWith("tensor: " + tensor + " (expected: ");
        }
    }

    @Test
    void namesTensorTypeAndMethodWhereATypeIsNotRead() {
        Tensor longs = Tensor.ofLongs(Shape.of(1), 1).withName("IN");

        assertRefused(
                longs::floats,
                "tensor 'IN': INT64 [1] (expected: FP32, FP16, BF16, BOOL, or an integer of 8 or 16 bits; INT64 is read by"
                        + " longs())");
        assertRefused(
                longs::doubles,
                "tensor 'IN': INT64 [1] (expected: FP64, FP32, FP16, BF16, BOOL, or an integer of up to 32 bits; INT64 is"
                        + " read by longs())");
        assertRefused(
                longs::ints,
                "tensor 'IN': INT64 [1] (expected: INT32, BOOL, or an integer of 8 or 16 bits; INT64 is read by longs())");
        assertRefused(
                Tensor.ofFloats(Shape.of(1), 1)::longs,
                "tensor: FP32 [1] (expected: an integer type or BOOL; FP32 is read by floats())");
        assertRefused(
                Tensor.ofDoubles(Shape.of(1), 1)::strings,
                "tensor: FP64 [1] (expected: BYTES; FP64 is read by doubles())");
        assertRefused(
                Tensor.ofStrings(Shape.of(1), List.of("1"))::longs,
                "tensor: BYTES [1] (expected: an integer type or BOOL; BYTES is read by strings())");
    }

    private static void assertRefused(ThrowingCallable read, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(read)
                .matches(error -> error.code() == ErrorCode.INVALID_ARGUMENT)
                .withMessage(message);
    }

    @Test
    void readsNoNumbersInOtherPlaces() {
        MemorySegment data = Arena.ofAuto().allocate(4);
        Tensor floats = Tensor.of("IN", DataType.FP32, Shape.of(1), data, GPU);

        for (ThrowingCallable read : List.<ThrowingCallable>of(floats::floats, floats::doubles)) {
            assertThatIllegalStateException()
                    .isThrownBy(read)
                    .withMessage("tensor 'IN': FP32 [1] in " + GPU + " (expected: in memory of the host)");
        }
        for (DataType type : List.of(DataType.INT32, DataType.UINT16, DataType.BOOL)) {
            MemorySegment part = data.asSlice(0, type.byteSize());
            Tensor integers = Tensor.of(type, Shape.of(1), part, GPU);
            assertThatIllegalStateException().isThrownBy(integers::ints);
            assertThatIllegalStateException().isThrownBy(integers::longs);
        }
    }

    @Test
    @SuppressWarnings("restricted") // Nothing reads this memory.
    void readsNoMoreElementsThanFitAnArray() {
        MemorySegment data = MemorySegment.ofAddress(1 << 20).reinterpret(1L << 31);
        Tensor tensor = Tensor.of(DataType.UINT8, Shape.of(1L << 31), data);

        for (ThrowingCallable read :
                List.<ThrowingCallable>of(tensor::ints, tensor::longs, tensor::floats, tensor::doubles)) {
            assertThatIllegalStateException()
                    .isThrownBy(read)
                    .withMessage("tensor: UINT8 [2147483648] (expected: as many elements as fit a Java array)");
        }
    }

    @Test
    void keepsItsNameInViews() {
        MemorySegment data = Arena.ofAuto().allocate(24);
        Tensor named = Tensor.of("IN", DataType.FP32, Shape.of(2, 3), data, GPU);

        assertThat(named.name()).contains("IN");
        assertThat(named.withShape(Shape.of(6)).name()).contains("IN");
        assertThat(named.withFence(new Done()).name()).contains("IN");
        assertThat(named.withName("IN")).isSameAs(named);
        assertThat(named.withFence(new Done()).withName("OUT"))
                .returns(Optional.of("OUT"), Tensor::name)
                .returns(DataType.FP32, Tensor::type)
                .returns(Shape.of(2, 3), Tensor::shape)
                .returns(data, Tensor::data)
                .returns(GPU, Tensor::place)
                .matches(tensor -> tensor.fence().isPresent());
        assertThat(named).hasToString("FP32 [2,3]");
        assertThat(Tensor.of(DataType.FP32, Shape.of(6), data).name()).isEmpty();
        assertThatNullPointerException().isThrownBy(() -> named.withName(null));
        assertThatNullPointerException()
                .isThrownBy(() -> Tensor.of(null, DataType.FP32, Shape.of(6), data, MemoryPlace.HOST));
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
