package dev.nereid.repository.config;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.TextFormat;
import inference.ModelConfig;
import inference.ModelConfigProto;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Describes an error of the text-format parser in one line, with position and expectation. Immutable.
 *
 * <p>The parser's own messages mix several styles, some of two lines and some without the expectation; whatever is not
 * recognized here is passed on in the parser's words.
 */
final class TextFormatError {
    private static final Pattern POSITION = Pattern.compile("^\\d+:\\d+: ");
    private static final Pattern UNKNOWN_FIELD =
            Pattern.compile("unknown fields and/or extensions:\\s+\\d+:\\d+:\\s+([\\w.]+)\\.(\\[?[^\\s]+)");
    static final Pattern UNKNOWN_ENUM_VALUE =
            Pattern.compile("Enum type \"([\\w.]+)\" has no value (?:named|with number) \"?([^\"]+?)\"?\\.$");
    private static final Pattern TWICE = Pattern.compile("Non-repeated field \"[\\w.]+?(\\w+)\" cannot be overwritten");
    private static final Pattern ONEOF =
            Pattern.compile("Field \"[\\w.]+?(\\w+)\" is specified along with field \"[\\w.]+?(\\w+)\"");
    private static final Pattern INTEGER_RANGE = Pattern.compile("Number out of range for ([\\w-]+ \\w+ integer)");
    private static final Pattern EXPECTED = Pattern.compile("^Expected (.+?)\\.(?: Found .*)?$", Pattern.DOTALL);
    private static final Pattern TOKEN = Pattern.compile("\"[^\"]*\"?|'[^']*'?|[^\\s\\[\\]{}<>,;:#\"']+|\\S");

    private final int line;
    private final int column;
    private final String problem;

    /** The text at the position: a token, or which end. */
    private final String found;

    /** The same for messages: a token in quotes. */
    private final String token;

    TextFormatError(TextFormat.ParseException error, String text) {
        line = error.getLine();
        column = error.getColumn();
        problem = POSITION.matcher(String.valueOf(error.getMessage())).replaceFirst("");
        Optional<String> here = tokenAt(text);
        found = here.orElseGet(() -> end(text));
        token = here.map(TextFormatError::quoted).orElse(found);
    }

    /** Returns the line, from 1. */
    int line() {
        return line;
    }

    /** Returns the column, from 1. */
    int column() {
        return column;
    }

    /** Returns the parser's own words without the position. */
    String problem() {
        return problem;
    }

    /** Returns {@code <found> (expected: <expected>)}. */
    String explain() {
        return unknownField()
                .or(this::unknownEnumValue)
                .or(this::givenTwice)
                .or(this::nestedTooDeep)
                .or(this::noInteger)
                .or(this::unexpectedToken)
                .orElseGet(() -> problem.replaceAll("\\s+", " "));
    }

    private Optional<String> unknownField() {
        Matcher found = UNKNOWN_FIELD.matcher(problem);
        if (!found.find()) {
            return Optional.empty();
        }
        return Optional.of(unknownField(found.group(1), found.group(2)));
    }

    private Optional<String> unknownEnumValue() {
        Matcher found = UNKNOWN_ENUM_VALUE.matcher(problem);
        if (!found.find()) {
            return Optional.empty();
        }
        String values = list(FieldNames.ofEnum(found.group(1)), "a value of " + FieldNames.simple(found.group(1)));
        return Optional.of("unknown value '" + found.group(2) + "' (expected: " + values + ")");
    }

    /** Describes a field that a message does not have. */
    static String unknownField(String message, String field) {
        String simple = FieldNames.simple(message);
        return "unknown field '" + field + "' in " + simple + " (expected: "
                + list(FieldNames.ofMessage(message), "a field of " + simple) + ")";
    }

    private static String list(List<String> names, String otherwise) {
        return names.isEmpty() ? otherwise : String.join(", ", names);
    }

    private Optional<String> givenTwice() {
        Matcher twice = TWICE.matcher(problem);
        if (twice.find()) {
            return Optional.of("field '" + twice.group(1) + "' is given twice (expected: at most once)");
        }
        Matcher oneof = ONEOF.matcher(problem);
        if (oneof.find()) {
            return Optional.of("field '" + oneof.group(1) + "' is given beside '" + oneof.group(2)
                    + "' (expected: at most one of the two)");
        }
        return Optional.empty();
    }

    private Optional<String> nestedTooDeep() {
        return problem.startsWith("Message is nested too deep")
                ? Optional.of(
                        "messages are nested too deep (expected: at most " + ModelConfigReader.MAX_DEPTH + " levels)")
                : Optional.empty();
    }

    /** Describes a value that is no integer of its field, first in the words of the reference server's parser. */
    private Optional<String> noInteger() {
        Matcher range = INTEGER_RANGE.matcher(problem);
        if (range.find()) {
            return Optional.of("Integer out of range (" + found + ") (expected: a " + range.group(1) + ")");
        }
        Matcher plain = EXPECTED.matcher(problem);
        String expected;
        if (problem.contains("Number must be positive")) {
            expected = "an integer of 0 or more";
        } else if (problem.startsWith("Couldn't parse integer")
                || (plain.find() && plain.group(1).equals("integer"))) {
            expected = "an integer";
        } else {
            return Optional.empty();
        }
        return Optional.of("Expected integer, got: " + found + " (expected: " + expected + ")");
    }

