package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** DJL's tokenizers and the extensions of ONNX Runtime, shared by two plugins and by servers of two class loaders. */
final class NativeLibrariesOfOthersTest {
    private static final Path JARS = Path.of("target/native-libraries");
    private static final String TOKENIZER = """
            {"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
             "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
             "model": {"type": "WordLevel", "vocab": {"?": 0, "hello": 1, "world": 2}, "unk_token": "?"}}
            """;
    private static final String IDS = """
            try (var tokenizer = ai.djl.huggingface.tokenizers.HuggingFaceTokenizer.newInstance(java.nio.file.Path.of("FILE"))) {
                return java.util.Optional.of(java.util.Arrays.toString(tokenizer.encode("hello world !").getIds()));
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
            """;
    private static final String EXTENSIONS = """
            return java.util.Optional.of(ai.onnxruntime.extensions.OrtxPackage.getLibraryPath());
            """;

    /** Where DJL unpacks its library, and that it asks no service in the network. */
    private static final List<String> PROPERTIES = List.of("DJL_CACHE_DIR", "OPT_OUT_TRACKING", "ai.djl.offline");

    @TempDir
    private Path files;

    private Path plugins;

    @BeforeEach
    void setProperties() throws Exception {
        plugins = Files.createDirectory(files.resolve("plugins"));
        System.setProperty(PROPERTIES.get(0), files.resolve("djl").toString());
        System.setProperty(PROPERTIES.get(1), "true");
        System.setProperty(PROPERTIES.get(2), "true");
    }

    @AfterEach
    void clearProperties() {
        PROPERTIES.forEach(System::clearProperty);
    }

    /** A plugin that is unavailable for the reason that the library returns. */
    private void write(String plugin, String shared, String body, String... jars) throws Exception {
        Path directory = plugins.resolve(plugin);
        PluginJar jar = PluginJar.of("public class Probe implements dev.nereid.spi.BackendProvider {"
                        + " public String name() { return \"" + plugin + "\"; }"
                        + " public java.util.Optional<String> unavailable() {" + body + "}"
                        + " public dev.nereid.spi.Backend create(dev.nereid.spi.BackendContext c) { return null; } }")
                .provider("Probe")
                .attribute("Nereid-Shared", shared);
        for (String library : jars) {
            jar.compiledAgainst(JARS.resolve(library));
        }
        jar.write(directory.resolve("plugin.jar"));
        for (String library : jars) {
            Files.copy(JARS.resolve(library), directory.resolve(library));
        }
    }

    @Test
    void tokenizersOfDjl() throws Exception {
        String[] jars = {"api.jar", "gson.jar", "slf4j-api.jar", "tokenizers.jar"};
        String file =
                Files.writeString(files.resolve("tokenizer.json"), TOKENIZER).toString();
        write("one", "djl-tokenizers", IDS.replace("FILE", file), jars);
        write("two", "djl-tokenizers", IDS.replace("FILE", file), jars);

        assertThat(reasonsOfTwoServers()).hasSize(4).containsOnly("[1, 2, 0]");

        write("three", "", IDS.replace("FILE", file), jars);
        assertThat(reasonsOfTwoServers())
                .filteredOn(reason -> !reason.equals("[1, 2, 0]"))
                .hasSize(2)
                .allSatisfy(reason -> assertThat(reason)
                        .contains("already loaded in another classloader", "add 'Nereid-Shared: NAME'"));
    }

    @Test
    void extensionsOfOnnxRuntime() throws Exception {
        write("one", "ortx", EXTENSIONS, "onnxruntime-extensions.jar");
        write("two", "ortx", EXTENSIONS, "onnxruntime-extensions.jar");

        List<String> reasons = reasonsOfTwoServers();

        assertThat(reasons).hasSize(4);
        assertThat(reasons.stream().distinct().toList())
                .singleElement()
                .asString()
                .endsWith(".so");
    }

    private List<String> reasonsOfTwoServers() throws Exception {
        List<String> reasons = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            try (URLClassLoader loader = server()) {
                Object server = loader.loadClass(ServerOfAnyLoader.class.getName())
                        .getConstructor()
                        .newInstance();
                @SuppressWarnings("unchecked")
                Function<List<Path>, List<String>> start = (Function<List<Path>, List<String>>) server;
                try (AutoCloseable _ = (AutoCloseable) server) {
                    reasons.addAll(start.apply(List.of(plugins, files.resolve("cache"))));
                }
            }
        }
        return reasons;
    }

    private static URLClassLoader server() throws Exception {
        List<URL> path = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
            path.add(Path.of(entry).toUri().toURL());
        }
        return new URLClassLoader("server", path.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }
}
