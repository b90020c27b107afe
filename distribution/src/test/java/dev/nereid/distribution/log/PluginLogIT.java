package dev.nereid.distribution.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.spi.BackendProvider;
import java.io.File;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the messages that a plugin logs, by each of its loggers, in the log of the installed server. */
@Tag("slow")
final class PluginLogIT {
    private static final String TALKER = """
            package talk;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;

            public final class Talker implements TensorFunction {
                public String name() { return "talker"; }

                public TensorFunction open(ModelContext model) {
                    model.logger().log(System.Logger.Level.INFO, "by the context");
                    System.getLogger("talk.system").log(System.Logger.Level.INFO, "by the system");
                    java.util.logging.Logger.getLogger("talk.util").info("by the utility");
                    java.util.logging.Logger.getLogger("talk.util").fine("too fine");
                    org.slf4j.LoggerFactory.getLogger("talk.slf4j").info("by the facade");
                    org.slf4j.LoggerFactory.getLogger("talk.slf4j").warn("as a warning");
                    model.executor().execute(() -> System.getLogger("talk.task").log(System.Logger.Level.INFO, "by a task"));
                    return this;
                }

                public void apply(InferenceRequest request, ModelContext model) {
                    request.response().put("OUTPUT0", request.requireInput("INPUT0"));
                }
            }
            """;

    @TempDir
    private Path directory;

    @Test
    void informationOfEachLoggerReachesTheLog() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        Path talker = Files.createDirectories(plugins.resolve("talker"));
        List<Path> facade = facade();
        for (Path jar : facade) {
            Files.copy(jar, talker.resolve(jar.getFileName()));
        }
        write(talker.resolve("talker.jar"), facade);
        Repository models = new Repository(directory.resolve("models"))
                .model("m", Repository.identity(0, "FP32", "[ -1 ]", "").replace("\"identity\"", "\"talker\""));

        try (InstalledServer server = InstalledServer.serve(models.directory(), "--backend-directory=" + plugins)) {
            assertThat(server.post(
                                    "/v2/models/m/infer",
                                    "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[7]}]}")
                            .statusCode())
                    .isEqualTo(200);

            String log = server.awaitErr(
                    "INFO m - by the context",
                    "INFO system - by the system",
                    "INFO util - by the utility",
                    "INFO slf4j - by the facade",
                    "WARN slf4j - as a warning",
                    "INFO task - by a task");
            assertThat(log)
                    .doesNotContain("too fine")
                    .containsOnlyOnce("native library in a plugin without 'Nereid-Native: true' in a manifest:"
                            + " talker.jar!/native/libtalk.so");
        }
    }

    /** Returns SLF4J and what brings it to the JDK's loggers, as a storage of the server has them. */
    private static List<Path> facade() throws Exception {
        try (Stream<Path> jars = Files.list(InstalledServer.HOME.resolve("storage/s3"))) {
            return jars.filter(jar -> jar.getFileName().toString().startsWith("slf4j-"))
                    .toList();
        }
    }

    private void write(Path target, List<Path> libraries) throws Exception {
        Path source = Files.createDirectories(directory.resolve("source")).resolve("Talker.java");
        Files.writeString(source, TALKER);
        StringBuilder path = new StringBuilder(Path.of(BackendProvider.class
                        .getProtectionDomain()
                        .getCodeSource()
                        .getLocation()
                        .toURI())
                .toString());
        libraries.forEach(jar -> path.append(File.pathSeparator).append(jar));
        Path classes = Files.createDirectories(directory.resolve("classes"));
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .run(
                                null,
                                null,
                                null,
                                "-proc:none",
                                "-cp",
                                path.toString(),
                                "-d",
                                classes.toString(),
                                source.toString()))
                .isZero();
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Backend-Spi-Version", "1.0");
        try (OutputStream out = Files.newOutputStream(target);
                JarOutputStream jar = new JarOutputStream(out, manifest)) {
            jar.putNextEntry(new JarEntry("talk/Talker.class"));
            jar.write(Files.readAllBytes(classes.resolve("talk/Talker.class")));
            jar.putNextEntry(new JarEntry("META-INF/services/" + BackendProvider.class.getName()));
            jar.write("talk.Talker".getBytes(StandardCharsets.UTF_8));
            jar.putNextEntry(new JarEntry("native/libtalk.so")); // never loaded
        }
    }
}
