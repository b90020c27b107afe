package dev.nereid.http.control;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A raw path below {@code /v2/repository}, split into its parts. Immutable.
 *
 * @param repository the name of a repository, which no request may have; empty for none
 * @param model the name of a model; empty for the index
 * @param verb what is asked
 */
public record RepositoryPath(String repository, String model, Verb verb) {
    private static final Pattern PATH =
            Pattern.compile("/v2/repository(?:/([^/]+))?/(?:(index)|models/([^/]+)/(load|unload))");
    private static final int REPOSITORY = 1;
    private static final int INDEX = 2;
    private static final int MODEL = 3;
    private static final int VERB = 4;

    /** Operations of the model repository. */
    enum Verb {
        INDEX,
        LOAD,
        UNLOAD
    }

    /** Takes a path apart, if it is one of a repository. */
    public static Optional<RepositoryPath> parse(String path) {
        Matcher match = PATH.matcher(path);
        if (!match.matches()) {
            return Optional.empty();
        }
        String repository = text(match.group(REPOSITORY));
        if (match.group(INDEX) != null) {
            return Optional.of(new RepositoryPath(repository, "", Verb.INDEX));
        }
        Verb verb = text(match.group(VERB)).equals("load") ? Verb.LOAD : Verb.UNLOAD;
        return Optional.of(new RepositoryPath(repository, text(match.group(MODEL)), verb));
    }

    private static String text(String group) {
        return group == null ? "" : group;
    }
}
