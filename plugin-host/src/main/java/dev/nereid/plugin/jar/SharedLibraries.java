package dev.nereid.plugin.jar;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import javax.management.InstanceAlreadyExistsException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The class loaders of libraries that plugins share, one for each name in the process. They are never closed. Static
 * functions only, for any thread.
 *
 * <p>Servers of one process may have different class loaders, such as after a restart by Spring's devtools. A static field
 * would then exist once for each of them, and keep the former ones alive. So the loaders lie in a map in the platform's MBean
 * server, and nothing in it is of a class of the server: the loader is a plain {@link URLClassLoader} below the platform's,
 * and no class of the SPI is visible to the library.
 */
final class SharedLibraries {
    private static final Logger LOG = LoggerFactory.getLogger(SharedLibraries.class);
    private static final String REGISTRY = "dev.nereid:type=SharedLibraries";
    private static final String OBJECT = Object.class.getName();

    // What the map has for a name: a list of JDK types, since a record would be one of a class of the server.
    private static final int DIGEST = 0;
    private static final int PLUGIN = 1;
    private static final int LOADER = 2;

    private SharedLibraries() {}

    /**
     * Refuses a library of other content than the one of its name in the process.
     *
     * @throws PluginException if the process has another one
     */
    static void requireSame(Library library) throws PluginException {
        Optional<List<?>> loaded = find(library.name());
        if (loaded.isPresent()) {
            requireSame(library, loaded.get());
        }
    }

    private static void requireSame(Library library, List<?> loaded) throws PluginException {
        if (!library.digest().equals(loaded.get(DIGEST))) {
            throw new PluginException(JarLines.SHARED + ": " + library.name()
                    + ": its jars have other content than those of plugin '" + loaded.get(PLUGIN)
                    + "', which the process has loaded (expected: equal jars in all plugins that share the library, or a"
                    + " restart of the process, since a second copy of a native library can end the JVM)");
        }
    }

    /**
     * Returns the class loader of a library, and creates it for the first plugin of the process.
     *
     * @param hold keeps the library's jars until the process ends; returns an object of the JDK that has to stay
     *     reachable for that
     * @throws PluginException if the process has a library of the name with other content
     */
    static ClassLoader load(Library library, Supplier<Object> hold) throws PluginException {
        Optional<List<?>> loaded = find(library.name());
        if (loaded.isEmpty()) {
            URLClassLoader loader = new URLClassLoader(
                    "shared library " + library.name(),
                    PluginClassLoader.urls(library.jars()),
                    ClassLoader.getPlatformClassLoader());
            List<?> own = List.of(library.digest(), library.plugin(), loader, hold.get());
            loaded = putIfAbsent(library.name(), own);
            if (loaded.isEmpty()) {
                LOG.atDebug()
                        .addKeyValue("plugin", library.plugin())
                        .addKeyValue("library", library.name())
                        .log(
                                "class loader of a shared library created for the process (plugin '{}'): {}",
                                library.plugin(),
                                library.name());
                return loader;
            }
            close(loader); // another server was quicker
        }
        requireSame(library, loaded.get());
        return (ClassLoader) loaded.get().get(LOADER);
    }

    private static void close(URLClassLoader loader) throws PluginException {
        try {
            loader.close();
        } catch (IOException e) {
            throw new PluginException("its jars could not be closed: " + e.getMessage(), e);
        }
    }

    private static Optional<List<?>> find(String name) throws PluginException {
        return Optional.ofNullable((List<?>) invoke("get", name));
    }

    private static Optional<List<?>> putIfAbsent(String name, List<?> library) throws PluginException {
        return Optional.ofNullable((List<?>) invoke("putIfAbsent", name, library));
    }

    private static @Nullable Object invoke(String method, Object... arguments) throws PluginException {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            ObjectName registry = new ObjectName(REGISTRY);
            if (!server.isRegistered(registry)) {
                register(server, registry);
            }
            String[] types = new String[arguments.length];
            Arrays.fill(types, OBJECT);
            return server.invoke(registry, method, arguments, types);
        } catch (JMException e) {
            throw new PluginException(JarLines.SHARED + ": the libraries of the process cannot be read: " + e, e);
        }
    }

    private static void register(MBeanServer server, ObjectName registry) throws JMException {
        try {
            server.registerMBean(
                    new StandardMBean(new ConcurrentHashMap<Object, Object>(), ConcurrentMap.class, false), registry);
        } catch (InstanceAlreadyExistsException e) {
            // Another server was quicker.
        }
    }

    /**
     * A library that a plugin shares with others, and with other servers of the process. Immutable.
     *
     * <p>The line {@code Nereid-Shared: NAME} in the manifest of a jar with a provider means all other jars of the plugin, or
     * the ones that match a pattern after the name. In a jar without a provider it means that jar.
     *
     * @param jars its jars by name, at least one
     * @param digest a text that differs for other content
     */
    record Library(String name, String plugin, List<Path> jars, String digest) {
        private static final Pattern SPACE = Pattern.compile("[\\s,]+");
        private static final Pattern NAME = Pattern.compile("[\\w.-]+");

        public Library {
            jars = List.copyOf(jars);
        }

        /** Finds the library among the jars of a plugin. */
        static Optional<Library> of(String plugin, List<JarLines> jars) throws PluginException {
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
                return Optional.of(new Library(name, plugin, sorted, PluginDigest.hash(sorted)));
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
}
