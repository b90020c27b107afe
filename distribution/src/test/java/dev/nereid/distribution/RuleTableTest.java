package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Checks the table of rules beside the tests of the scheduler. The tests that it names exist, and it covers every
 * section.
 */
final class RuleTableTest {
    private static final Path TABLE =
            TestPaths.checkout().resolve("scheduler/src/test/resources/dev/nereid/scheduler/rules.md");
    private static final Pattern SECTION = Pattern.compile("##+ §([\\d.]+) .*");
    private static final Pattern HEADING = Pattern.compile("##+ (\\d+(?:\\.\\d+)?)\\.? .*");
    private static final Pattern NAME = Pattern.compile("`([A-Z]\\w*(?:Test|IT|Properties|Stress))(?:\\.(\\w+))?`");
    /** The prefix of a test method's name. */
    private static final String TEST = "@(?:Test|ParameterizedTest|Property)\\b(?:(?!\\bvoid\\b)[\\s\\S])*\\bvoid\\s+";

    /** A row and its section. */
    private record Row(String section, String id, String rule, String how, String tests) {
        boolean namesATest() {
            return NAME.matcher(tests).find();
        }
    }

    private static List<Row> rows() throws IOException {
        List<Row> rows = new ArrayList<>();
        String section = "";
        for (String line : Files.readAllLines(TABLE)) {
            Matcher heading = SECTION.matcher(line);
            if (heading.matches()) {
                section = heading.group(1);
            } else if (line.startsWith("| ") && !line.startsWith("| id |")) {
                String[] cells = line.split("\\|", -1);
                assertThat(cells).as(line).hasSize(6);
                rows.add(new Row(section, cells[1].strip(), cells[2].strip(), cells[3].strip(), cells[4].strip()));
            }
        }
        return rows;
    }

    private static Map<String, String> testSources() throws IOException {
        List<Path> files = new ArrayList<>();
        for (Path parent : List.of(Path.of(""), Path.of("authors"), Path.of("extensions"), Path.of("checks"))) {
            try (Stream<Path> modules = Files.list(TestPaths.checkout().resolve(parent))) {
                for (Path module : modules.toList()) {
                    Path tests = module.resolve("src/test/java");
                    if (Files.isDirectory(tests)) {
                        try (Stream<Path> found = Files.walk(tests)) {
                            found.filter(file -> NAME.matcher("`" + simpleName(file) + "`")
                                            .matches())
                                    .forEach(files::add);
                        }
                    }
                }
            }
        }
        return files.stream()
                .collect(Collectors.groupingBy(
                        RuleTableTest::simpleName, Collectors.mapping(RuleTableTest::read, Collectors.joining())));
    }

    private static String simpleName(Path file) {
        return file.getFileName().toString().replaceFirst("\\.java$", "");
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void namesTestsThatAreThere() throws IOException {
        Map<String, String> sources = testSources();
        List<String> missing = new ArrayList<>();
        for (Row row : rows()) {
            for (Matcher name = NAME.matcher(row.tests()); name.find(); ) {
                String source = sources.get(name.group(1));
                String method = name.group(2);
                if (source == null
                        || (method != null
                                && !Pattern.compile(TEST + Pattern.quote(method) + "\\s*\\(")
                                        .matcher(source)
                                        .find())) {
                    missing.add(row.id() + ": " + name.group());
                }
            }
        }

        assertThat(missing).isEmpty();
    }

    @Test
    void showsEveryRuleOrStatesWhyNot() throws IOException {
        List<Row> rows = rows();

        assertThat(rows).extracting(row -> row.section() + " " + row.id()).doesNotHaveDuplicates();
        for (Row row : rows) {
            assertThat(row.rule()).as(row.id()).isNotEmpty();
            assertThat(row.how()).as(row.id()).matches("=|own|pull|–|d\\d+");
            boolean refers = row.tests().matches("rows? [\\d.]+\\w*(–[\\d.]+\\w*)?");
            boolean excuses = row.tests().startsWith("– ")
                    || (row.how().equals("–") && !row.tests().isEmpty());
            assertThat(row.namesATest() || refers || excuses)
                    .as("%s: %s", row.id(), row.tests())
                    .isTrue();
        }
    }

    @Test
    void leavesNoSectionOfThePageOut() throws IOException {
        Path page = TestPaths.shared("spec/schedulers.md");
        List<String> covered = rows().stream().map(Row::section).distinct().toList();

        List<String> sections = Files.readAllLines(page).stream()
                .map(HEADING::matcher)
                .filter(Matcher::matches)
                .map(heading -> heading.group(1))
                .filter(section -> section.matches("[25-9](\\..*)?"))
                .toList();

        assertThat(sections).contains("2", "2.1", "9");
        assertThat(covered).containsAll(sections);
    }
}
