package dev.nereid.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Compares the tests in {@code docs/backend-authors.md} with the files of this package, which are compiled and run. */
final class GuidePageTest {
    private static final Path PAGE = Path.of("..", "..", "docs", "backend-authors.md");
    private static final Path SOURCES = Path.of("src", "test", "java", "dev", "nereid", "guide");
    private static final Pattern SECTION =
            Pattern.compile("^## Testing a plugin\n(.*?)^## ", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern BLOCK =
            Pattern.compile("^`(\\w+\\.java)`:\n\n```java\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
    private static final int CLASSES = 1;

    @Test
    void thePageShowsTheFilesThatAreCompiled() throws IOException {
        Matcher section = SECTION.matcher(Files.readString(PAGE));
        assertThat(section.find()).isTrue();
        int compared = 0;
        for (Matcher block = BLOCK.matcher(section.group(1)); block.find(); compared++) {
            String compiled = Files.readString(SOURCES.resolve(block.group(1)));
            assertThat(compiled).isEqualTo("package dev.nereid.guide;\n\n" + block.group(2));
        }
        assertThat(compared).isEqualTo(CLASSES);
        assertThat(section.group(1).lines().filter("```java"::equals)).hasSize(CLASSES);
    }
}
