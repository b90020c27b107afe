package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Jars that are dropped into the plugin directory of the installed server while it serves, and replaced there. */
@Timeout(300)
@Tag("slow")
final class HotPluginIT {
    private static final int TIMEOUT_SECONDS = 60;
    private static final String TIMES = """
            package times;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;
            import java.lang.foreign.ValueLayout;

            public final class Times implements TensorFunction {
                public String name() { return "times"; }

                public void apply(InferenceRequest request, ModelContext model) {
                    Tensor in = request.requireInput("INPUT0");
                    Tensor out = request.response().allocate("OUTPUT0", DataType.FP32, in.shape());
                    for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
                        float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
                        out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, FACTOR * value);
                    }
                }
            }
            """;

    @TempDir
    private Path directory;

    private Path plugins;
    private Repository models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new Repository(directory.resolve("models"))
                .model("m", Repository.identity(0, "FP32", "[ -1 ]", "").replace("\"identity\"", "\"times\""))
                .model("other", Repository.identity(0, "FP32", "[ -1 ]", ""));
    }

    @Test
    void aJarIsServedReplacedAndCollectedWithoutARestartOrAFailedRequest() throws Exception {
        try (InstalledServer server = InstalledServer.serve(
                models.directory(),
                "--backend-directory=" + plugins,
                "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"),
                "--model-control-mode=explicit",
                "--load-model=other")) {
            assertThat(load(server).body()).contains("unable to find backend library for backend 'times'");
            drop(2);
            assertThat(load(server).statusCode()).isEqualTo(200);
            assertThat(infer(server, "m").body()).contains("[14.0]");
            AtomicBoolean end = new AtomicBoolean();
            CompletableFuture<Integer> traffic =
                    CompletableFuture.supplyAsync(() -> traffic(server, end), InstalledServer.BLOCKING);

            Files.writeString(plugins.resolve("times.jar"), "half a jar");
            assertThat(load(server).statusCode()).isEqualTo(200);
            assertThat(infer(server, "m").body()).contains("[14.0]");
            server.awaitErr("broken plugin ignored", "times.jar: not a readable jar");
            drop(3);
            assertThat(load(server).statusCode()).isEqualTo(200);

            assertThat(infer(server, "m").body()).contains("[21.0]");
            server.awaitErr("plugin replaced", "plugin=times");
            Eventually.holds("old code collected", TIMEOUT_SECONDS, () -> loaders(server) == 1);
            end.set(true);
            assertThat(traffic.get()).isPositive();
        }
    }

    /** Sends requests until the end; each has to succeed. Returns their number. */
    private static int traffic(InstalledServer server, AtomicBoolean end) {
        int requests = 0;
        for (; !end.get(); requests++) {
            assertThat(infer(server, "m").body()).containsPattern("\\[(14|21)\\.0]");
            assertThat(infer(server, "other").body()).contains("[7.0]");
        }
        return requests;
    }

    /** Counts the class loaders of the plugin, after a full collection. */
    private static long loaders(InstalledServer server) {
        jcmd(server, "GC.run");
        return jcmd(server, "VM.classloaders")
                .lines()
                .filter(line -> line.contains("\"plugin times\""))
                .count();
    }

    private static String jcmd(InstalledServer server, String command) {
        try {
            Process process = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin/jcmd").toString(),
                            String.valueOf(server.pid()),
                            command)
                    .redirectErrorStream(true)
                    .start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static HttpResponse<String> load(InstalledServer server) throws IOException, InterruptedException {
        return server.post("/v2/repository/models/m/load", "{}");
    }

    private static HttpResponse<String> infer(InstalledServer server, String model) {
        try {
            return server.post(
                    "/v2/models/" + model + "/infer",
                    "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[7]}]}");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Compiles the plugin, and moves its jar into the plugin directory. */
    private void drop(int factor) throws IOException, URISyntaxException {
        Path source = Files.createDirectories(directory.resolve("source")).resolve("Times.java");
        Files.writeString(source, TIMES.replace("FACTOR", String.valueOf(factor)));
        Path spi = Path.of(BackendProvider.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        Path classes = Files.createDirectories(directory.resolve("classes"));
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .run(
                                null,
                                null,
                                null,
                                "-proc:none",
                                "-cp",
                                spi.toString(),
                                "-d",
                                classes.toString(),
                                source.toString()))
                .isZero();
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Backend-Spi-Version", "1.0");
        Path built = directory.resolve("times.jar");
        try (OutputStream out = Files.newOutputStream(built);
                JarOutputStream jar = new JarOutputStream(out, manifest)) {
            jar.putNextEntry(new JarEntry("times/Times.class"));
            jar.write(Files.readAllBytes(classes.resolve("times/Times.class")));
            jar.putNextEntry(new JarEntry("META-INF/services/" + BackendProvider.class.getName()));
            jar.write("times.Times".getBytes(StandardCharsets.UTF_8));
        }
        Files.move(built, plugins.resolve("times.jar"), StandardCopyOption.REPLACE_EXISTING);
    }
}
