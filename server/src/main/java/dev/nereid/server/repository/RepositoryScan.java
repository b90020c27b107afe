package dev.nereid.server.repository;

import java.util.List;
import java.util.Set;

/**
 * The models in a repository at one moment. Immutable.
 *
 * @param models the models with unique names, by name
 * @param duplicates the names that appear in more than one directory, none of which can be served
 */
public record RepositoryScan(List<ModelDirectory> models, Set<String> duplicates) {
    public RepositoryScan {
        models = List.copyOf(models);
        duplicates = Set.copyOf(duplicates);
    }
}
