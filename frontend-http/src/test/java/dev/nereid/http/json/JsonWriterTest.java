package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.StringJoiner;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** JSON in the reference server's notation. */
class JsonWriterTest {
    private final JsonWriter json = new JsonWriter();

    @Test
    void refusesTextsBeyondItsMaxSizeAndWritesTheNextOne() {
        JsonWriter small = new JsonWriter(3000);
        for (int i = 0; i < 300; i++) {
            small.raw("0123456789");
        }

        assertThatThrownBy(() -> small.integer(1))
                .isInstanceOf(InferenceException.class)
                .hasMessage("the response is larger than 3000 bytes as JSON; request its outputs as binary data");

        small.clear();
        assertThat(written(small.integer(1))).isEqualTo("1");
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1.0",
        "-2, -2.0",
        "0.1, 0.1",
        "-0.0, -0.0",
        "123456.789, 123456.789",
        "100000, 100000.0",
        "12345678, 12345678.0",
        "1.5e10, 15000000000.0",
        "18446744073709551616, 18446744073709552000.0",
        "1e20, 100000000000000000000.0",
        "1e21, 1e21",
        "1.25e22, 1.25e22",
        "1e-5, 0.00001",
        "-1.5e-6, -0.0000015",
        "1e-7, 1e-7",
        "-1.25e-300, -1.25e-300",
        "4.9e-324, 4.9e-324",
        "NaN, NaN",
        "Infinity, Infinity",
        "-Infinity, -Infinity",
    })
    void writesDoubles(double value, String text) {
        assertThat(written(json.real(value))).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({
        "0.1, 0.1",
        "16777217, 16777216.0",
        "123456789.123456789, 123456790.0",
        "1e-45, 1.4e-45",
        "3.5e38, Infinity"
    })
    void writesTheShortestFloats(float value, String text) {
        assertThat(written(json.real(value))).isEqualTo(text);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 255, 256, 257, 10_000})
    void writesAnyNumberOfFloats(int count) {
        float[] values = new float[count];
        StringJoiner expected = new StringJoiner(",");
        for (int i = 0; i < count; i++) {
            // Long ones after short ones, so that more space is needed than estimated.
            values[i] = i < count / 2 ? i : -1e-30f / (i + 1);
            json.clear();
            expected.add(written(json.real(values[i])));
        }

        json.clear();
        assertThat(written(json.reals(MemorySegment.ofArray(values)))).isEqualTo(expected.toString());
    }

    @Test
    void refusesTooManyFloats() {
        JsonWriter small = new JsonWriter(50_000);
        MemorySegment values = MemorySegment.ofArray(new float[20_000]);

        assertThatThrownBy(() -> small.reals(values)).isInstanceOf(InferenceException.class);

        small.clear();
        assertThat(written(small.reals(values.asSlice(0, 10_000 * Float.BYTES))))
                .hasSize(39_999);
    }

    @Test
    void writesTheSameTextInChunks() {
        JsonChunks pieces = new JsonChunks(() -> false, new JsonMemoryLimiter());
        JsonWriter piecewise = new JsonWriter(pieces);

        writeALot(json);
        writeALot(piecewise);
        piecewise.flush();

        List<ByteBuf> taken = pieces.take();
        ByteBuf text = Unpooled.wrappedBuffer(taken.toArray(ByteBuf[]::new));
        assertThat(ByteBufUtil.getBytes(text)).isEqualTo(json.toByteArray());
        assertThat(pieces.size()).isEqualTo(json.size());
        assertThat(taken)
                .hasSizeGreaterThan(3)
                .allSatisfy(piece -> assertThat(piece.readableBytes()).isBetween(1, JsonChunks.CHUNK_SIZE));
    }

    private static void writeALot(JsonWriter writer) {
        float[] floats = new float[30_000];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = -1e-30f / (i + 1);
        }
        writer.raw("[").reals(MemorySegment.ofArray(floats)).raw(",").string("é😀\n".repeat(50_000));
        for (int i = 0; i < 50_000; i++) {
            writer.raw(',').integer(i).raw(",").real(i + 0.25).raw(",").unsigned(-i);
        }
        writer.raw("]");
    }

    @Test
    void stopsWritingAnAbandonedText() {
        JsonChunks pieces = new JsonChunks(() -> true, new JsonMemoryLimiter());
        JsonWriter piecewise = new JsonWriter(pieces);

        assertThatThrownBy(() -> piecewise.string("x".repeat(2 * JsonChunks.CHUNK_SIZE)))
                .isInstanceOf(CancellationException.class);
    }

    @Test
    void escapesOnlyWhatJsonRequires() {
        json.string("a\"\\/\b\f\n\r\t\0\u001f\u007fé😀");

        assertThat(written(json)).isEqualTo("\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001F\u007fé😀\"");
    }

    @Test
    void writesStringsOfAnyBytes() {
        json.string(MemorySegment.ofArray(new byte[] {9, (byte) 0xFF, (byte) 0xFE, 0, 'x'}), 1, 4);

        assertThat(json.toByteArray())
                .isEqualTo(new byte[] {'"', (byte) 0xFF, (byte) 0xFE, '\\', 'u', '0', '0', '0', '0', 'x', '"'});
    }

    @Test
    void growsAsNeededAndStartsAgain() {
        String text = "0123456789".repeat(1000);

        assertThat(written(json.raw(text).string(text))).isEqualTo(text + "\"" + text + "\"");
        json.clear();
        assertThat(written(json.raw("[]"))).isEqualTo("[]");
    }

    @Test
    void transfersLargeTextsWithoutACopy() {
        String text = "0123456789".repeat(200_000);
        json.raw(text);
        byte[] memory = json.array();

        Buffer taken = json.take();
        json.raw("[]");

        assertThat(((BufferInternal) taken).getByteBuf().array()).isSameAs(memory);
        assertThat(taken.toString().equals(text)).isTrue();
        assertThat(written(json)).isEqualTo("[]");
    }

    @Test
    void keepsTheMemoryOfSmallTexts() {
        byte[] memory = json.raw("{}").array();

        Buffer taken = json.take();
        json.raw("[]");

        assertThat(taken.toString()).isEqualTo("{}");
        assertThat(json.array()).isSameAs(memory);
    }

    private static String written(JsonWriter json) {
        return new String(json.toByteArray(), StandardCharsets.UTF_8);
    }
}
