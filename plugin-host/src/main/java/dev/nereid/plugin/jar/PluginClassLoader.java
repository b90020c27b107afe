package dev.nereid.plugin.jar;

import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The class loader of one plugin. It finds the JDK, {@code dev.nereid.spi}, the library that the plugin shares with
 * other plugins, and the plugin's own jars. Safe for use by any thread.
 *
 * <p>The JDK is loaded by the platform loader and wins over copies in the jars. The SPI is always loaded from the
 * server, also when a jar holds a copy of it; otherwise plugin and server would mean different types by one name.
 */
public final class PluginClassLoader extends URLClassLoader {
    static {
        registerAsParallelCapable();
    }

    private static final String SHARED_CLASSES = "dev.nereid.spi.";
    private static final String SHARED_RESOURCES = "dev/nereid/spi/";

    /** No signers, which is not the same as null. */
    private static final Object[] NO_SIGNERS = {};

    private final ClassLoader shared;
    private final String plugin;
    private volatile int threads;
    private volatile int threadLimit;

    /** Creates the loader of a plugin below the loader of the SPI. */
    public PluginClassLoader(PluginSource plugin, ClassLoader shared) {
        this(plugin, plugin.jars(), shared, ClassLoader.getPlatformClassLoader());
    }

    private PluginClassLoader(PluginSource plugin, List<Path> jars, ClassLoader shared, ClassLoader parent) {
        super("plugin " + plugin.name(), urls(jars), parent);
        this.shared = shared;
        this.plugin = plugin.name();
    }

    /**
     * Creates the loader of a plugin, and finds or creates the loader of its shared library.
     *
     * @param shared the loader of the SPI
     * @param hold keeps the plugin's jars until the process ends, for a library of the process; returns an object of
     *     the JDK that has to stay reachable for that
     * @return the loader, closed by the caller
     * @throws PluginException if the process has another library of that name
     */
    public static PluginClassLoader open(PluginSource plugin, ClassLoader shared, Supplier<Object> hold)
            throws PluginException {
        Optional<SharedLibraries.Library> library = PluginNatives.of(plugin).shared();
        if (library.isEmpty()) {
            return new PluginClassLoader(plugin, shared);
        }
        List<Path> own = new ArrayList<>(plugin.jars());
        own.removeAll(library.get().jars());
        return new PluginClassLoader(plugin, own, shared, SharedLibraries.load(library.get(), hold));
    }

    String plugin() {
        return plugin;
    }

    /**
     * Records the threads that the plugin has started. Called by the watchdog.
     *
     * @param limit the number from which on they are too many; 0 for none
     */
    public void threads(int count, int limit) {
        threads = count;
        threadLimit = limit;
    }

    /** Returns the platform threads of the plugin at the last check of the watchdog; 0 while the process has few. */
    public int threads() {
        return threads;
    }

    /** Returns whether the plugin has started so many threads that they reach the limit. */
    public boolean hasTooManyThreads() {
        return threadLimit > 0 && threads >= threadLimit;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        return name.startsWith(SHARED_CLASSES) ? shared.loadClass(name) : super.loadClass(name, resolve);
    }

    /**
     * Defines a class of the plugin. It gets an empty array of signers in place of none, since the JVM leaves classes
     * with signers out of its AOT cache. An archived class of a plugin would be the class of the first loader that
     * defines it, and a JVM of JDK 25 crashes when such a class is unloaded: the profiles in the cache still name it.
     */
    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        Class<?> found = super.findClass(name);
        if (found.getSigners() == null) {
            setSigners(found, NO_SIGNERS);
        }
        return found;
    }

    @Override
    public URL getResource(String name) {
        return name.startsWith(SHARED_RESOURCES) ? shared.getResource(name) : super.getResource(name);
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
        return name.startsWith(SHARED_RESOURCES) ? shared.getResources(name) : super.getResources(name);
    }

    static URL[] urls(List<Path> jars) {
        return jars.stream().map(PluginClassLoader::url).toArray(URL[]::new);
    }

    private static URL url(Path jar) {
        try {
            return jar.toUri().toURL();
        } catch (MalformedURLException e) {
            throw new IllegalArgumentException("jar: " + jar + " (expected: a path with a URL)", e);
        }
    }
}
