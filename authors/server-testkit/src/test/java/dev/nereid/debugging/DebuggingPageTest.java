package dev.nereid.debugging;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Compares the code of {@code docs/debugging-plugins.md} with the files of this package, which are compiled and tested. */
final class DebuggingPageTest {
    private static final Path PAGE = Path.of("..", "..", "docs", "debugging-plugins.md");
    private static final Path SOURCES = Path.of(
            "src", "test", "java", DebuggingPageTest.class.getPackageName().replace('.', '/'));
    private static final Pattern BLOCK =
            Pattern.compile("^`scale/(\\w+\\.java)`:\n\n```java\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);

    @Test
    void thePageShowsTheFilesThatAreCompiled() throws IOException {
        String page = Files.readString(PAGE);
        int blocks = 0;
        for (Matcher block = BLOCK.matcher(page); block.find(); blocks++) {
            assertThat(SOURCES.resolve(block.group(1)))
                    .content()
                    .isEqualTo("package " + DebuggingPageTest.class.getPackageName() + ";\n\n" + block.group(2));
        }

        assertThat(page.lines().filter("```java"::equals)).hasSize(2);
        assertThat(blocks).isEqualTo(2);
    }
}
