package dev.nereid.plugin.cache;

import static java.util.Objects.requireNonNull;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Response cache options: name, settings, plugin directories and environment variables. Immutable.
 *
 * @param name the cache's name: {@value #LOCAL} for the cache in the server's memory, or the name of a plugin
 * @param settings its settings by name; {@value #LOCAL} needs {@value #SIZE}, in bytes
 * @param directories the directories of plugins with caches, in the order of their precedence; missing ones are skipped
 * @param environment the environment variables that a plugin sees
 */
public record CacheOptions(
        String name, Map<String, String> settings, List<Path> directories, Map<String, String> environment) {
    /** The cache in the server's own memory. */
    public static final String LOCAL = "local";

    /** The capacity of a local cache, in bytes. */
    public static final String SIZE = "size";

    public CacheOptions {
        requireNonNull(name, "name");
        settings = Map.copyOf(settings);
        directories = List.copyOf(directories);
        environment = Map.copyOf(environment);
    }

    /** Asks for a cache that sees no environment variables. */
    public CacheOptions(String name, Map<String, String> settings, List<Path> directories) {
        this(name, settings, directories, Map.of());
    }

    /** Asks for a cache of so many bytes in the server's own memory. */
    public static CacheOptions local(long bytes) {
        return new CacheOptions(LOCAL, Map.of(SIZE, String.valueOf(bytes)), List.of());
    }

    /** Never shows the settings and the environment, which contain credentials. */
    @Override
    public String toString() {
        return name;
    }
}
