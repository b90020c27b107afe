package dev.nereid.backend.python.frame;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class FrameReaderTest {
    /** The examples of PROTOCOL.md. */
    private static final String EXECUTE = """
            78 00 00 00 04 00 01 00 01 00 00 00 00 00 00 00
            07 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00
            00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00
            00 00 00 00 61 00 00 0b 02 00 00 00 00 70 00 00
            00 00 00 00 00 08 00 00 00 00 00 00 00 01 00 00
            00 00 00 00 00 02 00 00 00 00 00 00 00 00 00 00
            00 00 80 3f 00 00 00 40""".replaceAll("\\s", "");

    private static final String EXECUTED = """
            48 00 00 00 43 00 01 00 01 00 00 00 00 00 00 00
            01 01 01 00 00 00 00 00 00 00 0b 02 00 00 00 00
            40 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00
            01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
            00 00 80 3f 00 00 00 40""".replaceAll("\\s", "");

    @Test
    void readsTheExampleOfTheProtocol() {
        FrameReader frame = reader(HexFormat.of().parseHex(EXECUTED));
        assertThat(frame.type()).isEqualTo(FrameType.EXECUTED);
        assertThat(frame.count()).isEqualTo(1);
        assertThat(frame.id()).isEqualTo(1);
        assertThat(frame.u8("kind")).isEqualTo(1);
        assertThat(frame.u8("flags")).isEqualTo(1);
        assertThat(frame.u16("outputs")).isEqualTo(1);
        assertThat(frame.u16("parameters")).isZero();
        assertThat(frame.u16("code")).isZero();
        FrameTensor tensor = frame.tensor("output");
        assertThat(tensor.type()).isEqualTo(DataType.FP32);
        assertThat(tensor.shape()).isEqualTo(Shape.of(1, 2));
        assertThat(tensor.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED)).containsExactly(1f, 2f);
        assertThat(frame.remaining()).isZero();
    }

    @Test
    void writesTheExampleOfTheProtocol() {
        FrameWriter writer = new FrameWriter().begin(FrameType.EXECUTE, 0, 1, 1);
        writer.u64(7)
                .u64(0)
                .u64(0)
                .u32(0)
                .u16(0)
                .u16(1)
                .u16(0)
                .u16(0)
                .u32(1)
                .u32(0)
                .u32(0)
                .u32(0);
        writer.bytes(new byte[] {'a'}).inlineTensor(0, Tensor.ofFloats(Shape.of(1, 2), 1, 2));
        writer.end();
        assertThat(HexFormat.of().formatHex(writer.frame().toArray(ValueLayout.JAVA_BYTE)))
                .isEqualTo(EXECUTE);
    }

    @Test
    void readsWhatIsWritten() {
        FrameWriter writer = new FrameWriter().begin(FrameType.OPEN, 1, 2, 3);
        writer.text("grüße")
                .texts(List.of("a", ""))
                .map(Map.of("k", "v"))
                .f64(0.5)
                .u64(-1);
        FrameReader frame = reader(writer.end().frame().toArray(ValueLayout.JAVA_BYTE));
        assertThat(frame.text("text")).isEqualTo("grüße");
        assertThat(frame.texts("texts")).containsExactly("a", "");
        assertThat(frame.map("map")).containsExactly(Map.entry("k", "v"));
        assertThat(frame.f64("number")).isEqualTo(0.5);
        FrameReader copy = frame.copy();
        assertThat(copy.peekU64("number")).isEqualTo(-1);
        assertThat(copy.u64("number")).isEqualTo(-1);
        assertThat(frame.u64("number")).isEqualTo(-1);
    }

    @Test
    void namesAFieldThatDoesNotFit() {
        FrameWriter writer =
                new FrameWriter().begin(FrameType.LOG, 0, 0, 0).u32(1 << 30).end();
        FrameReader frame = reader(writer.frame().toArray(ValueLayout.JAVA_BYTE));
        assertThatThrownBy(() -> frame.text("message"))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("message: 1073741824 bytes");
        FrameReader again = reader(writer.frame().toArray(ValueLayout.JAVA_BYTE));
        assertThatThrownBy(() -> again.texts("names"))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("names: 1073741824 entries");
    }

    @Test
    void refusesTensorsWhoseSizeIsNotThatOfTheirShape() {
        assertRefused(11, new long[] {2}, 7, "7 bytes (expected: 8");
        assertRefused(11, new long[] {-1}, 4, "dimension -1");
        assertRefused(11, new long[] {1L << 40, 1L << 40}, 0, "a shape of more elements than memory has");
        assertRefused(12, new long[] {0, 1L << 62, 1L << 62}, 0, "a shape of more elements than memory has");
        assertRefused(12, new long[] {1L << 61}, 0, "a shape of more elements than memory has");
        assertRefused(13, new long[] {3}, 11, "11 bytes for 3 texts");
        assertRefused(0, new long[] {1}, 1, "data type 0");
        assertRefused(15, new long[] {1}, 1, "data type 15");
    }

    private static void assertRefused(int type, long[] dims, long size, String message) {
        FrameWriter writer = new FrameWriter().begin(FrameType.RESPONSE, 0, 0, 0);
        writer.u16(0).u8(type).u8(dims.length).u32(1).u64(0).u64(size);
        for (long dim : dims) {
            writer.u64(dim);
        }
        FrameReader frame = reader(writer.end().frame().toArray(ValueLayout.JAVA_BYTE));
        assertThatThrownBy(() -> frame.tensor("output"))
                .isInstanceOf(FrameException.class)
                .hasMessageContaining(message);
    }

    @Test
    void readsChangedFramesOrRefusesThem() {
        Random random = new Random(7);
        byte[] good = HexFormat.of().parseHex(EXECUTED);
        for (int i = 0; i < 200_000; i++) {
            byte[] bytes = good.clone();
            for (int change = random.nextInt(4); change >= 0; change--) {
                bytes[FrameType.HEADER_SIZE + random.nextInt(bytes.length - FrameType.HEADER_SIZE)] =
                        (byte) random.nextInt();
            }
            FrameReader frame = reader(bytes);
            try {
                frame.u64("result");
                FrameTensor tensor = frame.tensor("output");
                assertThat(tensor.segment() != 0 || tensor.data().byteSize() == tensor.size())
                        .isTrue();
                frame.parameters(random.nextInt(3));
            } catch (FrameException e) {
                assertThat(e).hasMessageContaining("expected");
            }
        }
    }

    @Test
    void writesParametersAsJson() {
        assertThat(ParameterJson.of(Map.of())).isEqualTo("{}");
        assertThat(ParameterJson.of(Map.of("a\"\n", 1L))).isEqualTo("{\"a\\\"\\n\":1}");
        assertThat(ParameterJson.of(Map.of("t", true))).isEqualTo("{\"t\":true}");
        assertThat(ParameterJson.of(Map.of("s", "\u0001ü"))).isEqualTo("{\"s\":\"\\u0001ü\"}");
    }

    private static FrameReader reader(byte[] bytes) {
        return new FrameReader().of(MemorySegment.ofArray(bytes), 0, bytes.length);
    }
}
