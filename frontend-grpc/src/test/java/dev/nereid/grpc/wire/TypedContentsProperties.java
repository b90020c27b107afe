package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import dev.nereid.api.InferenceException;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.spi.DataType;
import inference.InferTensorContents;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Assume;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

/** Tests that typed contents become the bytes of a raw tensor. */
final class TypedContentsProperties {
    private static final int MODEL_FIELD = 15;

    @Provide
    Arbitrary<List<ByteString>> strings() {
        return TestMessages.bytes().list().ofMaxSize(5);
    }

    @Provide
    Arbitrary<Integer> cut() {
        return Arbitraries.integers().greaterOrEqual(0);
    }

    @Property(tries = 200)
    void writesWholeNumbers(@ForAll List<Long> values, @ForAll("cut") int cut) {
        assertWritten(DataType.INT64, cut, values, (c, v) -> c.addInt64Contents(v), ByteBuffer::putLong, 3);
        assertWritten(DataType.UINT64, cut, values, (c, v) -> c.addUint64Contents(v), ByteBuffer::putLong, 5);
        assertWritten(
                DataType.BOOL,
                cut,
                values,
                (c, v) -> c.addBoolContents(v != 0),
                (b, v) -> b.put((byte) (v == 0 ? 0 : 1)),
                1);
        List<Integer> narrow = values.stream().map(Long::intValue).toList();
        assertWritten(DataType.INT32, cut, narrow, (c, v) -> c.addIntContents(v), ByteBuffer::putInt, 2);
        assertWritten(
                DataType.INT16, cut, narrow, (c, v) -> c.addIntContents(v), (b, v) -> b.putShort(v.shortValue()), 2);
        assertWritten(DataType.INT8, cut, narrow, (c, v) -> c.addIntContents(v), (b, v) -> b.put(v.byteValue()), 2);
        assertWritten(DataType.UINT32, cut, narrow, (c, v) -> c.addUintContents(v), ByteBuffer::putInt, 4);
        assertWritten(
                DataType.UINT16, cut, narrow, (c, v) -> c.addUintContents(v), (b, v) -> b.putShort(v.shortValue()), 4);
        assertWritten(DataType.UINT8, cut, narrow, (c, v) -> c.addUintContents(v), (b, v) -> b.put(v.byteValue()), 4);
    }

    @Property(tries = 200)
    void writesRealNumbers(@ForAll List<Float> floats, @ForAll List<Double> doubles, @ForAll("cut") int cut) {
        assertWritten(DataType.FP32, cut, floats, (c, v) -> c.addFp32Contents(v), ByteBuffer::putFloat, 6);
        assertWritten(DataType.FP64, cut, doubles, (c, v) -> c.addFp64Contents(v), ByteBuffer::putDouble, 7);
    }

    @Property(tries = 200)
    void writesStringsWithTheirLengths(@ForAll("strings") List<ByteString> strings, @ForAll("cut") int cut) {
        assertWritten(
                DataType.BYTES,
                cut,
                strings,
                (c, v) -> c.addBytesContents(v),
                (b, v) -> b.putInt(v.size()).put(v.toByteArray()),
                8);
    }

    private static <T> void assertWritten(
            DataType type,
            int cut,
            List<T> values,
            BiConsumer<InferTensorContents.Builder, T> add,
            BiConsumer<ByteBuffer, T> put,
            int field) {
        InferTensorContents.Builder contents = InferTensorContents.newBuilder();
        ByteBuffer expected = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
        for (T value : values) {
            add.accept(contents, value);
            put.accept(expected, value);
        }
        byte[] packed = contents.build().toByteArray();
        byte[] bytes = Arrays.copyOf(expected.array(), expected.position());
        assertThat(written(type, packed, cut)).isEqualTo(bytes);
        assertThat(written(type, unpacked(contents.build(), field), cut)).isEqualTo(bytes);
    }

