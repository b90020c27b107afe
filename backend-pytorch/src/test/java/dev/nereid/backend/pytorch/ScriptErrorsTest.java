package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Failures of a script: where in the original source, without what C++ adds, and not longer than a client reads. */
class ScriptErrorsTest {
    private static final int MAX_BYTES = 4096;
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);

    @TempDir
    private Path directory;

    private CheckedBackend test;

    @BeforeEach
    void open() {
        test = new CheckedBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, OPEN))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, OPEN));
    }

    private static Map<String, Tensor> input(int elements) {
        return Map.of("x", Tensor.ofFloats(Shape.of(elements), new float[elements]));
    }

    private BackendException failure(ModelInstance instance, int elements) {
        return catchThrowableOfType(BackendException.class, () -> test.run(instance, settings(), 1, input(elements)));
    }

    private BackendException failure(String source) {
        ScriptFiles.write(directory, source);
        BackendException failure = failure(test.instance(test.load(settings())), 3);
        assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(failure)
                .message()
                .startsWith("PyTorch execute failure: ")
                .doesNotContain("frame #", "Exception raised from", directory.toString())
                .satisfies(text ->
                        assertThat(text.getBytes(StandardCharsets.UTF_8).length).isLessThanOrEqualTo(MAX_BYTES))
                .satisfies(
                        text -> assertThat(StandardCharsets.UTF_8.newEncoder().canEncode(text))
                                .isTrue());
        return failure;
    }

    @Test
    void operation() {
        assertThat(failure("""
                def forward(self, x: Tensor) -> Tensor:
                    y = x + 1
                    return torch.matmul(y, torch.ones([7, 7]))
                """))
                .message()
                .contains(
                        "The following operation failed in the TorchScript interpreter.",
                        "return torch.matmul(y, torch.ones([7, 7]))",
                        "~~~~~~~~~~~~",
                        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 7x7)");
    }

    @Test
    void exceptionOfTheScript() {
        assertThat(failure("""
                def forward(self, x: Tensor) -> Tensor:
                    if x.shape[0] == 3:
                        assert False, "three is too many"
                    return x
                """))
                .message()
                .contains("assert False, \"three is too many\"")
                .endsWith("three is too many");
    }

    @Test
    void assertion() {
        assertThat(failure("""
                def forward(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "not three"
                    return x
                """)).message().contains("assert x.shape[0] != 3").endsWith("not three");
    }

    @ParameterizedTest
    @ValueSource(strings = {"x", "é", "€", "😀"})
    void longText(String letter) {
        BackendException failure = failure("""
                def forward(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "".join(["%s" for i in range(200000)]) + "the end"
                    return x
                """.formatted(letter));

        assertThat(failure).message().contains("assert x.shape[0] != 3").endsWith("the end");
    }

    @ParameterizedTest
    @ValueSource(ints = {1300, 2000, 4000, 5000})
    void aboutTheLongestText(int length) {
        BackendException failure = failure("""
                def forward(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "".join(["%s" for i in range(%d)]) + "the end"
                    return x
                """.formatted("ab", length / 2));

        assertThat(failure).message().contains("assert x.shape[0] != 3").endsWith("the end");
    }

    @Test
    void deepCallsWithALongText() {
        StringBuilder source = new StringBuilder("""
                def f0(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "here" + "".join(["!" for i in range(100000)])
                    return x

                """);
        for (int i = 1; i <= 40; i++) {
            source.append("def f")
                    .append(i)
                    .append("(self, x: Tensor) -> Tensor:\n    return self.f")
                    .append(i - 1)
                    .append("(x) + 0\n\n");
        }
        source.append("def forward(self, x: Tensor) -> Tensor:\n    return self.f40(x)\n");

        assertThat(failure(source.toString())).message().contains("assert x.shape[0] != 3, \"here\"");
    }

    @Test
    void longLineOfTheSource() {
        BackendException failure = failure("""
                def forward(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "%s" + "the end"
                    return x
                """.formatted("€".repeat(100000)));

        assertThat(failure)
                .message()
                .contains("line 2, in forward", "assert x.shape[0] != 3")
                .endsWith("the end");
    }

    @Test
    void onlyItsBatchFails() {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "three"
                    return x + 1
                """);
        ModelInstance instance = test.instance(test.load(settings()));
        for (int i = 0; i < 20; i++) {
            assertThat(failure(instance, 3)).message().endsWith("three");
            assertThat(test.run(instance, settings(), 1, input(2))
                            .get("OUTPUT__0")
                            .floats())
                    .containsExactly(1, 1);
        }
    }

    @Test
    void memoryThatIsNotThere() {
        assertThat(failure("""
                def forward(self, x: Tensor) -> Tensor:
                    if x.shape[0] == 3:
                        x = torch.ones([x.shape[0] * 1000000000000])
                    return x
                """)).message().contains("can't allocate memory");
    }

    @Test
    void anyLetters() {
        assertThat(failure("""
                def forward(self, x: Tensor) -> Tensor:
                    assert x.shape[0] != 3, "größer € 😀"
                    return x
                """)).message().endsWith("größer € 😀");
    }

    @Test
    void indexOutOfRange() {
        assertThat(failure("""
                def forward(self, x: Tensor) -> Tensor:
                    y = [x]
                    return y[x.shape[0]]
                """)).message().contains("list index out of range");
    }
}
