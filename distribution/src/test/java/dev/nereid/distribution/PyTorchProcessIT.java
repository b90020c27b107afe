package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PyTorchModels;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The process of the installed server with PyTorch: what it maps, and where it leaves files. */
@Timeout(300)
@Tag("slow")
final class PyTorchProcessIT {
    private static final String EXAMPLE = "digits_torchscript";

    @TempDir
    private Path directory;

    private Path home;
    private Repository models;

    @BeforeEach
    void setUp() throws IOException {
        home = Files.createDirectory(directory.resolve("home"));
        models = new Repository(Files.createDirectory(directory.resolve("models")))
                .copyOf(InstalledServer.CHECKOUT.resolve("examples/pytorch-models/" + EXAMPLE));
    }

    @Test
    void mapsOneCopyAndLeavesNoFileBesideTheCache() throws Exception {
        serves("");
    }

    /** The TensorRT plugin sets it, after which JavaCPP's own loader loads nothing. */
    @Test
    void servesWhereJavaCppLoadsNothing() throws Exception {
        serves("-Dorg.bytedeco.javacpp.loadlibraries=false");
    }

    private void serves(String options) throws Exception {
        List<Path> before = list(Path.of("").toAbsolutePath());
        Path temporary = Files.createDirectory(directory.resolve("temporary"));
        Map<String, String> environment = Map.of(
                "HOME",
                home.toString(),
                "NEREID_JAVA_OPTIONS",
                "-Djava.io.tmpdir=" + temporary + " -Duser.home=" + home + " " + options);
        try (InstalledServer server = InstalledServer.serve(environment, models.directory())) {
            String request = Files.readString(models.directory().resolve(EXAMPLE + "/request.json"));
            assertThat(server.post("/v2/models/" + EXAMPLE + "/infer", request).body())
                    .contains("\"seven\"");

            assertThat(PyTorchModels.mapped(String.valueOf(server.pid()))).hasSize(1);
            String maps = Files.readString(Path.of("/proc", String.valueOf(server.pid()), "maps"));
            assertThat(maps).doesNotContain("libcudart", "libcupti", ".javacpp", "libmkl");
            assertThat(maps.lines().filter(line -> line.matches(".*/lib(quadmath|gfortran|openblas)\\.so.*")))
                    .as("not those of the system")
                    .isNotEmpty()
                    .allMatch(line -> line.contains("/pytorch-"));
            server.interrupt();
            assertThat(server.awaitEnd().status()).isZero();
        }
        assertThat(list(home)).isEmpty();
        assertThat(list(temporary)).isEmpty();
        assertThat(list(Path.of("").toAbsolutePath())).isEqualTo(before);
    }

    private static List<Path> list(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.sorted().toList();
        }
    }

    /** A server whose models need no PyTorch neither unpacks nor loads it. */
    @Test
    void isNeitherUnpackedNorLoadedWithoutAModel() throws Exception {
        Path cache = Files.createDirectory(directory.resolve("cache"));
        try (InstalledServer server =
                InstalledServer.serve(Map.of(), InstalledServer.MODELS, "--plugin-cache-directory=" + cache)) {
            assertThat(server.out()).containsPattern("(?m)^pytorch +pytorch +AVAILABLE$");
            assertThat(PyTorchModels.mapped(String.valueOf(server.pid()))).isEmpty();
        }
        try (Stream<Path> files = Files.walk(cache)) {
            assertThat(files).noneMatch(file -> file.endsWith("libtorch_cpu.so"));
        }
    }
}
