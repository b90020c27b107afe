package dev.nereid.http;

import java.util.Optional;

/**
 * A raw, undecoded path below {@code /v2/models/}, split into its parts. Immutable.
 *
 * @param model the model's name
 * @param version the digits of a version; empty for the latest
 * @param verb the rest of the path, such as {@code infer}; empty for the model's metadata
 */
record ModelPath(String model, String version, String verb) {
    private static final String MODELS = "/v2/models/";
    private static final String VERSIONS = "versions/";
    /** Equivalent to no version; some clients always send it. */
    private static final String LATEST = "latest";

    /** Parses a path; empty if it is not one of a model. */
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
        String number = version.equals(LATEST) ? "" : version;
        return end < 0 ? Optional.of(new ModelPath(model, number, "")) : verb(model, number, path.substring(end + 1));
    }

    private static Optional<ModelPath> verb(String model, String version, String verb) {
        return verb.isEmpty() ? Optional.empty() : Optional.of(new ModelPath(model, version, verb));
    }

    private static boolean isVersion(String text) {
        return text.equals(LATEST) || (!text.isEmpty() && text.chars().allMatch(c -> c >= '0' && c <= '9'));
    }
}
