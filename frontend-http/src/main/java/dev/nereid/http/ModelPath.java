package dev.nereid.http;

import dev.nereid.api.ModelRef;
import java.util.Optional;

/**
 * A path below {@code /v2/models/}, taken apart as it was sent: nothing is decoded. Immutable.
 *
 * @param model the model's name
 * @param version the digits of a version, {@code latest}, or nothing
 * @param verb what is asked of the model, for instance {@code infer}; empty for its metadata
 */
record ModelPath(String model, String version, String verb) {
    private static final String MODELS = "/v2/models/";
    private static final String VERSIONS = "versions/";
    /** Means the same as no version; some clients send it always. */
    private static final String LATEST = "latest";

    /** Takes a path apart, if it is one of a model. */
    static Optional<ModelPath> parse(String path) {
        if (!path.startsWith(MODELS)) {
            return Optional.empty();
        }
        int slash = path.indexOf('/', MODELS.length());
        String model = path.substring(MODELS.length(), slash < 0 ? path.length() : slash);
        if (model.isEmpty()) {
            return Optional.empty();
        } else if (slash < 0) {
            return Optional.of(new ModelPath(model, "", ""));
        }
        int rest = slash + 1;
        if (!path.startsWith(VERSIONS, rest)) {
            return verb(model, "", path.substring(rest));
        }
        int versionStart = rest + VERSIONS.length();
        int end = path.indexOf('/', versionStart);
        String version = path.substring(versionStart, end < 0 ? path.length() : end);
        if (!isVersion(version)) {
            return Optional.empty();
        }
        return end < 0 ? Optional.of(new ModelPath(model, version, "")) : verb(model, version, path.substring(end + 1));
    }

    /** Returns the model that the path names; a number too large for a version is an error. */
    ModelRef ref() {
        return version.equals(LATEST) ? ModelRef.latest(model) : ModelRef.parse(model, version);
    }

    private static Optional<ModelPath> verb(String model, String version, String verb) {
        return verb.isEmpty() ? Optional.empty() : Optional.of(new ModelPath(model, version, verb));
    }

    private static boolean isVersion(String text) {
        return text.equals(LATEST) || (!text.isEmpty() && text.chars().allMatch(c -> c >= '0' && c <= '9'));
    }
}
