package dev.nereid.benchmarks.micro;

import ch.randelshofer.fastdoubleparser.JavaFloatParser;
import ch.randelshofer.fastdoubleparser.JsonDoubleParser;
import dev.nereid.api.NamedTensor;
import dev.nereid.http.json.InputMetadata;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonReader;
import dev.nereid.http.json.JsonTensorReader;
import dev.nereid.http.json.JsonTensorWriter;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Random;

/**
 * Reads and writes numbers with this project's code, the JDK's and a library's, for benchmarks. Confined to the thread
 * that measures.
 *
 * <p>All readers take the numbers from native memory and put them into native memory, as a tensor is read. The readers of
 * the JDK and the library accept more than JSON, which they do not check here; the writers by the JDK leave exponents as
 * they are.
 */
public final class NumberCodec implements AutoCloseable {
    /** Value distributions of the numbers. */
    public enum Kind {
        /** Floats between zero and one, with all their digits. */
        FP32(false),
        /** Normally distributed floats, with all their digits. */
        FP32_NORMAL(false),
        /** Floats with one digit after the point. */
        FP32_SHORT(false),
        /** Floats without a fraction, below 256. */
        FP32_WHOLE(false),
        /** Doubles between zero and one, with all their digits. */
        FP64(true);

        private final boolean isDouble;

        Kind(boolean isDouble) {
            this.isDouble = isDouble;
        }

        private double draw(Random random) {
            return switch (this) {
                case FP32 -> random.nextFloat();
                case FP32_NORMAL -> (float) random.nextGaussian();
                case FP32_SHORT -> (float) (random.nextInt(200) / 10.0);
                case FP32_WHOLE -> random.nextInt(256);
                case FP64 -> random.nextDouble();
            };
        }
    }

    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long EVERY_BYTE = 0x0101_0101_0101_0101L;
    private static final long HIGH_BITS = 0x8080_8080_8080_8080L;

    /** More than any number takes as text. */
    private static final int MAX_BYTES = 32;

    private final Arena arena = Arena.ofShared();
    private final Kind kind;
    private final int count;
    private final MemorySegment text;
    private final MemorySegment values;
    private final MemorySegment target;
    private final InputMetadata metadata;
    private final NamedTensor output;
    private final JsonWriter writer = new JsonWriter();
    private final StringBuilder decimal = new StringBuilder();
    private final byte[] bytes;
    private final byte[] written;

    /** Draws {@code count} numbers of a distribution. */
    public NumberCodec(Kind kind, int count) {
        this.kind = kind;
        this.count = count;
        values = arena.allocate(ValueLayout.JAVA_DOUBLE, count);
        target = arena.allocate(ValueLayout.JAVA_DOUBLE, count);
        Random random = new Random(count);
        StringBuilder all = new StringBuilder("[");
        for (int i = 0; i < count; i++) {
            double value = kind.draw(random);
            if (kind.isDouble) {
                values.set(ValueLayout.JAVA_DOUBLE, (long) i * Double.BYTES, value);
                all.append(value);
            } else {
                values.set(ValueLayout.JAVA_FLOAT, (long) i * Float.BYTES, (float) value);
                all.append(kind == Kind.FP32_WHOLE ? Integer.toString((int) value) : Float.toString((float) value));
            }
            all.append(i < count - 1 ? ',' : ']');
        }
        byte[] ascii = all.toString().getBytes(StandardCharsets.US_ASCII);
        text = arena.allocate(ascii.length).copyFrom(MemorySegment.ofArray(ascii));
        bytes = new byte[ascii.length + MAX_BYTES];
        written = new byte[count * MAX_BYTES];
        DataType type = kind.isDouble ? DataType.FP64 : DataType.FP32;
        metadata = new InputMetadata("INPUT0", type.name(), new long[] {count});
        MemorySegment data = values.asSlice(0, (long) count * type.byteSize());
        output = new NamedTensor("OUTPUT0", Tensor.of(type, Shape.of(count), data));
    }

    /** Reads the numbers with {@link JsonTensorReader}. */
    public MemorySegment read() {
        return new JsonTensorReader(Integer.MAX_VALUE)
                .read(new JsonReader(text), 0, metadata, (byteSize, alignment) -> target.asSlice(0, byteSize));
    }

