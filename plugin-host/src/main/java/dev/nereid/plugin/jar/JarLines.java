package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import org.jspecify.annotations.Nullable;

/**
 * The lines of a jar's manifest about native libraries, and the jar's native library. Immutable.
 *
 * @param isNative its line for native libraries; empty for none
 * @param shared its line for a shared library; empty for none
 * @param library its first native library; empty for none
 * @param hasProvider whether it names a class of the plugin for the server
 */
record JarLines(
        Path path, Optional<String> isNative, Optional<String> shared, Optional<String> library, boolean hasProvider) {
    /**
     * Set to {@code true} in a jar of a plugin that loads native libraries, and to {@link #FOREIGN} if it binds them by
     * foreign functions alone.
     */
    static final String NATIVE = "Nereid-Native";

    private static final String FOREIGN = "foreign";

    /** Names the library that a plugin shares with others, perhaps followed by patterns of the names of its jars. */
    static final String SHARED = "Nereid-Shared";

    private static final Pattern LIBRARY =
            Pattern.compile("META-INF/native/.*[^/]|.*\\.(so(\\.[0-9]+)*|dll|dylib|jnilib)");
    private static final String PROVIDERS = "META-INF/services/dev.nereid.spi.";

    static JarLines of(Path path) throws PluginException {
        try (JarFile jar = new JarFile(path.toFile())) {
            Manifest manifest = jar.getManifest();
            List<String> names = jar.stream().map(ZipEntry::getName).toList();
            return new JarLines(
                    path,
                    line(manifest, NATIVE),
                    line(manifest, SHARED),
                    names.stream()
                            .filter(name -> LIBRARY.matcher(name).matches())
                            .findFirst(),
                    names.stream().anyMatch(name -> name.startsWith(PROVIDERS)));
        } catch (IOException e) {
            throw PluginManifest.unreadable(path, e);
        }
    }

    private static Optional<String> line(@Nullable Manifest manifest, String name) {
        return Optional.ofNullable(manifest)
                .map(all -> all.getMainAttributes().getValue(name))
                .map(String::strip);
    }

    /** Returns whether the plugin has to stay loaded. */
    boolean isKept() {
        return isNative.filter(Boolean::parseBoolean).isPresent();
    }

    /** Returns whether code of a native library may run, as the manifest says; else whether the jar has or shares one. */
    boolean runsLibrary() {
        return isNative.map(value -> Boolean.parseBoolean(value) || value.equalsIgnoreCase(FOREIGN))
                .orElse(library.isPresent() || shared.isPresent());
    }

    String name() {
        return path.getFileName().toString();
    }
}
