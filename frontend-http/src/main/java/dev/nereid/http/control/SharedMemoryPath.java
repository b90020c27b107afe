package dev.nereid.http.control;

import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A raw path of shared memory, split into its parts. Immutable.
 *
 * @param isCuda whether the memory is that of a graphics processor
 * @param region the name of a region; empty for all
 * @param verb what is asked
 */
public record SharedMemoryPath(boolean isCuda, String region, Verb verb) {
    private static final Pattern PATH =
            Pattern.compile("/v2/(system|cuda)sharedmemory(?:/region/([^/]+))?/(status|register|unregister)");
    private static final int KIND = 1;
    private static final int REGION = 2;
    private static final int VERB = 3;

    /** Operations on shared memory. */
    public enum Verb {
        STATUS,
        REGISTER,
        UNREGISTER
    }

    /** Takes a path apart, if it is one of shared memory. */
    public static Optional<SharedMemoryPath> parse(String path) {
        Matcher match = PATH.matcher(path);
        if (!match.matches()) {
            return Optional.empty();
        }
        String region = match.group(REGION);
        return Optional.of(new SharedMemoryPath(
                "cuda".equals(match.group(KIND)),
                region == null ? "" : region,
                Verb.valueOf(String.valueOf(match.group(VERB)).toUpperCase(Locale.ROOT))));
    }
}