    /** Reads the numbers with FastDoubleParser: its parser of floats accepts more than JSON. */
    public MemorySegment readByLibrary() {
        return readBy(
                kind.isDouble
                        ? (bytes, start, end, i) -> target.set(
                                ValueLayout.JAVA_DOUBLE,
                                i * Double.BYTES,
                                JsonDoubleParser.parseDouble(bytes, start, end - start))
                        : (bytes, start, end, i) -> target.set(
                                ValueLayout.JAVA_FLOAT,
                                i * Float.BYTES,
                                JavaFloatParser.parseFloat(bytes, start, end - start)));
    }

    /** Reads the numbers with FastDoubleParser after a check of their syntax, which only JSON requires. */
    public MemorySegment readByCheckedLibrary() {
        return readBy(
                kind.isDouble
                        ? (bytes, start, end, i) -> target.set(
                                ValueLayout.JAVA_DOUBLE,
                                i * Double.BYTES,
                                JsonDoubleParser.parseDouble(bytes, start, checkedLength(bytes, start, end)))
                        : (bytes, start, end, i) -> target.set(
                                ValueLayout.JAVA_FLOAT,
                                i * Float.BYTES,
                                JavaFloatParser.parseFloat(bytes, start, checkedLength(bytes, start, end))));
    }

    private static int checkedLength(byte[] bytes, int start, int end) {
        if (JsonNumber.skipPlain(bytes, start) != end) {
            throw new IllegalStateException("number: none at " + start);
        }
        return end - start;
    }

    public MemorySegment readByJdk() {
        return readBy(
                kind.isDouble
                        ? (bytes, start, end, i) -> target.set(
                                ValueLayout.JAVA_DOUBLE, i * Double.BYTES, Double.parseDouble(ascii(bytes, start, end)))
                        : (bytes, start, end, i) -> target.set(
                                ValueLayout.JAVA_FLOAT, i * Float.BYTES, Float.parseFloat(ascii(bytes, start, end))));
    }

    private static String ascii(byte[] bytes, int start, int end) {
        return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
    }

    /** Parses the number in a range of bytes, and stores it as an element. */
    private interface Parser {
        void parse(byte[] bytes, int start, int end, long index);
    }

    private MemorySegment readBy(Parser parser) {
        int length = (int) text.byteSize();
        MemorySegment.copy(text, ValueLayout.JAVA_BYTE, 0, bytes, 0, length);
        bytes[length - 1] = ','; // in place of the bracket
        int index = 1;
        for (long element = 0; element < count; element++) {
            int comma = findComma(bytes, index);
            parser.parse(bytes, index, comma, element);
            index = comma + 1;
        }
        return target;
    }

    /** Finds the comma behind a number, eight bytes at a time, as {@link JsonReader} does. */
    private static int findComma(byte[] text, int from) {
        int index = from;
        while (true) {
            long difference = (long) LONG.get(text, index) ^ (EVERY_BYTE * ',');
            long same = (difference - EVERY_BYTE) & ~difference & HIGH_BITS;
            if (same != 0) {
                return index + Long.numberOfTrailingZeros(same) / Byte.SIZE;
            }
            index += Long.BYTES;
        }
    }

    /** Writes the numbers with {@link JsonTensorWriter}; doubles take the JDK's digits there too. */
    public int write() {
        writer.clear();
        JsonTensorWriter.write(writer, output);
        return writer.size();
    }

    /** Writes the numbers with the JDK's digits by way of a string each. */
    @SuppressWarnings("deprecation") // the fastest copy of ASCII characters
    public int writeByJdk() {
        int at = 0;
        for (long i = 0; i < count; i++) {
            String number = kind.isDouble
                    ? Double.toString(values.get(ValueLayout.JAVA_DOUBLE, i * Double.BYTES))
                    : Float.toString(values.get(ValueLayout.JAVA_FLOAT, i * Float.BYTES));
            int length = number.length();
            number.getBytes(0, length, written, at);
            at += length;
            written[at++] = ',';
        }
        return at;
    }

    /** Writes the numbers with the JDK's digits by way of a reused builder, without garbage. */
    public int writeByBuilder() {
        int at = 0;
        for (long i = 0; i < count; i++) {
            decimal.setLength(0);
            if (kind.isDouble) {
                decimal.append(values.get(ValueLayout.JAVA_DOUBLE, i * Double.BYTES));
            } else {
                decimal.append(values.get(ValueLayout.JAVA_FLOAT, i * Float.BYTES));
            }
            int length = decimal.length();
            for (int j = 0; j < length; j++) {
                written[at++] = (byte) decimal.charAt(j);
            }
            written[at++] = ',';
        }
        return at;
    }

    @Override
    public void close() {
        arena.close();
    }
}
