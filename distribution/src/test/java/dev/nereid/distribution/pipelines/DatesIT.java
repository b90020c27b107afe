package dev.nereid.distribution.pipelines;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The chain for texts: from characters to numbers, to probabilities, to characters. */
class DatesIT {
    private static final double MIN_ACCURACY = 0.95;
    private static final int BATCH = 50;

    private static Examples examples;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        examples = Examples.serve();
    }

    @AfterAll
    static void stop() throws IOException {
        if (examples != null) {
            examples.close();
        }
    }

    @ParameterizedTest
    @EnumSource
    void readsTheDatesThatTheTrainingHeldBack(Examples.Protocol protocol) throws IOException {
        List<String[]> lines =
                Files.readAllLines(TestPaths.checkout().resolve("examples/training/dates_test.csv")).stream()
                        .map(line -> line.split(";", -1))
                        .toList();
        int right = 0;
        for (int from = 0; from < lines.size(); from += BATCH) {
            List<String[]> batch = lines.subList(from, from + BATCH);
            List<String> found = TensorBytes.toStrings(examples.infer(
                            protocol,
                            request(batch.stream().map(line -> line[1]).toArray(String[]::new)))
                    .get("DATE"));
            for (int i = 0; i < BATCH; i++) {
                right += found.get(i).equals(batch.get(i)[0]) ? 1 : 0;
            }
        }

        assertThat(lines).hasSize(500);
        assertThat((double) right / lines.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
        assertThat("%d of %d = %.4f".formatted(right, lines.size(), (double) right / lines.size()))
                .isEqualTo(Files.readString(TestPaths.checkout().resolve("examples/training/dates_accuracy.txt"))
                        .strip());
    }

    @ParameterizedTest
    @EnumSource
    void returnsTextAndConfidence(Examples.Protocol protocol) throws IOException {
        Map<String, byte[]> outputs = examples.infer(protocol, request("the 20th of July, 1969"));

        assertThat(TensorBytes.toStrings(outputs.get("DATE"))).containsExactly("1969-07-20");
        assertThat(TensorBytes.toFloats(outputs.get("CONFIDENCE"))[0]).isBetween(0.9f, 1f);
    }

    @ParameterizedTest
    @EnumSource
    void refusesTextsThatAreTooLong(Examples.Protocol protocol) {
        String text = "a text that is much longer than any date can be";

        assertThatThrownBy(() -> examples.infer(protocol, request(text)))
                .hasMessageMatching("(400|INVALID_ARGUMENT) in ensemble 'dates', .*"
                        + "TEXT: 47 characters \\(expected: 1 to 40\\) \\(step 'date_tokenizer'\\)");
    }

    private static ClientRequest request(String... texts) {
        return ClientRequest.of("dates").input("TEXT", "BYTES", TensorBytes.strings(texts), texts.length, 1);
    }
}
