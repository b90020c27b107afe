package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tests the information of the installed server about its origin and its contents. */
@Tag("slow")
final class ProvenanceIT {
    private static final String SBOM = "sbom.cdx.json";
    private static final String NOTICES = "THIRD-PARTY.txt";

    @Test
    void namesCommitJvmAndOnnxRuntime() throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run("--version");

        assertThat(result.status()).isZero();
        List<String> lines = result.out().lines().toList();
        assertThat(lines.getFirst()).matches("nereid \\d+\\.\\d+\\.\\d+(-SNAPSHOT)?");
        assertThat(lines.get(1)).matches("commit: ([0-9a-f]{7,}|unknown)");
        assertThat(lines.get(1).equals("commit: unknown")).isNotEqualTo(isCheckout());
        assertThat(lines.get(2)).matches("JDK: 25\\S* \\(.+\\)");
        assertThat(lines).anyMatch(line -> line.matches("plugin onnx: ONNX Runtime \\d+\\.\\d+\\.\\d+"));
    }

    /** Returns whether Git knows the commit: there may be no Git, and it refuses directories of other users. */
    private static boolean isCheckout() throws InterruptedException {
        try {
            return new ProcessBuilder("git", "rev-parse", "HEAD")
                            .directory(InstalledServer.CHECKOUT.toFile())
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            return false;
        }
    }

    /** Each third-party jar of a directory is in the bill of materials and in the notices beside it. */
    @Test
    void listsEveryThirdPartyJarWithItsLicense() throws IOException {
        Path home = InstalledServer.HOME;
        try (Stream<Path> directories = Files.walk(home)) {
            for (Path bill : directories.filter(file -> file.endsWith(SBOM)).toList()) {
                Path directory = bill.getParent();
                Path jars = directory.equals(home) ? home.resolve("lib") : directory;
                String notices = Files.readString(directory.resolve(NOTICES));
                Set<String> listed = components(bill);
                for (String jar : thirdPartyJars(jars)) {
                    assertThat(listed).as(bill + ": " + jar).anyMatch(jar::startsWith);
                    assertThat(listed.stream()
                                    .filter(jar::startsWith)
                                    .anyMatch(name -> notices.contains(":" + name + ":")))
                            .as(NOTICES + " of " + directory + ": " + jar)
                            .isTrue();
                }
            }
        }
        for (String directory :
                List.of("", "plugins/onnx", "plugins/tensorflow", "plugins/pytorch", "caches/redis", "storage/s3")) {
            assertThat(home.resolve(directory).resolve(SBOM)).exists();
        }
    }

    private static Set<String> components(Path bill) throws IOException {
        JsonObject read = JsonParser.parseString(Files.readString(bill)).getAsJsonObject();
        assertThat(read.get("bomFormat").getAsString()).isEqualTo("CycloneDX");
        Set<String> names = new TreeSet<>();
        if (read.has("components")) { // a plugin may need nothing but the SPI
            for (JsonElement component : read.getAsJsonArray("components")) {
                names.add(component.getAsJsonObject().get("name").getAsString());
            }
        }
        return names;
    }

    private static Set<String> thirdPartyJars(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".jar") && !name.startsWith("nereid"))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }
}
