package dev.nereid.distribution;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.toMap;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Finds identifiers and phrases that were replaced by standard terms ({@code vocabulary.txt}) in sources and pages. */
class VocabularyTest {
    private static final String LIST = "vocabulary.txt";
    private static final Set<String> TYPES =
            Set.of("java", "md", "xml", "lua", "py", "sh", "txt", "pbtxt", "properties", "proto");
    private static final Set<String> SKIPPED = Set.of("target", ".git");
    private static final Pattern IDENTIFIER = Pattern.compile("[A-Za-z_$][A-Za-z0-9_$]*");

    /** The end of a line with what continues a comment, a Markdown list or a quotation on the next one. */
    private static final Pattern LINE_BREAK = Pattern.compile("\\R[ \\t]*(?:\\*(?!/)|//|#|>)?[ \\t]*");

    private final Map<String, String> identifiers = new TreeMap<>();
    private final Map<String, String> phrases = new TreeMap<>();

    VocabularyTest() throws IOException {
        try (var in = VocabularyTest.class.getResourceAsStream(LIST)) {
            for (String line : new String(in.readAllBytes(), UTF_8).lines().toList()) {
                if (!line.isBlank() && !line.startsWith("#")) {
                    String[] parts = line.split(" => ", 2);
                    assertThat(parts).as("line of %s: %s", LIST, line).hasSize(2);
                    (parts[0].contains(" ") ? phrases : identifiers).put(parts[0], parts[1]);
                }
            }
        }
    }

    @Test
    void noSourceOrPageHasAReplacedWord() throws IOException {
        List<String> found = new ArrayList<>();
        int files = 0;
        for (Path file : files()) {
            files++;
            for (String word : check(Files.readString(file, ISO_8859_1))) {
                found.add(TestPaths.checkout().relativize(file) + ": " + word);
            }
        }
        assertThat(files).isGreaterThan(1000);
        assertThat(found).isEmpty();
    }

    @Test
    void findsIdentifiersAsAWholeAndPhrasesAcrossLines() {
        assertThat(check("class AlarmsTestFixture {}")).isEmpty();
        assertThat(check("CheckedCall call;")).containsExactly("CheckedCall (expected: CheckedRequest)");
        assertThat(check("checkedCall")).isEmpty();
        assertThat(check(" * The buffer is Given\n     * back by its owner."))
                .containsExactly("given back (expected: " + phrases.get("given back") + ")");
        assertThat(check("// given\n// back")).hasSize(1);
        assertThat(check("a given background")).isEmpty();
    }

    @Test
    void theListNamesNothingThatIsListedItself() {
        Map<String, String> circular = identifiers.entrySet().stream()
                .filter(entry -> identifiers.containsKey(entry.getValue()))
                .collect(toMap(Map.Entry::getKey, Map.Entry::getValue));
        assertThat(circular).isEmpty();
    }

    private List<String> check(String text) {
        List<String> found = new ArrayList<>();
        Matcher matcher = IDENTIFIER.matcher(text);
        while (matcher.find()) {
            String instead = identifiers.get(matcher.group());
            if (instead != null) {
                found.add(matcher.group() + " (expected: " + instead + ")");
            }
        }
        String oneLine = LINE_BREAK.matcher(text).replaceAll(" ").toLowerCase(Locale.ROOT);
        phrases.forEach((phrase, instead) -> {
            for (int at = oneLine.indexOf(phrase); at >= 0; at = oneLine.indexOf(phrase, at + 1)) {
                if (isBoundary(oneLine, at - 1) && isBoundary(oneLine, at + phrase.length())) {
                    found.add(phrase + " (expected: " + instead + ")");
                }
            }
        });
        return found;
    }

    private static boolean isBoundary(String text, int index) {
        return index < 0 || index >= text.length() || !Character.isLetterOrDigit(text.charAt(index));
    }

    private static List<Path> files() throws IOException {
        List<Path> files = new ArrayList<>();
        Files.walkFileTree(TestPaths.checkout(), new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
                return SKIPPED.contains(String.valueOf(directory.getFileName()))
                        ? FileVisitResult.SKIP_SUBTREE
                        : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                String name = file.getFileName().toString();
                boolean isListed = TYPES.contains(name.substring(name.lastIndexOf('.') + 1));
                if (isListed && !name.equals(LIST) && !name.equals("VocabularyTest.java")) {
                    files.add(file);
                }
                return FileVisitResult.CONTINUE;
            }
        });
        return files;
    }
}
