package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.MarkdownPage;
import dev.nereid.distribution.testing.PageScript;
import dev.nereid.distribution.testing.PythonProgram;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the commands of the documents. */
@Tag("slow")
final class DocumentationIT {
    /** Followed by a test of the module compatibility. */
    private static final String BY_MAVEN = "Ten minutes: a plugin by Maven";

    private static final String IN_KOTLIN = "Gradle and Kotlin"; // run by NewUserPathIT, as the former

    private static final String EXPORT = "A model of your own"; // by a Python with PyTorch
    private static final int MAX_QUICK_START = 10;
    private static final int FIRST_SCREEN = 24;

    @TempDir
    private Path directory;

    @Test
    void theQuickStartWorksAndIsQuick() throws IOException, InterruptedException {
        String output = follow("README.md");

        assertThat(output)
                .containsPattern("digit_7_0.png over HTTP: seven")
                .containsPattern("digit_7_0.png over gRPC: seven")
                .containsPattern("star.png over HTTP: star")
                .containsPattern("star.png over gRPC: star")
                .contains("[11,22,33,44]", "[9,18,27,36]")
                .containsPattern("(?m)^add_sub +1 +onnxruntime +valid$")
                .containsPattern("(?m)^add_sub +1 +READY$");
        assertThat(String.join("", MarkdownPage.of("README.md").commands()).lines())
                .hasSizeLessThanOrEqualTo(MAX_QUICK_START);
    }

    @Test
    void theFirstScreenNamesTheTwoCommandsOfTheSetUp() throws IOException {
        String readme = Files.readString(InstalledServer.CHECKOUT.resolve("README.md"));
        String integration = Files.readString(InstalledServer.CHECKOUT.resolve(".ci/run"));

        assertThat(readme.lines().limit(FIRST_SCREEN))
                .anyMatch(line -> line.matches("\\./nereid demo( .*)?"))
                .anyMatch(line -> line.matches("\\./mvnw verify( .*)?"));
        assertThat(integration.lines().filter(line -> line.startsWith("./mvnw")))
                .containsExactly("./mvnw verify || status=$?");
        assertThat(integration.lines().toList().getLast()).isEqualTo("exit \"$status\"");
        assertThat(integration)
                .as("tests fail without the programs that it installs, where they would be skipped")
                .containsSubsequence("apt-get install", "\nexport CI=true\n", "./mvnw verify");
    }

    @Test
    void theBackendOfTheAuthorsGuideWorks() throws IOException, InterruptedException {
        MarkdownPage guide = MarkdownPage.of("docs/backend-authors.md");
        guide.section(BY_MAVEN).saveFiles(directory); // the class that is built without Maven, too

        assertThat(follow(guide.without(BY_MAVEN).without(IN_KOTLIN))).contains("[2.0,5.0,-6.0]");
    }

    @Test
    void ensembles() throws Exception {
        assertThat(follow("docs/ensembles.md")).contains("[20,40,60,80]", "[2,4,6,8]");
    }

    @Test
    void pipelines() throws IOException, InterruptedException {
        assertThat(follow("docs/pipelines.md"))
                .contains("\"name\":\"CLASSIFICATION\"", "\"shape\":[1,1000]")
                .containsPattern("\\{\"label\":\"heart\",\"score\":[01]\\.\\d+,\"top\":\\[")
                .contains("\"name\":\"image_preprocess_model\"", "\"batch_size\":1")
                .contains("in ensemble 'ensemble_model'", "image: begins with")
                .contains("\"1969-07-20\",\"1989-11-09\"")
                .containsPattern("smiling.*neutral.*sad");
    }

    @Test
    void theSpeechOfTheSequencesGuideIsFound() throws IOException, InterruptedException {
        assertThat(follow("docs/sequences.md"))
                .containsPattern("(?m)^2\\.05 s: speech in 16 of 16 chunks$")
                .containsPattern("(?m)^2\\.56 s: speech in 11 of 16 chunks$");
    }

    @Test
    void theTextOfTheGuideIsWritten() throws IOException, InterruptedException {
        String output = follow("docs/text-generation.md");
        assertThat(output.split("\"text_output\":", -1)).hasSize(80 + 1);
        assertThat(output).containsPattern("\"batch_size\":[234]\\b");
    }

    @Test
    void pythonModels() throws IOException, InterruptedException {
        PythonProgram.withNumPy();

        assertThat(follow("docs/python.md").split("HELLO", -1)).hasSize(4 + 1);
    }

    @Test
    void torchScript() throws IOException, InterruptedException {
        assumeTrue(System.getProperty("os.arch").equals("amd64"), "the libraries of PyTorch are for x86-64");

        assertThat(follow(MarkdownPage.of("docs/pytorch.md").without(EXPORT))).contains("\"data\":[\"seven\"]");
    }

    @Test
    void torchScriptOfPython() throws IOException, InterruptedException {
        assumeTrue(System.getProperty("os.arch").equals("amd64"), "the libraries of PyTorch are for x86-64");
        Optional<String> python = PythonProgram.withModule("torch");
        assumeTrue(python.isPresent(), "not installed: Python with PyTorch");

        String output = follow(
                MarkdownPage.of("docs/pytorch.md").section(EXPORT), Map.of("python3 ", python.orElseThrow() + " "));

        assertThat(output)
                .containsPattern("(?m)^rectangle +1 +pytorch +valid")
                .contains("\"data\":[12.0]", "\"data\":[14.0]");
    }

    @Test
    void theExamplesInPython() throws IOException, InterruptedException {
        PythonProgram.withNumPy();

        assertThat(follow("examples/python/README.md"))
                .contains("[6,17,28,39]", "[11,22,33,44,6,7,8,9,15,25,35,45]")
                .containsPattern("(?s)label.{1,8}seven.*label.{1,8}seven")
                .contains("PICTURE: begins with b'# Py' (expected: a PNG, PGM or PPM file)")
                .containsPattern("(?s)data: .*one.*data: .*time");
    }

    /** Saves the files of a document, runs its commands one after another, and returns their output. */
    private String follow(String document) throws IOException, InterruptedException {
        return follow(MarkdownPage.of(document));
    }

    private String follow(MarkdownPage page) throws IOException, InterruptedException {
        return follow(page, Map.of());
    }

    private String follow(MarkdownPage page, Map<String, String> replaced) throws IOException, InterruptedException {
        Process process = PageScript.start(page, directory, replaced);
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        return output;
    }
}
