package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Checks the Javadoc of the SPI: since when each public type exists, and how each comment begins. */
final class DocumentationTest {
    private static final Path SOURCES = Path.of("src", "main", "java");
    private static final Pattern PUBLIC_TYPE =
            Pattern.compile("^public (?:\\w+ )*(?:class|interface|@interface|record|enum) \\w+", Pattern.MULTILINE);
    private static final Pattern COMMENT = Pattern.compile("/\\*\\*(.*?)\\*/", Pattern.DOTALL);
    private static final Pattern SINCE = Pattern.compile("\\* @since \\d+\\.\\d+\n");
    private static final Pattern TAG = Pattern.compile("\\{@(?:link|linkplain|code)\\s+([^}]*)}");
    private static final Pattern SENTENCE_END = Pattern.compile("(?<=[.!?])\\s|\\s@");
    private static final Pattern WORD = Pattern.compile("\\S+");
    private static final int MAX_WORDS = 15;

    @Test
    void everyPublicTypeSaysSinceWhenItExists() throws IOException {
        List<String> without = new ArrayList<>();
        int types = 0;
        for (Path file : sources()) {
            String text = Files.readString(file);
            Matcher type = PUBLIC_TYPE.matcher(text);
            if (type.find()) {
                types++;
                if (!SINCE.matcher(text.substring(0, type.start())).find()) {
                    without.add(SOURCES.relativize(file).toString());
                }
            }
        }
        assertThat(types).isGreaterThan(50);
        assertThat(without).isEmpty();
    }

    @Test
    void thePageOfThePackageNamesEveryPublicType() throws IOException {
        Path directory = SOURCES.resolve("dev/nereid/spi");
        String page = Files.readString(directory.resolve("package-info.java"));
        List<String> missing = new ArrayList<>();
        for (Path file : sources()) {
            String type = file.getFileName().toString().replace(".java", "");
            if (directory.equals(file.getParent())
                    && PUBLIC_TYPE.matcher(Files.readString(file)).find()
                    && !page.contains("{@link " + type + "}")) {
                missing.add(type);
            }
        }
        assertThat(missing).isEmpty();
    }

    @Test
    void everyCommentBeginsWithAShortSentence() throws IOException {
        List<String> longer = new ArrayList<>();
        for (Path file : sources()) {
            for (Matcher comment = COMMENT.matcher(Files.readString(file)); comment.find(); ) {
                String sentence = firstSentence(comment.group(1));
                if (WORD.matcher(sentence).results().count() > MAX_WORDS) {
                    longer.add(SOURCES.relativize(file) + ": " + sentence);
                }
            }
        }
        assertThat(longer).isEmpty();
    }

    private static String firstSentence(String comment) {
        String text = comment.replaceAll("\n\\s*\\* ?", " ").strip();
        text = TAG.matcher(text).replaceAll(tag -> {
            String content = tag.group(1);
            return Matcher.quoteReplacement(content.substring(content.lastIndexOf(' ') + 1));
        });
        Matcher end = SENTENCE_END.matcher(text);
        return text.startsWith("{@inheritDoc}") ? "" : end.find() ? text.substring(0, end.start()) : text;
    }

    private static List<Path> sources() throws IOException {
        try (Stream<Path> files = Files.walk(SOURCES)) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .sorted()
                    .toList();
        }
    }
}
