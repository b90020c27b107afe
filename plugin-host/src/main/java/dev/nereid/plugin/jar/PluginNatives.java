package dev.nereid.plugin.jar;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The native libraries of a plugin, by its jars and their manifests. Immutable.
 *
 * @param isKept whether the plugin stays loaded until the server ends
 * @param shared the library that the plugin shares with others; empty for none
 * @param unmentioned a native library of which no manifest says anything; empty for none
 */
public record PluginNatives(boolean isKept, Optional<SharedLibraries.Library> shared, Optional<String> unmentioned) {
    /**
     * Reads the jars of a plugin.
     *
     * @return the libraries by the jars and their manifests
     * @throws PluginException if a jar cannot be read, or says what cannot be
     */
    public static PluginNatives of(PluginSource plugin) throws PluginException {
        List<JarLines> jars = new ArrayList<>();
        for (Path path : plugin.jars()) {
            jars.add(JarLines.of(path));
        }
        Optional<SharedLibraries.Library> shared = SharedLibraries.Library.of(plugin.name(), jars);
        boolean isMentioned = jars.stream().anyMatch(jar -> jar.isNative().isPresent());
        return new PluginNatives(
                jars.stream().anyMatch(JarLines::isKept),
                shared,
                jars.stream()
                        .filter(jar -> !isMentioned
                                && shared.filter(library -> library.jars().contains(jar.path()))
                                        .isEmpty())
                        .flatMap(jar -> jar.library().map(name -> jar.name() + "!/" + name).stream())
                        .findFirst());
    }

    /**
     * Returns whether a plugin may run code of a native library in this process, which can end the process.
     *
     * @return what the manifests of its jars say; without a line in any of them, whether a jar contains or shares a library
     */
    public static boolean runsLibrary(PluginSource plugin) {
        List<JarLines> jars = new ArrayList<>();
        for (Path path : plugin.jars()) {
            try {
                jars.add(JarLines.of(path));
            } catch (PluginException e) {
                return false; // a broken plugin, of which nothing is loaded
            }
        }
        List<JarLines> mentioning =
                jars.stream().filter(jar -> jar.isNative().isPresent()).toList();
        return (mentioning.isEmpty() ? jars : mentioning).stream().anyMatch(JarLines::runsLibrary);
    }

    /**
     * Refuses a library of other content than the one of its name that the process has loaded.
     *
     * @throws PluginException if it has another one
     */
    public void requireSameLibrary() throws PluginException {
        if (shared.isPresent()) {
            SharedLibraries.requireSame(shared.get());
        }
    }

    /** Returns advice to the author of the plugin, a sentence for the log; empty for none. */
    public Optional<String> advice() {
        return unmentioned.map(library -> "native library in a plugin without '" + JarLines.NATIVE
                + ": true' in a manifest: "
                + library + "; the JVM lets one class loader alone load a library, so that the plugin cannot be loaded"
                + " again: add the line (in a pom.xml with nereid-backend-parent <nereid.native>true</nereid.native>), or"
                + " '" + JarLines.SHARED + ": NAME' (<nereid.shared>NAME</nereid.shared>) if several plugins or"
                + " servers of the process have the library, or '" + JarLines.NATIVE
                + ": false' if no class loads it by System.load");
    }
}
