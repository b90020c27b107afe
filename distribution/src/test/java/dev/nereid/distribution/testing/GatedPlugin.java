package dev.nereid.distribution.testing;

import dev.nereid.gated.GatedBackendProvider;
import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;

/**
 * The backend {@code gated} as a plugin, and the gates of its models. Confined to the test's thread, except the gates.
 */
public final class GatedPlugin {
    private GatedPlugin() {}

    /** Packs the plugin into a plugin directory. */
    public static Path pack(Path plugins) {
        return pack(plugins, GatedBackendProvider.class);
    }

    /** Packs another provider, with its whole package, into a plugin directory. */
    public static Path pack(Path plugins, Class<? extends BackendProvider> provider) {
        return pack(plugins, provider, Map.of());
    }

    /** Packs another provider, with its whole package and with lines of its manifest, into a plugin directory. */
    public static Path pack(Path plugins, Class<? extends BackendProvider> provider, Map<String, String> lines) {
        try {
            Files.createDirectories(plugins);
            Path classes = Path.of(
                    provider.getProtectionDomain().getCodeSource().getLocation().toURI());
            Manifest manifest = new Manifest();
            manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
            manifest.getMainAttributes().putValue("Backend-Spi-Version", "1.0");
            lines.forEach(manifest.getMainAttributes()::putValue);
            try (OutputStream out = Files.newOutputStream(plugins.resolve(provider.getSimpleName() + ".jar"));
                    JarOutputStream jar = new JarOutputStream(out, manifest)) {
                for (Path file : classFiles(classes, provider)) {
                    add(jar, classes.relativize(file).toString(), Files.readAllBytes(file));
                }
                add(
                        jar,
                        "META-INF/services/" + BackendProvider.class.getName(),
                        provider.getName().getBytes(StandardCharsets.UTF_8));
            }
            return plugins;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Writes the configuration of a model of this backend. */
    public static String model() {
        return Repository.identity(8, "FP32", "[ -1 ]", "").replace("\"identity\"", "\"gated\"");
    }

    /** Closes a gate of a model that is in the repository: {@code load} or {@code execute}. */
    public static Path close(Repository repository, String model, String gate) {
        try {
            return Files.createFile(repository.directory().resolve(model).resolve(gate + ".gate"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns whether a request waits at a closed gate. */
    public static boolean isWaitedAt(Path gate) {
        return Files.exists(gate.resolveSibling(gate.getFileName() + ".waiting"));
    }

    /** Opens a gate. Any thread may. */
    public static void open(Path gate) {
        try {
            Files.delete(gate);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static List<Path> classFiles(Path classes, Class<?> provider) throws IOException {
        String directory = provider.getPackageName().replace('.', '/');
        try (Stream<Path> files = Files.list(classes.resolve(directory))) {
            return files.filter(file -> !file.endsWith("package-info.class"))
                    .sorted()
                    .toList();
        }
    }

    private static void add(JarOutputStream jar, String name, byte[] content) throws IOException {
        jar.putNextEntry(new JarEntry(name));
        jar.write(content);
        jar.closeEntry();
    }
}
