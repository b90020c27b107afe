package dev.nereid.repository.config;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.MapEntry;
import com.google.protobuf.Message;
import dev.nereid.api.Quoted;
import inference.ModelConfig;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Finds placeholders of templates that were not filled in. They are <code>${name}</code>, <code>{{ name }}</code> and
 * {@code <name>}. Static functions only.
 */
public final class Placeholders {
    private static final String FINDING = "looks like a template that was not filled in";
    private static final Pattern BRACKETED = Pattern.compile("\\s*<\\s*[\\p{L}_][\\w .-]{0,200}>");

    /** A value in the error message of a JSON text. */
    private static final Pattern QUOTED = Pattern.compile("\"\\s*<\\s*[\\p{L}_][\\w .-]{0,200}>\\s*\"");

    /** The field for values of backends, which may be special tokens such as {@code <pad>}, or templates of chats. */
    private static final String PARAMETERS = "parameters";

    /** The maximum length of a placeholder's name. */
    private static final int MAX_LENGTH = 200;

    /** The maximum number of fields that are listed. */
    private static final int MAX_FIELDS = 10;

    private Placeholders() {}

    /**
     * Finds out whether a line of a configuration has a placeholder where it is wrong. Angle brackets elsewhere may
     * belong to a message.
     *
     * @param line the line, or the part of a long one around the problem
     * @param position the position of the problem in it
     * @return the end of the problem's message; empty if there is none
     */
    static String hint(String line, int position) {
        boolean isBracketed = BRACKETED
                .matcher(line.substring(Math.min(position, line.length())))
                .lookingAt();
        return isBracketed || isMarked(line) ? "; " + FINDING : "";
    }

    /** Returns the end of an error message about a value, which the message repeats; empty without a placeholder. */
    static String hint(String message) {
        return isMarked(message) || QUOTED.matcher(message).find() ? "; " + FINDING : "";
    }

    /** Returns a hint for errors of a model: the first field with a placeholder. Empty if there is none. */
    public static String hint(ModelConfig config) {
        return of(config).stream().findFirst().map(field -> "; " + field).orElse("");
    }

    /** Lists the first fields that have placeholders, with their values. */
    public static List<String> of(ModelConfig config) {
        List<String> found = new ArrayList<>();
        find("", config, found);
        return found;
    }

    private static boolean isMarked(String text) {
        return has(text, "${", "}") || has(text, "{{", "}}");
    }

    /** Searches without a regular expression, since each problem of a text has its line searched. */
    private static boolean has(String text, String opening, String closing) {
        for (int at = text.indexOf(opening); at >= 0; at = text.indexOf(opening, at + 1)) {
            int end = at + opening.length();
            int last = Math.min(text.length(), end + MAX_LENGTH);
            while (end < last && "{}\n".indexOf(text.charAt(end)) < 0) {
                end++;
            }
            if (text.startsWith(closing, end)) {
                return true;
            }
        }
        return false;
    }

    /** As deep as configurations are. */
    private static void find(String path, Message message, List<String> found) {
        for (Map.Entry<FieldDescriptor, Object> field : message.getAllFields().entrySet()) {
            String name = path.isEmpty()
                    ? field.getKey().getName()
                    : path + "." + field.getKey().getName();
            Collection<?> values = field.getValue() instanceof Collection<?> many ? many : List.of(field.getValue());
            for (Object value : values) {
                if (found.size() == MAX_FIELDS) {
                    return;
                }
                if (value instanceof MapEntry<?, ?> entry) {
                    findInEntry(name, entry, found);
                } else {
                    findInValue(name, value, found);
                }
            }
        }
    }

    private static void findInEntry(String name, MapEntry<?, ?> entry, List<String> found) {
        findInValue(name, entry.getKey(), found);
        findInValue(name + "['" + Quoted.text(String.valueOf(entry.getKey())) + "']", entry.getValue(), found);
    }

    private static void findInValue(String name, Object value, List<String> found) {
        if (value instanceof Message message) {
            find(name, message, found);
        } else if (value instanceof String text) {
            describe(name, text).ifPresent(found::add);
        }
    }

    private static Optional<String> describe(String name, String text) {
        boolean isFound = name.startsWith(PARAMETERS)
                ? has(text, "${", "}")
                : isMarked(text) || BRACKETED.matcher(text).matches();
        return isFound ? Optional.of(name + ": '" + Quoted.text(text) + "' " + FINDING) : Optional.empty();
    }
}
