package dev.nereid.server;

import static java.util.Objects.requireNonNull;

import com.google.protobuf.RuntimeVersion;
import inference.ModelConfigProto;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Checks that an embedding program has libraries that are recent enough. Static functions only.
 *
 * <p>Frameworks manage the version of protobuf, often an older one than the server is built with.
 */
final class LibraryVersions {
    /** The text of {@link RuntimeVersion.ProtobufRuntimeVersionException}. */
    private static final Pattern VERSIONS = Pattern.compile("gencode ([\\w.-]+), runtime ([\\w.-]+[\\w])");

    private static final String CURE = "; import nereid-bom before other BOMs, or set the version)";

    private LibraryVersions() {}

    /**
     * Checks the version of protobuf.
     *
     * @throws IllegalStateException if it is too old
     */
    static void check() {
        check(() -> ModelConfigProto.getDescriptor()); // a method reference would load the class outside of the check
    }

    /** Checks the version of protobuf by a use of generated code. */
    static void check(Supplier<?> use) {
        try {
            requireNonNull(use.get(), "descriptor");
        } catch (LinkageError e) {
            throw new IllegalStateException(message(e), e);
        }
    }

    private static String message(LinkageError failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            Matcher versions = VERSIONS.matcher(String.valueOf(cause.getMessage()));
            if (versions.find()) {
                return "protobuf-java: " + versions.group(2) + " (expected: " + versions.group(1) + " or later" + CURE;
            }
        }
        return "protobuf-java: absent, or older than 4.26 (expected: that of nereid-bom" + CURE + ": " + failure;
    }
}