    private Optional<String> unexpectedToken() {
        String expected;
        Matcher plain = EXPECTED.matcher(problem);
        if (problem.startsWith("Couldn't parse number")) {
            expected = "a number";
        } else if (problem.startsWith("String missing ending quote")) {
            expected = "a string that ends on the same line with the quote it starts with";
        } else if (plain.find()) {
            expected = plain.group(1)
                    .replace("identifier", "a name")
                    .replace("string", "a string")
                    .replace('"', '\'');
        } else {
            return Optional.empty();
        }
        return Optional.of("found " + token + " (expected: " + expected + ")");
    }

    /** Finds the token at the position; empty at the end of a line or of the file. */
    private Optional<String> tokenAt(String text) {
        String here = text.lines().skip(line - 1L).findFirst().orElse("");
        String rest = here.substring(Math.min(column - 1, here.length()));
        Matcher next = TOKEN.matcher(rest);
        return !rest.isEmpty() && next.lookingAt() ? Optional.of(next.group()) : Optional.empty();
    }

    private String end(String text) {
        return line >= text.lines().count() ? "the end of the file" : "the end of the line";
    }

    private static String quoted(String token) {
        String quote = token.startsWith("'") ? "\"" : "'";
        return quote + token + quote;
    }

    /** Names of the fields and enum values of model configurations. Static functions only. */
    static final class FieldNames {
        /** The fields of each message. A text may have any number of unknown fields, so they are not listed for each. */
        private static final Map<String, List<String>> FIELDS =
                fields(ModelConfigProto.getDescriptor().getMessageTypes());

        /** The shortest path to a field of each name. */
        private static final Map<String, String> PATHS = paths();

        private FieldNames() {}

        /** Returns the fields of a message; empty if there is no such message. */
        static List<String> ofMessage(String fullName) {
            return FIELDS.getOrDefault(fullName, List.of());
        }

        /** Returns the values of an enum; empty if there is no such enum. */
        static List<String> ofEnum(String fullName) {
            return enumType(fullName)
                    .map(type -> type.getValues().stream()
                            .map(EnumValueDescriptor::getName)
                            .toList())
                    .orElse(List.of());
        }

        /** Returns a name without the names of its package and of the messages around it. */
        static String simple(String fullName) {
            return fullName.substring(fullName.lastIndexOf('.') + 1);
        }

        /** Finds the shortest path from the top of a configuration to a field: {@code dynamic_batching.priority_levels}. */
        static Optional<String> path(String field) {
            return Optional.ofNullable(PATHS.get(field));
        }

        private static Map<String, List<String>> fields(List<Descriptor> types) {
            Map<String, List<String>> fields = new HashMap<>();
            for (Descriptor type : types) {
                fields.put(
                        type.getFullName(),
                        type.getFields().stream().map(FieldDescriptor::getName).toList());
                fields.putAll(fields(type.getNestedTypes()));
            }
            return Map.copyOf(fields);
        }

        private static Map<String, String> paths() {
            record Step(Descriptor type, String path) {}
            Map<String, String> paths = new HashMap<>();
            Deque<Step> steps = new ArrayDeque<>(List.of(new Step(ModelConfig.getDescriptor(), "")));
            Set<Descriptor> visited = new HashSet<>();
            while (!steps.isEmpty()) {
                Step step = steps.remove();
                for (FieldDescriptor field : step.type().getFields()) {
                    String path = step.path() + field.getName();
                    paths.putIfAbsent(field.getName(), path);
                    if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE
                            && visited.add(field.getMessageType())) {
                        steps.add(new Step(field.getMessageType(), path + "."));
                    }
                }
            }
            return Map.copyOf(paths);
        }

        private static Optional<Descriptor> message(String fullName) {
            return find(ModelConfigProto.getDescriptor().getMessageTypes(), fullName);
        }

        private static Optional<Descriptor> find(List<Descriptor> types, String fullName) {
            for (Descriptor type : types) {
                Optional<Descriptor> found =
                        type.getFullName().equals(fullName) ? Optional.of(type) : find(type.getNestedTypes(), fullName);
                if (found.isPresent()) {
                    return found;
                }
            }
            return Optional.empty();
        }

        private static Optional<EnumDescriptor> enumType(String fullName) {
            List<EnumDescriptor> types = ModelConfigProto.getDescriptor().getEnumTypes();
            int cut = fullName.lastIndexOf('.');
            List<EnumDescriptor> nested = message(fullName.substring(0, Math.max(cut, 0)))
                    .map(Descriptor::getEnumTypes)
                    .orElse(types);
            return nested.stream()
                    .filter(type -> type.getFullName().equals(fullName))
                    .findFirst();
        }
    }
}
