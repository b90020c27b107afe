package dev.nereid.repository.config;

import com.google.protobuf.TextFormat;
import dev.nereid.api.Spelling;
import dev.nereid.repository.config.TextFormatError.FieldNames;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Finds the problems of a configuration's text, with positions and suggestions. Static functions only; they read files.
 *
 * <p>Each unknown field and each unknown value of an enum is a separate problem. Any other problem ends the search, as
 * it ends the parser.
 */
public final class ConfigDiagnosis {
    private static final Pattern UNKNOWN_FIELD = Pattern.compile("(\\d+):(\\d+):\\s+([\\w.]+)\\.(\\[?[^\\s]+)");
    private static final String UNKNOWN_FIELDS = "unknown fields and/or extensions";
    private static final int MAX_PROBLEMS = 100;

    /** The maximum number of unknown values: the text is parsed again after each. */
    private static final int MAX_VALUES = 10;

    /** The maximum number of problems in a reason. */
    private static final int MAX_DESCRIBED = 5;

    private static final int MAX_LINE = 160;
    private static final int MAX_MESSAGE = 2000;

    /** The characters of a long line that are shown before the position of a problem. */
    private static final int BEFORE = 80;

    private ConfigDiagnosis() {}

    /**
     * Finds the problems of a file.
     *
     * @param file a file, which need not be a regular one, but must not be a pipe
     * @return the problems in the order of the text; empty if the file is a configuration
     */
    public static List<ConfigProblem> ofFile(Path file) {
        byte[] content;
        try {
            content = ModelConfigReader.bytes(file);
        } catch (IOException e) {
            return List.of(ConfigProblem.of(ModelConfigReader.unreadable(e)));
        }
        Decoded decoded = decode(content);
        return decoded.problem().map(List::of).orElseGet(() -> ofText(decoded.text()));
    }

    /**
     * The text of a file. Immutable.
     *
     * @param text the text, up to the first problem
     * @param problem the first byte that is no UTF-8
     */
    record Decoded(String text, Optional<ConfigProblem> problem) {}

    static Decoded decode(byte[] content) {
        CharBuffer text = CharBuffer.allocate(content.length);
        ByteBuffer bytes = ByteBuffer.wrap(content);
        CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
        boolean isText = !decoder.decode(bytes, text, true).isError();
        String decoded = text.flip().toString();
        return new Decoded(decoded, isText ? Optional.empty() : Optional.of(notText(decoded, bytes)));
    }

    /**
     * Finds the problems of a text.
     *
     * @param text a configuration in protobuf's text format
     * @return the problems in the order of the text; empty if the text is a configuration
     */
    public static List<ConfigProblem> ofText(String text) {
        String original = ModelConfigReader.withoutMark(text);
        String remaining = original;
        List<ConfigProblem> problems = new ArrayList<>();
        for (int i = 0; i <= MAX_VALUES; i++) {
            Optional<TextFormatError> error = parse(remaining);
            if (error.isEmpty()) {
                break;
            }
            Optional<String> corrected =
                    i < MAX_VALUES ? withoutUnknownValue(error.get(), remaining) : Optional.empty();
            problems.addAll(problems(error.get(), original));
            if (corrected.isEmpty()) {
                break;
            }
            remaining = corrected.get();
        }
        problems.sort(Comparator.comparingInt(ConfigProblem::line).thenComparingInt(ConfigProblem::column));
        return List.copyOf(problems);
    }

    /**
     * Describes the problems of a text in one line, as the reason of its model.
     *
     * @param problems the problems, at least one
     * @return the first problems with positions and suggestions, and the number of the others if all were found
     */
    static String describe(List<ConfigProblem> problems) {
        String first = problems.stream()
                .limit(MAX_DESCRIBED)
                .map(ConfigProblem::describe)
                .collect(Collectors.joining("; "));
        if (problems.size() >= MAX_PROBLEMS) { // the search ended
            return first + "; and more";
        }
        int others = problems.size() - MAX_DESCRIBED;
        return others > 0 ? first + "; and " + others + " more" : first;
    }

