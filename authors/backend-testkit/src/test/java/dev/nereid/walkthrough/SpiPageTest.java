package dev.nereid.walkthrough;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Compares the code of {@code docs/spi-1.0.md} with the files of this package, which are compiled and tested. */
final class SpiPageTest {
    private static final Path PAGE = Path.of("..", "..", "docs", "spi-1.0.md");
    private static final Path SOURCES =
            Path.of("src", "test", "java", SpiPageTest.class.getPackageName().replace('.', '/'));
    private static final Pattern BLOCK =
            Pattern.compile("^`(\\w+\\.java)`:\n\n```java\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern HEADER = Pattern.compile("\\A(?:package .*;|import .*;|\\s)*");

    @Test
    void thePageShowsTheFilesThatAreCompiled() throws IOException {
        Map<String, String> shown = new TreeMap<>();
        for (Matcher block = BLOCK.matcher(Files.readString(PAGE)); block.find(); ) {
            shown.put(block.group(1), block.group(2));
        }

        assertThat(shown).isEqualTo(compiled());
    }

    @Test
    void allCodeOfThePageIsCompared() throws IOException {
        long blocks = Files.readString(PAGE).lines().filter("```java"::equals).count();

        assertThat(blocks).isEqualTo(compiled().size());
    }

    /** Returns the content of each file without package and imports, except tests and what they need. */
    private static Map<String, String> compiled() throws IOException {
        Map<String, String> compiled = new TreeMap<>();
        try (Stream<Path> files = Files.list(SOURCES)) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString();
                if (!name.matches("package-info\\.java|Test\\w+\\.java|\\w+Tests?\\.java")) {
                    compiled.put(name, HEADER.matcher(Files.readString(file)).replaceFirst(""));
                }
            }
        }
        return compiled;
    }
}
