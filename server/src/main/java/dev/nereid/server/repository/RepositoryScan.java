package dev.nereid.server.repository;

import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The models in a repository at one moment. Immutable.
 *
 * @param models the models with unique keys, by key. Those of a repository that cannot be reached are those that
 *     it had when it was last listed
 * @param duplicates the names that appear in more than one directory, none of which can be served
 * @param unreachable the reasons why repositories cannot be listed, by their directories or URLs
 */
public record RepositoryScan(List<ModelLocation> models, Set<String> duplicates, Map<String, String> unreachable) {
    public RepositoryScan {
        models = List.copyOf(models);
        duplicates = Set.copyOf(duplicates);
        unreachable = Map.copyOf(unreachable);
    }
}
