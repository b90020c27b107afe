package dev.nereid.scheduler.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/** Decoding returns the encoded outputs, and rejects any other content. */
final class CachedResponseProperties {
    @Property
    void readsWhatItWrote(@ForAll("responses") List<NamedTensor> outputs) {
        MemorySegment content = encode(outputs);

        List<NamedTensor> read = CachedResponse.decode(content).orElseThrow();

        assertThat(read).hasSameSizeAs(outputs);
        for (int i = 0; i < read.size(); i++) {
            Tensor tensor = read.get(i).tensor();
            Tensor expected = outputs.get(i).tensor();
            assertThat(read.get(i).name()).isEqualTo(outputs.get(i).name());
            assertThat(tensor.type()).isEqualTo(expected.type());
            assertThat(tensor.shape()).isEqualTo(expected.shape());
            assertThat(tensor.data().mismatch(expected.data())).isEqualTo(-1);
            assertThat(tensor.byteSize() == 0 || tensor.data().address() % 64 == 0)
                    .isTrue();
        }
    }

    /** Servers encode equal responses to equal bytes. */
    @Property(tries = 100)
    void writesEveryByte(@ForAll("responses") List<NamedTensor> outputs) {
        MemorySegment one = encode(outputs);
        MemorySegment other = Arena.ofAuto().allocate(one.byteSize(), 64).fill((byte) 0x5a);

        CachedResponse.encode(outputs, other);

        assertThat(one.mismatch(other)).isEqualTo(-1);
    }

    @Property
    void takesNothingThatWasCutOff(
            @ForAll("responses") List<NamedTensor> outputs, @ForAll @IntRange(max = 400) int less) {
        MemorySegment content = encode(outputs);
        long left = Math.max(0, content.byteSize() - 1 - less);

        Optional<List<NamedTensor>> read = CachedResponse.decode(content.asSlice(0, left));

        // An empty output at the end needs no bytes of its own.
        read.ifPresent(
                tensors -> assertThat(tensors.getLast().tensor().byteSize()).isZero());
    }

    @Property(tries = 5000)
    void whatWasChangedIsRefusedOrStaysWithinItsMemory(
            @ForAll("responses") List<NamedTensor> outputs,
            @ForAll @IntRange(max = 150) int place,
            @ForAll byte value) {
        MemorySegment content = encode(outputs);
        content.set(ValueLayout.JAVA_BYTE, Math.min(place, content.byteSize() - 1), value);

        CachedResponse.decode(content).ifPresent(read -> assertReadable(content, read));
    }

    @Property(tries = 2000)
    void anyBytesAreRefusedOrStayWithinTheirMemory(@ForAll byte[] bytes) {
        MemorySegment content =
                Arena.ofAuto().allocate(Math.max(1, bytes.length)).copyFrom(MemorySegment.ofArray(bytes));

        CachedResponse.decode(content).ifPresent(read -> assertReadable(content, read));
    }

    private static void assertReadable(MemorySegment content, List<NamedTensor> outputs) {
        for (NamedTensor output : outputs) {
            Tensor tensor = output.tensor();
            assertThat(tensor.data().address()).isBetween(content.address(), content.address() + content.byteSize());
            assertThat(tensor.data().address() + tensor.byteSize())
                    .isLessThanOrEqualTo(content.address() + content.byteSize());
            if (tensor.type() == DataType.BYTES) {
                assertThat(tensor.strings())
                        .hasSize(Math.toIntExact(tensor.shape().elementCount()));
            }
        }
    }

    private static MemorySegment encode(List<NamedTensor> outputs) {
        MemorySegment content = Arena.ofAuto().allocate(CachedResponse.size(outputs), 64);
        CachedResponse.encode(outputs, content);
        return content;
    }

    @Provide
    Arbitrary<List<NamedTensor>> responses() {
        Arbitrary<Shape> shapes = Arbitraries.longs()
                .between(0, 4)
                .array(long[].class)
                .ofMaxSize(3)
                .map(Shape::of);
        Arbitrary<Tensor> numbers = Combinators.combine(
                        Arbitraries.of(DataType.values()).filter(DataType::isFixedSize), shapes, Arbitraries.bytes())
                .as((type, shape, fill) -> Tensor.of(
                        type,
                        shape,
                        Arena.ofAuto().allocate(shape.byteSize(type)).fill(fill)));
        Arbitrary<Tensor> texts = Arbitraries.strings()
                .ofMaxLength(5)
                .list()
                .ofMaxSize(4)
                .map(each -> Tensor.ofStrings(Shape.of(each.size()), each));
        return Combinators.combine(Arbitraries.strings().ofMaxLength(8), Arbitraries.oneOf(numbers, texts))
                .as(NamedTensor::new)
                .list()
                .ofMaxSize(3);
    }
}
