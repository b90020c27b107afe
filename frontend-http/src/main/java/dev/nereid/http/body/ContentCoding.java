package dev.nereid.http.body;

import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Content codings of HTTP bodies: identity, gzip and deflate. */
public enum ContentCoding {
    /** No coding. */
    IDENTITY("identity"),
    /** A gzip file, RFC 1952. */
    GZIP("gzip"),
    /** A zlib stream, RFC 1950. */
    DEFLATE("deflate");

    private final String token;

    ContentCoding(String token) {
        this.token = token;
    }

    String token() {
        return token;
    }

    /** Returns the coding of a request's body by its {@code Content-Encoding}; empty if it is unsupported. */
    public static Optional<ContentCoding> ofBody(@Nullable String header) {
        return header == null || header.isEmpty() ? Optional.of(IDENTITY) : named(header);
    }

    /**
     * Chooses the coding of a response by the {@code Accept-Encoding} of its request: the supported coding with the
     * highest weight, the first of several; a weight of 0 excludes one.
     */
    public static ContentCoding forResponse(@Nullable String header) {
        ContentCoding best = IDENTITY;
        if (header == null) {
            return best;
        }
        double bestWeight = 0;
        for (String choice : header.split(",", -1)) {
            int semicolon = choice.indexOf(';');
            String name = (semicolon < 0 ? choice : choice.substring(0, semicolon)).strip();
            double weight = semicolon < 0 ? 1 : weight(choice.substring(semicolon + 1));
            Optional<ContentCoding> coding = named(name.toLowerCase(Locale.ROOT));
            if (coding.isPresent() && weight > bestWeight) {
                best = coding.get();
                bestWeight = weight;
            }
        }
        return best;
    }

    private static Optional<ContentCoding> named(String name) {
        return switch (name) {
            case "identity" -> Optional.of(IDENTITY);
            case "gzip" -> Optional.of(GZIP);
            case "deflate" -> Optional.of(DEFLATE);
            default -> Optional.empty();
        };
    }

    /** Parses {@code q=0.5}; returns 0 for anything malformed. */
    private static double weight(String parameter) {
        String text = parameter.strip();
        if (!text.startsWith("q=")) {
            return 0;
        }
        try {
            return Double.parseDouble(text.substring(2));
        } catch (NumberFormatException e) {
            return 0;
        }
    }
}
