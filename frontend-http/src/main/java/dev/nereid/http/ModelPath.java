package dev.nereid.http;

import java.util.Optional;

/**
 * A raw, undecoded path below {@code /v2/models/}, split into its parts. Immutable.
 *
 * @param model the model's name
 * @param version the digits of a version, or nothing for the latest
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
        String given = path.substring(versionStart, end < 0 ? path.length() : end);
        if (!isVersion(given)) {
            return Optional.empty();
        }
        String version = given.equals(LATEST) ? "" : given;
        return end < 0 ? Optional.of(new ModelPath(model, version, "")) : verb(model, version, path.substring(end + 1));
    }

    private static Optional<ModelPath> verb(String model, String version, String verb) {
        return verb.isEmpty() ? Optional.empty() : Optional.of(new ModelPath(model, version, verb));
    }

    private static boolean isVersion(String text) {
        return text.equals(LATEST) || (!text.isEmpty() && text.chars().allMatch(c -> c >= '0' && c <= '9'));
    }
}
