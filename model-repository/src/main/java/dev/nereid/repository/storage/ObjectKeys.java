package dev.nereid.repository.storage;

import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * Rules of object keys that become paths of files. Static functions only.
 *
 * <p>A key comes from outside. It is used as a path only if every name in it is one plain name of a file, so that no
 * file outside of a model's directory can be meant.
 */
final class ObjectKeys {
    /** The bounds of file systems for a name, and of S3 for a key. */
    private static final int MAX_NAME_BYTES = 255;

    private static final int MAX_KEY_BYTES = 1024;
    private static final int MAX_NAMES = 32;

    private ObjectKeys() {}

    /** Returns whether a key names a directory. */
    static boolean isDirectory(String key) {
        return key.endsWith("/");
    }

    /** Returns the part of a key before the first slash; empty for an object outside of directories. */
    static Optional<String> model(String key) {
        int slash = key.indexOf('/');
        return slash < 0 ? Optional.empty() : Optional.of(key.substring(0, slash));
    }

    /**
     * Describes the mistake in a key, as a text for errors; empty for a key that can be used.
     *
     * @param key the path of a file, or of a directory with a slash at its end
     */
    static Optional<String> violation(String key) {
        if (bytes(key) > MAX_KEY_BYTES) {
            return Optional.of("longer than " + MAX_KEY_BYTES + " bytes");
        }
        String path = isDirectory(key) ? key.substring(0, key.length() - 1) : key;
        String[] names = path.split("/", -1);
        if (names.length > MAX_NAMES) {
            return Optional.of("more than " + MAX_NAMES + " names");
        }
        for (String name : names) {
            Optional<String> wrong = nameViolation(name);
            if (wrong.isPresent()) {
                return wrong;
            }
        }
        return Optional.empty();
    }

    /** Describes the mistake in one name of a key; empty for a name that can be used. */
    static Optional<String> nameViolation(String name) {
        if (name.isEmpty()) {
            return Optional.of("an empty name");
        }
        if (name.equals(".") || name.equals("..")) {
            return Optional.of("the name '" + name + "'");
        }
        if (bytes(name) > MAX_NAME_BYTES) {
            return Optional.of("a name longer than " + MAX_NAME_BYTES + " bytes");
        }
        if (name.codePoints().anyMatch(character -> character == '/' || isForbidden(character))) {
            return Optional.of("a control character, a backslash or an unpaired surrogate");
        }
        return Optional.empty();
    }

    /** Returns a key for logs and errors: on one line, and of limited length. */
    static String printable(String key) {
        StringBuilder text = new StringBuilder();
        key.codePoints()
                .limit(MAX_NAME_BYTES)
                .forEach(character -> text.appendCodePoint(isPrintable(character) ? character : '?'));
        return text.append(key.codePointCount(0, key.length()) > MAX_NAME_BYTES ? "…" : "")
                .toString();
    }

    /** Characters of these types would break a line or change the direction of a log. */
    private static boolean isPrintable(int character) {
        return switch (Character.getType(character)) {
            case Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR, Character.FORMAT -> false;
            default -> !isForbidden(character);
        };
    }

    private static boolean isForbidden(int character) {
        return Character.isISOControl(character)
                || character == '\\'
                || (character >= Character.MIN_SURROGATE && character <= Character.MAX_SURROGATE);
    }

    private static int bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }
}
