package dev.nereid.repository.storage;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Options of remote model repositories. Immutable.
 *
 * @param urls the URLs of the repositories, of which one that is given twice counts once, with a slash at its end
 *     or without; their schemes name plugins
 * @param plugins the directories of storage plugins, in the order of their precedence, for the opener of storages; missing
 *     ones are skipped
 * @param environment the environment variables that storages read, for their opener
 * @param copies the directory of local copies, created when first needed; a storage may be configured for another one
 * @param limits how large models and listings may be
 */
public record StorageOptions(
        List<String> urls, List<Path> plugins, Map<String, String> environment, Path copies, StorageLimits limits) {
    /** No remote repository. */
    public static final StorageOptions NONE =
            new StorageOptions(List.of(), List.of(), Map.of(), Path.of(""), StorageLimits.DEFAULT);

    /**
     * Copies the components.
     *
     * @throws IllegalArgumentException if there are repositories and no directory for their copies
     */
    public StorageOptions {
        urls = distinct(urls);
        plugins = List.copyOf(plugins);
        environment = Map.copyOf(environment);
        if (!urls.isEmpty() && copies.toString().isEmpty()) {
            throw new IllegalArgumentException("copies: empty (expected: a directory for copies of " + urls + ")");
        }
    }

    private static List<String> distinct(List<String> urls) {
        Map<String, String> distinct = new LinkedHashMap<>();
        urls.forEach(url -> distinct.putIfAbsent(url.replaceFirst("/+$", ""), url));
        return List.copyOf(distinct.values());
    }

    /** Never shows the environment, which may hold credentials. */
    @Override
    public String toString() {
        return urls.toString();
    }
}
