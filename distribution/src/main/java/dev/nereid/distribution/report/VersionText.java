package dev.nereid.distribution.report;

import dev.nereid.distribution.process.HostInfo;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.stream.Stream;

/** Writes the versions of the server, the JVM, and the frameworks of the installed plugins. Static functions only. */
public final class VersionText {
    /** The attribute in the manifest of a plugin that names its framework and the version of that. */
    private static final String FRAMEWORK = "Nereid-Framework";

    private VersionText() {}

    /** Returns the versions in lines, that of the server first. The directory of installed plugins need not exist. */
    public static String of(HostInfo host, Path plugins) {
        StringBuilder text = new StringBuilder("nereid ").append(host.version()).append('\n');
        text.append("commit: ").append(host.commit()).append('\n');
        text.append("JDK: ").append(host.jdk()).append('\n');
        for (Path plugin : entries(plugins)) {
            for (Path jar : entries(plugin)) {
                text.append(framework(plugin, jar));
            }
        }
        return text.toString();
    }

    private static String framework(Path plugin, Path jar) {
        if (!jar.toString().endsWith(".jar")) {
            return "";
        }
        try (JarFile file = new JarFile(jar.toFile())) {
            Manifest manifest = file.getManifest();
            String framework =
                    manifest == null ? null : manifest.getMainAttributes().getValue(FRAMEWORK);
            return framework == null ? "" : "plugin " + plugin.getFileName() + ": " + framework + "\n";
        } catch (IOException e) {
            return ""; // the start-up table reports broken plugins
        }
    }

    private static List<Path> entries(Path directory) {
        if (!Files.isDirectory(directory)) {
            return List.of();
        }
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.sorted().toList();
        } catch (IOException e) {
            return List.of();
        }
    }
}
