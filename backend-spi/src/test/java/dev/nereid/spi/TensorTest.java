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

/** Tests byte strings, shapes and fences of tensors. */
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

        @Override
        public long event() {
            return 0;
        }
    }
}