    /** Writes elements as fields of their own, between unknown fields. */
    private static byte[] unpacked(InferTensorContents contents, int field) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream output = CodedOutputStream.newInstance(bytes);
        try {
            for (Object value : (List<?>)
                    contents.getField(InferTensorContents.getDescriptor().findFieldByNumber(field))) {
                output.writeString(MODEL_FIELD, "unknown");
                switch (value) {
                    case Boolean flag -> output.writeBool(field, flag);
                    case Integer number when field == 4 -> output.writeUInt32(field, number);
                    case Integer number -> output.writeInt32(field, number);
                    case Long number -> output.writeInt64(field, number);
                    case Float number -> output.writeFloat(field, number);
                    case Double number -> output.writeDouble(field, number);
                    case ByteString string -> output.writeBytes(field, string);
                    default -> throw new AssertionError(value);
                }
            }
            output.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private static byte[] written(DataType type, byte[] message, int cut) {
        TypedContents contents = read(type.name(), message, cut);
        byte[] target = new byte[(int) contents.byteSize()];
        contents.writeTo(MemorySegment.ofArray(target));
        return target;
    }

    private static TypedContents read(String datatype, byte[] message, int cut) {
        MessageBytes bytes = TestMessages.cut(message, List.of(cut, cut / 2));
        int middle = 0; // in two parts, the first of them empty, as a client may send them
        List<ByteRange> parts = List.of(new ByteRange(0, middle), new ByteRange(middle, message.length - middle));
        return TypedContents.read(bytes, "m", new InferMessage.Input("i", datatype, new Dims(), Map.of(), parts));
    }

    @Property(tries = 1000)
    void refusesGarbageAndNothingElse(@ForAll @Size(max = 30) byte[] garbage) {
        Assume.that(!TestMessages.mayHoldLongNumber(garbage));
        boolean isMessage;
        try {
            isMessage = InferTensorContents.parseFrom(garbage).isInitialized();
        } catch (IOException _) {
            isMessage = false;
        }
        try {
            read("INT32", garbage, 1);
            assertThat(isMessage).isTrue();
        } catch (InferenceException error) {
            assertThat(error.publicMessage().equals("Unable to parse request")).isEqualTo(!isMessage);
        }
    }

    @Test
    void refusesNumbersOfMoreThanTenBytes() {
        byte[] message = new byte[11];
        Arrays.fill(message, (byte) -1);
        message[0] = MODEL_FIELD << 3;

        assertThatThrownBy(() -> read("INT32", message, 1)).hasMessageContaining("Unable to parse request");
    }

    @Test
    void reportsWrongFields() {
        InferTensorContents floats =
                InferTensorContents.newBuilder().addFp32Contents(1).build();
        InferTensorContents ints =
                InferTensorContents.newBuilder().addIntContents(1).build();
        InferTensorContents strings = InferTensorContents.newBuilder()
                .addBytesContents(ByteString.EMPTY)
                .build();

        assertRefused("FP16", floats, " of type 'FP32', expected datatype 'FP16'");
        assertRefused("BF16", strings, " of type 'BYTES', expected datatype 'BF16'");
        assertRefused("INT64", ints, " of type 'INT32', expected datatype 'INT64'");
        assertRefused("int32", ints, " of type 'INT32', expected datatype '<invalid>'");
        assertRefused("FP32", ints.toBuilder().mergeFrom(floats).build(), " of type 'INT32', expected datatype 'FP32'");
        assertRefused("INT8", ints.toBuilder().mergeFrom(floats).build(), ", binary data was already supplied.");
    }

    private static void assertRefused(String datatype, InferTensorContents contents, String text) {
        assertThatThrownBy(() -> read(datatype, contents.toByteArray(), 0))
                .isInstanceOf(InferenceException.class)
                .hasMessage("unexpected explicit tensor data for input tensor 'i' for model 'm'" + text);
    }

    @Test
    void isEmptyWithoutElements() {
        assertThat(read("FP16", new byte[0], 0).byteSize()).isZero();
    }
}
