package dev.nereid.plugin.jar;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import org.jspecify.annotations.Nullable;

/**
 * Checks jar manifests and service files before any class of a plugin is loaded. A class built against another SPI
 * could fail in confusing ways. Static functions only.
 */
public final class PluginManifest {
    static final String SPI_VERSION = "Backend-Spi-Version";

    private PluginManifest() {}

    /** Returns the path of the entry where a jar names its providers. */
    public static String serviceFile(Class<?> provider) {
        return "META-INF/services/" + provider.getName();
    }

    /**
     * Checks that the jars can be read and fit the server's SPI. One of them has to name a provider; each jar that
     * names one has to fit.
     *
     * @throws PluginException if it does not fit
     */
    public static void check(PluginSource plugin, SpiVersion server, Set<Class<?>> providers) throws PluginException {
        if (plugin.jars().isEmpty()) {
            throw new PluginException("no file *.jar in its directory (expected: the plugin's jars)");
        }
        boolean found = false;
        for (Path jar : plugin.jars()) {
            found |= checkJar(jar, server, providers);
        }
        if (!found) {
            List<Class<?>> sorted = providers.stream()
                    .sorted(Comparator.comparing(Class::getName))
                    .toList();
            throw new PluginException("no provider: none of its jars has a file "
                    + sorted.stream().map(PluginManifest::serviceFile).collect(joining(" or "))
                    + " (expected: the name of a class that implements "
                    + sorted.stream().map(Class::getName).collect(joining(" or "))
                    + "); the compiler writes it for classes with @BackendFunction if annotation processing is switched"
                    + " on: javac -proc:full, or <maven.compiler.proc>full</maven.compiler.proc> in a pom.xml");
        }
    }

    /**
     * Checks that the jars can be read.
     *
     * @throws PluginException if one of them cannot
     */
    public static void requireReadable(PluginSource plugin) throws PluginException {
        for (Path jar : plugin.jars()) {
            checkJar(jar, new SpiVersion(0, 0), Set.of());
        }
    }

    static PluginException unreadable(Path jar, IOException e) {
        return new PluginException(jar.getFileName() + ": not a readable jar: " + e.getMessage(), e);
    }

    private static boolean checkJar(Path path, SpiVersion server, Set<Class<?>> providers) throws PluginException {
        String name = path.getFileName().toString();
        try (JarFile jar = new JarFile(path.toFile())) {
            if (providers.stream().map(PluginManifest::serviceFile).allMatch(file -> jar.getEntry(file) == null)) {
                return false;
            }
            checkVersion(name, jar.getManifest(), server);
            return true;
        } catch (IOException e) {
            throw unreadable(path, e);
        }
    }

    private static void checkVersion(String jar, @Nullable Manifest manifest, SpiVersion server)
            throws PluginException {
        String text = manifest == null ? null : manifest.getMainAttributes().getValue(SPI_VERSION);
        if (text == null) {
            throw new PluginException(jar + ": its manifest has no " + SPI_VERSION + " (expected: the version of"
                    + " nereid-backend-spi that the plugin was compiled against, such as " + server
                    + "); add the entry to the manifest: in a pom.xml as <manifestEntries><" + SPI_VERSION + ">"
                    + server
                    + "</" + SPI_VERSION
                    + "></manifestEntries> of the <archive> of maven-jar-plugin, or by jar --update"
                    + " --file " + jar + " --manifest FILE with the line '" + SPI_VERSION + ": " + server
                    + "' in FILE");
        }
        SpiVersion required = SpiVersion.parse(text.strip())
                .orElseThrow(() -> new PluginException(
                        jar + ": " + SPI_VERSION + ": " + text + " (expected: a version such as " + server + ")"));
        if (!server.accepts(required)) {
            throw new PluginException(jar + ": " + SPI_VERSION + ": " + required + " (expected: " + server.major()
                    + ".0 to " + server + "); "
                    + (required.major() < server.major()
                            ? "build the plugin again against nereid-backend-spi " + server
                            : "use a newer server, or build the plugin against nereid-backend-spi " + server));
        }
    }
}
