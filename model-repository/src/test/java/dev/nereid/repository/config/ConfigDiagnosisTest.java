package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.testkit.ReaderProbe;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigDiagnosisTest {
    @ParameterizedTest
    @CsvSource(quoteCharacter = '`', textBlock = """
            max_batch_sise: 8,                                                     1, 1, max_batch_size
            Max_Batch_Size: 8,                                                     1, 1, max_batch_size
            instance-group {},                                                     1, 1, ``
            instances {},                                                          1, 1, ``
            input { dtype: TYPE_FP32 },                                            1, 9, data_type
            input { datatype: TYPE_FP32 },                                         1, 9, data_type
            input { dim: [ 1 ] },                                                  1, 9, dims
            input { reshape { shap: [ 1 ] } },                                     1, 19, shape
            output { label_file_name: "x" },                                       1, 10, label_filename
            dynamic_batching { default_queue_policy { max_queue_sice: 1 } },       1, 43, max_queue_size
            dynamic_batching { prefered_batch_size: 1 },                           1, 20, preferred_batch_size
            dynamic_batching { priority_queue_policy { key: 1 value { timeout_acton: REJECT } } }, 1, 59, timeout_action
            instance_group { rate_limiter { resources { nmae: "a" } } },           1, 45, name
            optimization { execution_accelerators { cpu_execution_accelerator { nam: "a" } } }, 1, 69, name
            version_policy { latest { num_version: 1 } },                          1, 27, num_versions
            sequence_batching { control_input { control { kinds: CONTROL_SEQUENCE_START } } }, 1, 47, kind
            max_queue_delay_microseconds: 5,                  1, 1, dynamic_batching.max_queue_delay_microseconds
            instance_group { dims: 1 },                                            1, 18, input.dims
            input { data_type: FP32 },                                             1, 20, TYPE_FP32
            instance_group { kind: CPU },                                          1, 24, KIND_CPU
            instance_group { kind: KIND_GPUS },                                    1, 24, KIND_GPU
            entirely_unlike: 1,                                                    1, 1, ``
            """)
    void suggestsTheNameThatWasMeant(String text, int line, int column, String suggestion) {
        List<ConfigProblem> problems = ConfigDiagnosis.ofText(text);

        assertThat(problems).singleElement().satisfies(problem -> {
            assertThat(problem.line()).isEqualTo(line);
            assertThat(problem.column()).isEqualTo(column);
            assertThat(problem.suggestion()).isEqualTo(suggestion);
            assertThat(problem.sourceLine()).isEqualTo(text);
            assertThat(problem.sourceColumn()).isEqualTo(column - 1);
        });
    }

    @Test
    void findsEachMisspeltField() {
        List<ConfigProblem> problems = ConfigDiagnosis.ofText("""
                nam: "m"
                input {
                  nome: "x"
                \tdimms: [ 1 ]
                }
                instance_group { cuont: 2 }
                """);

        assertThat(problems)
                .extracting(ConfigProblem::line, ConfigProblem::column, ConfigProblem::suggestion)
                .containsExactly(tuple(1, 1, "name"), tuple(3, 3, "name"), tuple(4, 2, "dims"), tuple(6, 18, "count"));
        assertThat(problems.getFirst().message()).startsWith("unknown field 'nam' in ModelConfig (expected: name, ");
        assertThat(problems.get(2).sourceLine()).isEqualTo(" dimms: [ 1 ]");
    }

    @Test
    void describesManyUnknownFieldsWithLittleMemory() {
        String text = "PE: 1\n".repeat(100);

        new ReaderProbe(0, 3 << 20)
                .run(memory -> assertThat(ConfigDiagnosis.ofText(text)).hasSize(100));
    }

    @Test
    void findsFieldsAroundUnknownValues() {
        List<ConfigProblem> problems = ConfigDiagnosis.ofText("""
                input { dtype: TYPE_FP32 }
                instance_group { cuont: 2 kind: CPU }
                output { data_type: TYPE_FP3 labels: "x" }
                """);

        assertThat(problems)
                .extracting(ConfigProblem::line, ConfigProblem::column, ConfigProblem::suggestion)
                .containsExactly(
                        tuple(1, 9, "data_type"),
                        tuple(2, 18, "count"),
                        tuple(2, 33, "KIND_CPU"),
                        tuple(3, 21, "TYPE_FP32"),
                        tuple(3, 30, ""));
        assertThat(problems).allMatch(problem -> problem.message().startsWith("unknown "));
        assertThat(ConfigDiagnosis.ofText("instance_group { kind: CPU }\n".repeat(1000)))
                .hasSize(11);
    }

    @Test
    void describesOtherErrorsAsTheReaderDoes() {
        assertThat(ConfigDiagnosis.ofText("\uFEFFname: 'm'\nmax_batch_size: many\n"))
                .containsExactly(new ConfigProblem(
                        2, 17, "Expected integer, got: many (expected: an integer)", "", "max_batch_size: many", 16));
        assertThat(ConfigDiagnosis.ofText("name: \"m\"")).isEmpty();
    }

    @Test
    void limitsWhatItRepeats() {
        String before = " ".repeat(1000);
        ConfigProblem problem = ConfigDiagnosis.ofText(before + "x\u001b[31m: 1 # " + "y".repeat(100_000))
                .getFirst();

        assertThat(problem.column()).isGreaterThan(1000);
        assertThat(problem.sourceLine()).hasSizeLessThanOrEqualTo(160).doesNotContain("\u001b");
        assertThat(problem.sourceColumn()).isEqualTo(80);
        assertThat(ConfigDiagnosis.ofText("foo: 1\n".repeat(1000))).hasSize(100);
        assertThat(ConfigDiagnosis.ofText("max_batch_size: " + "x".repeat(1_000_000))
                        .getFirst()
                        .message())
                .hasSizeLessThanOrEqualTo(2000);
        assertThat(ConfigDiagnosis.ofText("x".repeat(1_000_000) + ": 1")
                        .getFirst()
                        .suggestion())
                .isEmpty();
    }

    @Test
    void findsTheByteThatIsNoText(@TempDir Path directory) throws IOException {
        Path file = directory.resolve("config.pbtxt");
        Files.write(file, "name: \"m\"\n# \u00fc\n".getBytes(StandardCharsets.ISO_8859_1));

        assertThat(ConfigDiagnosis.ofFile(file))
                .containsExactly(new ConfigProblem(2, 3, "byte 0xfc is no UTF-8 (expected: UTF-8 text)", "", "# ", 2));
        Files.write(file, new byte[] {'#', (byte) 0xc3}); // the second byte of a character is missing
        assertThat(ConfigDiagnosis.ofFile(file))
                .singleElement()
                .satisfies(problem ->
                        assertThat(problem.message()).isEqualTo("byte 0xc3 is no UTF-8 (expected: UTF-8 text)"));
    }

    @Test
    void refusesALargeFileBeforeItIsInMemory(@TempDir Path directory) throws IOException {
        Path file = directory.resolve("config.pbtxt");
        try (var channel = Files.newByteChannel(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            channel.position(1L << 40).write(ByteBuffer.wrap(new byte[] {1})); // sparse
        }

        assertThat(ConfigDiagnosis.ofFile(file))
                .extracting(ConfigProblem::message)
                .containsExactly("the file cannot be read: more than 16777216 bytes (expected: at most 16777216)");
        assertThat(ConfigDiagnosis.ofFile(directory))
                .singleElement()
                .satisfies(problem -> assertThat(problem.message()).startsWith("the file cannot be read: "));
    }
}
