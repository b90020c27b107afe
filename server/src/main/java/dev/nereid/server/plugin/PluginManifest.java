package dev.nereid.server.plugin;

import java.io.IOException;
import java.nio.file.Path;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import org.jspecify.annotations.Nullable;

/**
 * Checks jar manifests and service files before any class of a plugin is loaded. A class built against another SPI
 * could fail in confusing ways. Static functions only.
 */
final class PluginManifest {
    static final String SPI_VERSION = "Backend-Spi-Version";

    private PluginManifest() {}

    /** Returns where a jar names its providers. */
    static String serviceFile(Class<?> provider) {
        return "META-INF/services/" + provider.getName();
    }

    /**
     * Checks that the jars can be read and fit the server's SPI. One of them has to name a provider; each jar that
     * names one has to fit.
     */
    static void check(PluginSource plugin, SpiVersion server, Class<?> provider) throws PluginException {
        if (plugin.jars().isEmpty()) {
            throw new PluginException("no file *.jar in its directory (expected: the plugin's jars)");
        }
        boolean found = false;
        for (Path jar : plugin.jars()) {
            found |= checkJar(jar, server, serviceFile(provider));
        }
        if (!found) {
            throw new PluginException("no provider: none of its jars has a file " + serviceFile(provider)
                    + " (expected: the name of a class that implements " + provider.getName() + ")");
        }
    }

    private static boolean checkJar(Path path, SpiVersion server, String serviceFile) throws PluginException {
        String name = path.getFileName().toString();
        try (JarFile jar = new JarFile(path.toFile())) {
            if (jar.getEntry(serviceFile) == null) {
                return false;
            }
            checkVersion(name, jar.getManifest(), server);
            return true;
        } catch (IOException e) {
            throw new PluginException(name + ": not a readable jar: " + e.getMessage(), e);
        }
    }

    private static void checkVersion(String jar, @Nullable Manifest manifest, SpiVersion server)
            throws PluginException {
        String text = manifest == null ? null : manifest.getMainAttributes().getValue(SPI_VERSION);
        if (text == null) {
            throw new PluginException(jar + ": its manifest has no " + SPI_VERSION + " (expected: the version of"
                    + " nereid-backend-spi that the plugin was compiled against, such as " + server
                    + "); add the entry to the manifest and build the plugin again");
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
