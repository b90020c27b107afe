package dev.nereid.http.json;

import ch.randelshofer.fastdoubleparser.JavaFloatParser;
import ch.randelshofer.fastdoubleparser.JsonDoubleParser;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Random;

/**
 * Reads and writes numbers with this project's code, the JDK's and a library's, for benchmarks. Confined to the thread
 * that measures.
 *
 * <p>All readers take the numbers from the window of a {@link JsonReader} and put them into native memory, as a tensor
 * is read. The readers of the JDK and the library accept more than JSON, which they do not check here.
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

    private final Arena arena = Arena.ofShared();
    private final Kind kind;
    private final int count;
    private final MemorySegment text;
    private final MemorySegment values;
    private final MemorySegment target;
    private final JsonNumber number = new JsonNumber();
    private final JsonWriter writer = new JsonWriter();
    private final StringBuilder decimal = new StringBuilder();
    private final byte[] written;

    /**
     * Draws numbers.
     *
     * @param kind their distribution
     * @param count how many numbers
     */
    public NumberCodec(Kind kind, int count) {
        this.kind = kind;
        this.count = count;
        values = arena.allocate(ValueLayout.JAVA_DOUBLE, count);
        target = arena.allocate(ValueLayout.JAVA_DOUBLE, count);
        Random random = new Random(count);
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < count; i++) {
            double value = kind.draw(random);
            if (kind.isDouble) {
                values.set(LittleEndian.DOUBLE, (long) i * Double.BYTES, value);
                all.append(value);
            } else {
                values.set(LittleEndian.FLOAT, (long) i * Float.BYTES, (float) value);
                all.append(kind == Kind.FP32_WHOLE ? Integer.toString((int) value) : Float.toString((float) value));
            }
            all.append(',');
        }
        byte[] bytes = all.append("0]").toString().getBytes(StandardCharsets.US_ASCII);
        text = arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
        written = new byte[(count + 1) * JsonFloats.MAX_BYTES];
    }

    /** Returns how many numbers there are. */
    public int count() {
        return count;
    }

    /** Reads the numbers with {@link JsonNumber}. */
    public MemorySegment read() {
        MemorySegment data = target;
        long read = new JsonReader(text)
                .readPlainElements(
                        number,
                        kind.isDouble
                                ? (value, i) -> data.set(LittleEndian.DOUBLE, i * Double.BYTES, value.value())
                                : (value, i) -> data.set(LittleEndian.FLOAT, i * Float.BYTES, value.floatValue()),
                        0,
                        count);
        check(read);
        return data;
    }

    /** Reads the numbers with FastDoubleParser: its parser of floats accepts more than JSON. */
    public MemorySegment readByLibrary() {
        return readBy(
                kind.isDouble
                        ? (bytes, start, end, i) -> target.set(
                                LittleEndian.DOUBLE,
                                i * Double.BYTES,
                                JsonDoubleParser.parseDouble(bytes, start, end - start))
                        : (bytes, start, end, i) -> target.set(
                                LittleEndian.FLOAT,
                                i * Float.BYTES,
                                JavaFloatParser.parseFloat(bytes, start, end - start)));
    }

    /** Reads the numbers with FastDoubleParser after a check of their syntax, which only JSON requires. */
    public MemorySegment readByCheckedLibrary() {
        return readBy(
                kind.isDouble
                        ? (bytes, start, end, i) -> target.set(
                                LittleEndian.DOUBLE,
                                i * Double.BYTES,
                                JsonDoubleParser.parseDouble(bytes, start, checkedLength(bytes, start, end)))
                        : (bytes, start, end, i) -> target.set(
                                LittleEndian.FLOAT,
                                i * Float.BYTES,
                                JavaFloatParser.parseFloat(bytes, start, checkedLength(bytes, start, end))));
    }

    private static int checkedLength(byte[] bytes, int start, int end) {
        if (JsonNumber.skipPlain(bytes, start) != end) {
            throw new IllegalStateException("number: none at " + start);
        }
        return end - start;
    }

    /** Reads the numbers with the JDK. */
    public MemorySegment readByJdk() {
        return readBy(
                kind.isDouble
                        ? (bytes, start, end, i) -> target.set(
                                LittleEndian.DOUBLE, i * Double.BYTES, Double.parseDouble(ascii(bytes, start, end)))
                        : (bytes, start, end, i) -> target.set(
                                LittleEndian.FLOAT, i * Float.BYTES, Float.parseFloat(ascii(bytes, start, end))));
    }

    private static String ascii(byte[] bytes, int start, int end) {
        return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
    }

    /** Parses the number in a range of bytes, and stores it as an element. */
    private interface Parser {
        void parse(byte[] bytes, int start, int end, long index);
    }

    /** The loop of {@link JsonReader#readPlainElements} with another parser. */
    private MemorySegment readBy(Parser parser) {
        JsonWindow window = new JsonWindow(text);
        int at = 0;
        long element = 0;
        while (at < window.end() && element < count) {
            int index = window.indexOf(at);
            byte[] bytes = window.array();
            int last = window.lastStart();
            do {
                int comma = DigitChunk.findComma(bytes, index);
                parser.parse(bytes, index, comma, element++);
                index = comma + 1;
            } while (index < last && element < count);
            at = window.offsetOf(index);
        }
        check(element);
        return target;
    }

    private void check(long read) {
        if (read != count) {
            throw new IllegalStateException("read: " + read + " (expected: " + count + ")");
        }
    }

    /** Writes the numbers with {@link JsonWriter}; doubles take the JDK's digits there too. */
    public int write() {
        writer.clear();
        if (kind.isDouble) {
            for (long i = 0; i < count; i++) {
                writer.real(values.get(LittleEndian.DOUBLE, i * Double.BYTES)).raw(',');
            }
        } else {
            writer.reals(values.asSlice(0, (long) count * Float.BYTES));
        }
        return writer.size();
    }

    /** Writes the numbers with the JDK's digits by way of a string each. */
    @SuppressWarnings("deprecation") // the fastest copy of ASCII characters
    public int writeByJdk() {
        int at = 0;
        for (long i = 0; i < count; i++) {
            String number = kind.isDouble
                    ? Double.toString(values.get(LittleEndian.DOUBLE, i * Double.BYTES))
                    : Float.toString(values.get(LittleEndian.FLOAT, i * Float.BYTES));
            if (number.indexOf('E') >= 0) {
                decimal.setLength(0);
                decimal.append(number);
                JsonDecimals.restyle(decimal);
                number = decimal.toString();
            }
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
                decimal.append(values.get(LittleEndian.DOUBLE, i * Double.BYTES));
            } else {
                decimal.append(values.get(LittleEndian.FLOAT, i * Float.BYTES));
            }
            JsonDecimals.restyle(decimal);
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
