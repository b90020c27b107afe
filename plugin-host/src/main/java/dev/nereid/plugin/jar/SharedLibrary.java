package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * A library that a plugin shares with others, and with other servers of the process. Immutable.
 *
 * <p>The line {@code Nereid-Shared: NAME} in the manifest of a jar with a provider means all other jars of the plugin, or
 * the ones that match a pattern after the name. In a jar without a provider it means that jar.
 *
 * @param jars its jars by name, at least one
 * @param digest a text that differs for other content
 */
public record SharedLibrary(String name, String plugin, List<Path> jars, String digest) {
    private static final Pattern SPACE = Pattern.compile("[\\s,]+");
    private static final Pattern NAME = Pattern.compile("[\\w.-]+");

    public SharedLibrary {
        jars = List.copyOf(jars);
    }

    /** Finds the library among the jars of a plugin. */
    static Optional<SharedLibrary> of(String plugin, List<JarLines> jars) throws PluginException {
        Set<String> names = new LinkedHashSet<>();
        Set<Path> members = new LinkedHashSet<>();
        for (JarLines jar : jars) {
            if (jar.shared().isPresent()) {
                List<String> words = List.of(SPACE.split(jar.shared().get()));
                names.add(words.getFirst());
                members.addAll(jar.hasProvider() ? others(jars, words) : List.of(jar.path()));
            }
        }
        if (names.isEmpty()) {
            return Optional.empty();
        }
        String name = names.iterator().next();
        if (names.size() > 1 || !NAME.matcher(name).matches()) {
            throw new PluginException(JarLines.SHARED + ": " + names
                    + " (expected: one name for the jars of a plugin, of letters, digits, . _ and -)");
        }
        if (members.isEmpty()) {
            throw new PluginException(
                    JarLines.SHARED + ": " + name + ": no jar of a library (expected: the library, and all that"
                            + " it needs, in jars of the plugin's directory beside that of the provider)");
        }
        List<Path> sorted = members.stream().sorted().toList();
        try {
            return Optional.of(new SharedLibrary(name, plugin, sorted, PluginDigest.hash(sorted)));
        } catch (IOException e) {
            throw new PluginException("its jars cannot be read: " + e.getMessage(), e);
        }
    }

    /** Returns the jars without a provider that one of the patterns matches; all of them without a pattern. */
    private static List<Path> others(List<JarLines> jars, List<String> words) throws PluginException {
        List<Path> candidates = jars.stream()
                .filter(jar -> !jar.hasProvider())
                .map(JarLines::path)
                .toList();
        if (words.size() == 1) {
            return candidates;
        }
        List<Path> found = new ArrayList<>();
        for (String pattern : words.subList(1, words.size())) {
            PathMatcher matcher = matcher(pattern);
            List<Path> matching = candidates.stream()
                    .filter(jar -> matcher.matches(jar.getFileName()))
                    .toList();
            if (matching.isEmpty()) {
                throw new PluginException(JarLines.SHARED + ": " + words.getFirst() + ": '" + pattern
                        + "' (expected: the file name of a jar without a provider, such as tokenizers-*.jar)");
            }
            found.addAll(matching);
        }
        return found;
    }

    private static PathMatcher matcher(String pattern) throws PluginException {
        try {
            return FileSystems.getDefault().getPathMatcher("glob:" + pattern);
        } catch (PatternSyntaxException e) {
            throw new PluginException(
                    JarLines.SHARED + ": '" + pattern + "' (expected: a pattern such as tokenizers-*.jar)", e);
        }
    }
}