    private static Optional<TextFormatError> parse(String text) {
        try {
            ModelConfigReader.parse(text);
            return Optional.empty();
        } catch (TextFormat.ParseException e) {
            return Optional.of(new TextFormatError(e, text));
        }
    }

    /**
     * Replaces an unknown value of an enum by a number of the same length, so that the parser continues behind it.
     * Empty if the error is of another kind.
     */
    private static Optional<String> withoutUnknownValue(TextFormatError error, String text) {
        Matcher value = TextFormatError.UNKNOWN_ENUM_VALUE.matcher(error.problem());
        if (!value.find()) {
            return Optional.empty();
        }
        int start = 0;
        for (int line = 1; line < error.line(); line++) {
            start = text.indexOf('\n', start) + 1;
        }
        start += error.column() - 1;
        String name = value.group(2);
        return text.startsWith(name, start)
                ? Optional.of(text.substring(0, start) + "0" + " ".repeat(name.length() - 1)
                        + text.substring(start + name.length()))
                : Optional.empty();
    }

    private static List<ConfigProblem> problems(TextFormatError error, String text) {
        if (!error.problem().contains(UNKNOWN_FIELDS)) {
            Matcher value = TextFormatError.UNKNOWN_ENUM_VALUE.matcher(error.problem());
            String suggestion = value.find()
                    ? Spelling.closest(value.group(2), FieldNames.ofEnum(value.group(1)))
                            .orElse("")
                    : "";
            return List.of(problem(text, error.line(), error.column(), error.explain(), suggestion));
        }
        List<ConfigProblem> problems = new ArrayList<>();
        Matcher found = UNKNOWN_FIELD.matcher(error.problem());
        while (found.find() && problems.size() < MAX_PROBLEMS) {
            int line = Integer.parseInt(found.group(1));
            int column = Integer.parseInt(found.group(2));
            problems.add(problem(
                    text,
                    line,
                    column,
                    TextFormatError.unknownField(found.group(3), found.group(4)),
                    field(found.group(3), found.group(4)).orElse("")));
        }
        return problems.isEmpty()
                ? List.of(problem(text, error.line(), error.column(), error.explain(), ""))
                : problems;
    }

    /** Finds a similar field of the message, or where in a configuration there is a field of this name. */
    private static Optional<String> field(String message, String field) {
        return Spelling.closest(field, FieldNames.ofMessage(message)).or(() -> FieldNames.path(field));
    }

    private static ConfigProblem notText(String before, ByteBuffer rest) {
        int line = (int) before.chars().filter(c -> c == '\n').count() + 1;
        int column = before.length() - before.lastIndexOf('\n');
        String found = "byte 0x%02x is no UTF-8 (expected: UTF-8 text)"
                .formatted(Byte.toUnsignedInt(rest.get(rest.position())));
        return problem(before, line, column, found, "");
    }

    /** Creates a problem with its line, which is cut around the position if it is long. */
    private static ConfigProblem problem(String text, int line, int column, String message, String suggestion) {
        String whole = text.lines().skip(line - 1L).findFirst().orElse("");
        int position = Math.min(column - 1, whole.length());
        int start = whole.length() <= MAX_LINE ? 0 : Math.max(0, position - BEFORE);
        String cut = whole.substring(start, Math.min(whole.length(), start + MAX_LINE));
        String template = Placeholders.hint(cut, position - start);
        return new ConfigProblem(
                line,
                column,
                printable(message, MAX_MESSAGE) + template,
                template.isEmpty() ? suggestion : "",
                printable(cut, MAX_LINE),
                position - start);
    }

    /** Cuts a text, and replaces control characters; without a regular expression, as it is done often. */
    private static String printable(String text, int length) {
        StringBuilder printable = new StringBuilder();
        text.codePoints()
                .limit(length)
                .map(c -> Character.isISOControl(c) || Character.getType(c) == Character.FORMAT ? ' ' : c)
                .forEach(printable::appendCodePoint);
        return printable.toString();
    }
}
