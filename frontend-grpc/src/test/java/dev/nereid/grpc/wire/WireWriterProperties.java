package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.CodedOutputStream;
import dev.nereid.spi.Shape;
import inference.ModelInferResponse.InferOutputTensor;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.constraints.Size;

/** Tests the writer against the generated classes. */
final class WireWriterProperties {
    private static void assertWritten(List<String> texts, byte[] target) throws IOException {
        ByteArrayOutputStream expected = new ByteArrayOutputStream();
        CodedOutputStream output = CodedOutputStream.newInstance(expected);
        WireWriter writer = new WireWriter(target);
        for (int i = 0; i < texts.size(); i++) {
            output.writeByteArray(i + 1, texts.get(i).getBytes(StandardCharsets.UTF_8));
            writer.presentTextField(i + 1, texts.get(i));
        }
        output.flush();

        assertThat(Arrays.copyOf(writer.array(), writer.size())).isEqualTo(expected.toByteArray());
    }

    @Property(tries = 500)
    void writesAnyText(@ForAll List<String> texts, @ForAll @IntRange(max = 100) int capacity) throws IOException {
        assertWritten(texts, new byte[capacity]);
    }

    @Example
    void writesTextsAtTheBoundsOfTheirKinds() throws IOException {
        for (String end : List.of("", "a", "\0", "\u007f", "\u0080", "\u00ff", "\u0100", "\u0141", "\u20ac")) {
            for (int length : new int[] {0, 1, 2, 62, 63, 64, 65, 127, 128, 20_000}) {
                assertWritten(List.of("a".repeat(length) + end, end + "b".repeat(length)), new byte[3]);
            }
        }
    }

    @Example
    void writesCharactersOfTwoHalvesAndHalvesAlone() throws IOException {
        for (String text : List.of("\ud83d\ude00", "a\ud83d", "\ude00a", "\ud83d\ud83d\ude00", "\ude00\ud83d")) {
            assertWritten(List.of("before", text, "after"), new byte[0]);
        }
    }

    @Example
    void writesMessagesInMessagesOfAnyLength() throws IOException {
        for (int length : new int[] {0, 1, 100, 120, 121, 122, 123, 124, 125, 126, 127, 128, 16_370, 16_383, 20_000}) {
            for (int capacity : new int[] {0, length, length + 8}) {
                WireWriter writer = new WireWriter(new byte[capacity]);
                int outer = writer.begin(1);
                int inner = writer.begin(20);
                writer.textField(3, "a".repeat(length));
                writer.end(inner);
                int empty = writer.begin(2);
                writer.end(empty);
                writer.end(outer);
                writer.varintField(4, length);

                byte[] text = field(3, "a".repeat(length).getBytes(StandardCharsets.UTF_8));
                byte[] content = concat(field(20, length == 0 ? new byte[0] : text), field(2, new byte[0]));
                byte[] number = new byte[CodedOutputStream.computeInt64Size(4, length)];
                CodedOutputStream.newInstance(number).writeInt64(4, length);
                assertThat(Arrays.copyOf(writer.array(), writer.size())).isEqualTo(concat(field(1, content), number));
            }
        }
    }

    @Property(tries = 300)
    void writesDimsPackedAsTheGeneratedClassesDo(@ForAll @Size(max = 40) List<@LongRange(min = -1) Long> dims)
            throws IOException {
        WireWriter writer = new WireWriter(new byte[0]);
        writer.dimsField(3, Shape.of(dims.stream().mapToLong(Long::longValue).toArray()));

        assertThat(Arrays.copyOf(writer.array(), writer.size()))
                .isEqualTo(
                        InferOutputTensor.newBuilder().addAllShape(dims).build().toByteArray());
    }

    private static byte[] field(int number, byte[] content) throws IOException {
        byte[] field = new byte[CodedOutputStream.computeByteArraySize(number, content)];
        CodedOutputStream.newInstance(field).writeByteArray(number, content);
        return field;
    }

    private static byte[] concat(byte[] one, byte[] other) {
        byte[] both = Arrays.copyOf(one, one.length + other.length);
        System.arraycopy(other, 0, both, one.length, other.length);
        return both;
    }
}
