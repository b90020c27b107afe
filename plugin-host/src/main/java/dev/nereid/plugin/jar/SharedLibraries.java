package dev.nereid.plugin.jar;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URLClassLoader;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Supplier;
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
    static void requireSame(SharedLibrary library) throws PluginException {
        Optional<List<?>> loaded = find(library.name());
        if (loaded.isPresent()) {
            requireSame(library, loaded.get());
        }
    }

    private static void requireSame(SharedLibrary library, List<?> loaded) throws PluginException {
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
    static ClassLoader load(SharedLibrary library, Supplier<Object> hold) throws PluginException {
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
}
