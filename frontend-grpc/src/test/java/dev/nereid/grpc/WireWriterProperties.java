package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.CodedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Texts of any kind are written as the generated classes write what they can write. */
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
    void writesAnyText(@ForAll List<String> texts, @ForAll @IntRange(max = 100) int room) throws IOException {
        assertWritten(texts, new byte[room]);
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
}
