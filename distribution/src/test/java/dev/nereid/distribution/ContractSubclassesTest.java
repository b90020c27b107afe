package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Each example and the ONNX backend are tested by the contract of backends, with little code. */
class ContractSubclassesTest {
    private static final int MAX_LINES = 60;

    @Test
    void everyExampleHasAShortSubclassOfTheContract() throws IOException {
        List<Path> modules = new ArrayList<>(List.of(TestPaths.checkout().resolve("backend-onnx")));
        try (Stream<Path> examples = Files.list(TestPaths.checkout().resolve("examples"))) {
            examples.filter(example -> Files.isDirectory(example.resolve("src/main/java")))
                    .forEach(modules::add);
        }

        assertThat(modules).hasSizeGreaterThan(6).allSatisfy(module -> {
            List<Path> subclasses = subclasses(module);
            assertThat(subclasses).isNotEmpty();
            for (Path subclass : subclasses) {
                assertThat(Files.readAllLines(subclass))
                        .as("lines of " + subclass)
                        .hasSizeLessThanOrEqualTo(MAX_LINES);
            }
        });
    }

    private static List<Path> subclasses(Path module) throws IOException {
        try (Stream<Path> tests = Files.walk(module.resolve("src/test/java"))) {
            List<Path> found = new ArrayList<>();
            for (Path test : tests.filter(Files::isRegularFile).toList()) {
                if (Files.readString(test).contains(" extends BackendContract ")) {
                    found.add(test);
                }
            }
            return found;
        }
    }
}
