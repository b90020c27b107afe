package dev.nereid.distribution.child;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.vertx.core.json.JsonObject;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ChildOutputTest {
    private static final String MARK = "\u001emark ";

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final List<JsonObject> messages = new ArrayList<>();
    private final ChildOutput output = new ChildOutput(new PrintStream(out, true, UTF_8), MARK, messages::add);

    private String read(String text) throws IOException {
        output.read(new ByteArrayInputStream(text.getBytes(UTF_8)));
        return out.toString(UTF_8);
    }

    @Test
    void copiesAllButMessages() throws IOException {
        String copied = read(MARK + "{\"begin\":\"a\"}\npartly" + MARK + "{\"end\":1}\n written\n#\n# é\nlast");

        assertThat(copied).isEqualTo("partly written\n#\n# é\nlast");
        assertThat(messages).containsExactly(new JsonObject().put("begin", "a"), new JsonObject().put("end", 1));
        assertThat(output.fatalError()).isEmpty();
    }

    @Test
    void findsAMessageBehindAnyOutput() throws IOException {
        for (int length : List.of(8100, 8191, 8192, 8193, 20_000)) {
            messages.clear();
            out.reset();
            assertThat(read("x".repeat(length) + MARK + "{\"end\":1}\n")).hasSize(length);
            assertThat(messages).hasSize(1);
        }
    }

    @Test
    void copiesWhatIsNoMessage() throws IOException {
        assertThat(read(MARK + "{\"end\":\n" + MARK.strip() + "\n" + MARK)).startsWith(MARK + "{\"end\":\n");
        assertThat(messages).isEmpty();
    }

    @Test
    void keepsAFatalErrorForItself() throws IOException {
        String text = "# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb)\n";

        assertThat(read("before\n#\n" + text)).isEqualTo("before\n");
        assertThat(output.fatalError()).isEqualTo(text);
    }

    @Test
    void keepsLittleOfAnEndlessFatalError() throws IOException {
        read("# A fatal error has been detected by the Java Runtime Environment:\n" + "line\n".repeat(100_000));

        assertThat(output.fatalError()).hasSizeLessThan(70_000);
    }
}
