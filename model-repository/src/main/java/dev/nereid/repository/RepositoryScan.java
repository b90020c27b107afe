package dev.nereid.repository;

import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The models in a repository at one moment. Immutable.
 *
 * @param models the models with unique keys, by key. A repository that cannot be reached has the models of its last
 *     listing
 * @param duplicates the names that appear in more than one directory; none of them can be served
 * @param unreachable the reasons why repositories cannot be listed, by their directories or URLs
 */
public record RepositoryScan(List<ModelLocation> models, Set<String> duplicates, Map<String, String> unreachable) {
    public RepositoryScan {
        models = List.copyOf(models);
        duplicates = Set.copyOf(duplicates);
        unreachable = Map.copyOf(unreachable);
    }
}
