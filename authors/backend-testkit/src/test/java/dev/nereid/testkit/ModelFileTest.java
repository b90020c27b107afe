package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which files a parameter of a model may name. */
final class ModelFileTest {
    @TempDir
    private Path directory;

    private Path model;
    private Path version;

    @BeforeEach
    void createFiles() throws IOException {
        model = Files.createDirectory(directory.resolve("model"));
        version = Files.createDirectories(model.resolve("1/more")).getParent();
        Files.createFile(directory.resolve("secret"));
        Files.createFile(model.resolve("words"));
        Files.createFile(model.resolve("both"));
        Files.createFile(version.resolve("both"));
        Files.createFile(version.resolve("more/words"));
    }

    private FakeModelContext given(String file) {
        return new FakeModelContext(ModelSettings.builder("m", 1).build(), model).withParameter("file", file);
    }

    @Test
    void isInTheDirectoryOfTheVersionOrOfTheModel() {
        assertThat(given("both").file("file")).contains(version.resolve("both"));
        assertThat(given("words").file("file")).contains(model.resolve("words"));
        assertThat(given("more/../more//words").file("file")).contains(version.resolve("more/words"));
        assertThat(given("1/both").file("file")).contains(version.resolve("both"));
    }

    @Test
    void isInTheDirectoryOfTheModelWhereThatIsNamed() {
        assertThat(given("$$TRITON_MODEL_DIRECTORY/both").file("file")).contains(model.resolve("both"));
        assertThat(given("$$TRITON_MODEL_DIRECTORY/1/both").file("file")).contains(version.resolve("both"));
    }

    @Test
    void isEmptyWithoutTheParameterAndDeclaresIt() {
        FakeModelContext context = given("words");

        assertThat(context.file("other")).isEmpty();
        assertThat(context.unreadParameters()).containsExactly("file");
        assertThat(context.file("file")).isPresent();
        assertThat(context.unreadParameters()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                ".",
                "..",
                "/",
                "/etc/passwd",
                "none",
                "more",
                "../../secret",
                "../secret",
                "../model/../../secret",
                "\0",
                "words\0",
                "words/x",
                "$$TRITON_MODEL_DIRECTORY",
                "$$TRITON_MODEL_DIRECTORY/",
                "$$TRITON_MODEL_DIRECTORY//etc/passwd",
                "$$TRITON_MODEL_DIRECTORY/../secret",
                "$$TRITON_MODEL_DIRECTORYx/words"
            })
    void isNothingElse(String file) {
        assertRefused(file);
    }

    private void assertRefused(String file) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> given(file).file("file"))
                .withMessage("parameter 'file': " + file
                        + " (expected: a path of a file in the directory of the version or of the model)")
                .matches(error -> error.code() == ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void refusesANameOfAnyLength() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> given("x/".repeat(1 << 20)).file("file"))
                .matches(error -> error.code() == ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void leavesTheModelByNoLink() throws IOException {
        Files.createSymbolicLink(version.resolve("out"), directory.resolve("secret"));
        Files.createSymbolicLink(version.resolve("up"), directory);
        Files.createSymbolicLink(version.resolve("circle"), version.resolve("circle"));
        Files.createSymbolicLink(version.resolve("within"), model.resolve("words"));

        assertRefused("out");
        assertRefused("up/secret");
        assertRefused("circle");
        assertThat(given("within").file("file")).contains(version.resolve("within"));
    }

    @Test
    void findsFilesWhereTheModelIsALink() throws IOException {
        Path link = Files.createSymbolicLink(directory.resolve("link"), model);
        FakeModelContext context =
                new FakeModelContext(ModelSettings.builder("m", 1).build(), link).withParameter("file", "words");

        assertThat(context.file("file")).contains(link.resolve("words"));
    }
}
